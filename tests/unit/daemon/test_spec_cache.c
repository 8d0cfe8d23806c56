/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of parsed definitions. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "daemon/schedule/spec_cache.h"
#include "unit/unit.h"
#include <string.h>

static char *definition(int n)
{
	return xprintf("{\"command\":[\"echo\",\"%d\"],\"timeout\":%d}", n, n + 1);
}

static void equal_texts_share_one_parsed_definition(void **state)
{
	AUTO(spec_cache) *c = spec_cache_new();
	AUTO_TEXT one = definition(1);
	AUTO_TEXT again = definition(1);
	const struct job_spec *first = spec_cache_get(c, one, NULL);

	(void)state;
	assert_non_null(first);
	assert_string_equal(first->command.v[1], "1");
	assert_ptr_equal(spec_cache_get(c, again, NULL), first);
}

static void another_text_of_the_same_job_is_parsed_again(void **state)
{
	AUTO(spec_cache) *c = spec_cache_new();
	const struct job_spec *s = spec_cache_get(c, "{\"command\":[\"a\"],\"timeout\":5}", NULL);

	(void)state;
	assert_int_equal(s->timeout, 5 * USEC_SEC);
	s = spec_cache_get(c, "{\"command\":[\"a\"],\"timeout\":6}", NULL);
	assert_int_equal(s->timeout, 6 * USEC_SEC);
	s = spec_cache_get(c, "{\"command\":[\"a\"]}", NULL);
	assert_int_equal(s->timeout, 0);
}

/* More definitions than the cache has places, so that entries are replaced. */
static void each_text_gets_its_own_definition_while_entries_are_replaced(void **state)
{
	AUTO(spec_cache) *c = spec_cache_new();

	(void)state;
	for (int round = 0; round < 3; round++)
		for (int n = 0; n < 1000; n++) {
			AUTO_TEXT text = definition(n);
			AUTO_TEXT word = xprintf("%d", n);
			const struct job_spec *s = spec_cache_get(c, text, NULL);

			assert_string_equal(s->command.v[1], word);
			assert_int_equal(s->timeout, (n + 1) * USEC_SEC);
		}
}

static void a_text_that_cannot_be_read_is_not_kept(void **state)
{
	AUTO(spec_cache) *c = spec_cache_new();
	struct err e = {};

	(void)state;
	assert_null(spec_cache_get(c, "", &e));
	assert_null(spec_cache_get(c, "{\"command\":", &e));
	assert_true(e.msg[0] != '\0');
	assert_null(spec_cache_get(c, "{\"command\":", &e));
	assert_non_null(spec_cache_get(c, "{\"command\":[\"a\"]}", &e));
}

static void long_definitions_are_parsed_each_time(void **state)
{
	AUTO(spec_cache) *c = spec_cache_new();

	(void)state;
	for (int n = 0; n < 4; n++) {
		AUTO_TEXT text = xprintf("{\"command\":[\"%05000d\"]}", n % 2);
		const struct job_spec *s = spec_cache_get(c, text, NULL);

		assert_int_equal(strlen(s->command.v[0]), 5000);
		assert_int_equal(s->command.v[0][4999], '0' + n % 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_texts_share_one_parsed_definition),
		TEST(another_text_of_the_same_job_is_parsed_again),
		TEST(each_text_gets_its_own_definition_while_entries_are_replaced),
		TEST(a_text_that_cannot_be_read_is_not_kept),
		TEST(long_definitions_are_parsed_each_time),
	};

	return RUN_TESTS(tests);
}
