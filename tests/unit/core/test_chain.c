/* SPDX-License-Identifier: Apache-2.0 */
/* Links between jobs, and the ends that satisfy them. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/chain.h"
#include "unit/unit.h"
#include <string.h>

static void every_form_of_a_link_is_read(void **state)
{
	static const struct {
		const char *text, *parent; /* parent NULL: refused */
		enum chain_when when;
		int64_t code;
	} cases[] = {
		{"backup", "backup", CHAIN_SUCCESS, 0},
		{"12", "12", CHAIN_SUCCESS, 0},
		{"backup:success", "backup", CHAIN_SUCCESS, 0},
		{"backup:failure", "backup", CHAIN_FAILURE, 0},
		{"backup:any", "backup", CHAIN_ANY, 0},
		{"backup:exit=75", "backup", CHAIN_EXIT, 75},
		{"backup:exit=256", NULL, CHAIN_EXIT, 0},
		{"backup:exit=", NULL, CHAIN_EXIT, 0},
		{"backup:", NULL, CHAIN_EXIT, 0},
		{"backup:later", NULL, CHAIN_EXIT, 0},
		{":any", NULL, CHAIN_EXIT, 0},
		{"", NULL, CHAIN_EXIT, 0},
		{"a b", NULL, CHAIN_EXIT, 0},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct chain_link l;
		struct err e = {};

		assert_int_equal(chain_link_parse(cases[i].text, &l, &e), cases[i].parent != NULL);
		if (!cases[i].parent) {
			assert_string_equal(e.field, "after");
			continue;
		}
		assert_string_equal(l.parent, cases[i].parent);
		assert_int_equal(l.when, cases[i].when);
		assert_true(l.code == cases[i].code);
	}
}

static void only_ends_satisfy_a_link(void **state)
{
	static const bool holds[RUN_STATE_MAX][3] = { /* success, failure, any */
		[RUN_SUCCEEDED] = {true, false, true},
		[RUN_FAILED] = {false, true, true},
		[RUN_TIMED_OUT] = {false, true, true},
		[RUN_LOST] = {false, true, true},
	};

	(void)state;
	for (int s = 0; s < RUN_STATE_MAX; s++) {
		for (int w = CHAIN_SUCCESS; w <= CHAIN_ANY; w++)
			assert_int_equal(chain_link_holds(&(struct chain_link){.when = (enum chain_when)w}, (enum run_state)s, 0), holds[s][w]);
		assert_int_equal(chain_link_holds(&(struct chain_link){.when = CHAIN_EXIT, .code = 3}, (enum run_state)s, 3), holds[s][2]);
		assert_false(chain_link_holds(&(struct chain_link){.when = CHAIN_EXIT, .code = 3}, (enum run_state)s, 4));
	}
}

static void expect_words(const char *const *links, int64_t mode, const char *words)
{
	AUTO_DONE(strv) list = {};
	AUTO_DONE(buf) out = {};

	for (; *links; links++)
		strv_add(&list, *links);
	chain_explain(&list, mode, &out);
	assert_string_equal(out.data ? out.data : "", words);
}

static void a_sentence_names_the_parents_and_their_ends(void **state)
{
	(void)state;
	expect_words((const char *const[]){NULL}, CHAIN_ALL_OF, "");
	expect_words((const char *const[]){"a", NULL}, CHAIN_ALL_OF, "after job 'a' succeeds");
	expect_words((const char *const[]){"17:failure", NULL}, CHAIN_ALL_OF, "after job 17 fails");
	expect_words((const char *const[]){"a:any", "b:exit=3", NULL}, CHAIN_ALL_OF,
		"after job 'a' succeeds or fails, and job 'b' ends with exit code 3");
	expect_words((const char *const[]){"a:success", "b", NULL}, CHAIN_ANY_OF, "after job 'a' succeeds, or job 'b' succeeds");
	expect_words((const char *const[]){"a", "b", "c", "d", "e", "f", NULL}, CHAIN_ALL_OF,
		"after job 'a' succeeds, and job 'b' succeeds, and job 'c' succeeds, and job 'd' succeeds, and 2 more");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_form_of_a_link_is_read),
		TEST(only_ends_satisfy_a_link),
		TEST(a_sentence_names_the_parents_and_their_ends),
	};

	return RUN_TESTS(tests);
}
