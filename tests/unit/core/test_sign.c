/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life and progress, and estimates of the end. */
#include "core/job/sign.h"
#include "base/auto.h"
#include "base/text.h"
#include "unit/unit.h"
#include <string.h>

static void every_form_of_a_sign_is_read(void **state)
{
	static const struct {
		const char *line;
		bool ok;
		int percent;
		const char *text; /* NULL: none */
		usec_t extend;
	} cases[] = {
		{"jobsched:progress=40 copying files", true, 40, "copying files", 0},
		{"jobsched:progress=40", true, 40, NULL, 0},
		{"jobsched:progress=40%", true, 40, NULL, 0},
		{"jobsched:progress=100% done\r", true, 100, "done", 0},
		{"jobsched:progress= text only", true, -1, "text only", 0},
		{"jobsched:progress=", true, -1, "", 0},
		{"jobsched:progress=text", true, -1, "text", 0},
		{"jobsched:progress=101", false, 0, NULL, 0},
		{"jobsched:progress=99999999999999999999", false, 0, NULL, 0},
		{"jobsched:progress=40x", false, 0, NULL, 0},
		{"jobsched:progress=7 a\tb\033[31mc\177", true, 7, "a b [31mc", 0},
		{"jobsched:progress=7 \xc2\x9b" "31m \xff\xe2\x82", true, 7, " 31m ???", 0},
		{"STATUS=step 3 of 5", true, -1, "step 3 of 5", 0},
		{"STATUS=", true, -1, "", 0},
		{"WATCHDOG=1", true, -1, NULL, 0},
		{"WATCHDOG=trigger", false, 0, NULL, 0},
		{"EXTEND_TIMEOUT_USEC=5000000", true, -1, NULL, 5 * USEC_SEC},
		{"EXTEND_TIMEOUT_USEC=99999999999999999", true, -1, NULL, 366 * USEC_DAY},
		{"EXTEND_TIMEOUT_USEC=", false, 0, NULL, 0},
		{"EXTEND_TIMEOUT_USEC=1s", false, 0, NULL, 0},
		{"READY=1", false, 0, NULL, 0},
		{"jobsched:progres=4", false, 0, NULL, 0},
		{"", false, 0, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct sign s;

		print_message("%s\n", cases[i].line);
		assert_int_equal(sign_parse(cases[i].line, strlen(cases[i].line), &s), cases[i].ok);
		if (!cases[i].ok)
			continue;
		assert_int_equal(s.percent, cases[i].percent);
		assert_int_equal(s.has_text, cases[i].text != NULL);
		assert_string_equal(s.text, cases[i].text ? cases[i].text : "");
		assert_true(s.extend == cases[i].extend);
	}
}

static void a_long_text_is_cut_between_characters(void **state)
{
	char from[400], to[SIGN_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i + 3 <= sizeof(from); i += 3)
		memcpy(from + i, "\xe2\x82\xac", 3);
	sign_text(from, sizeof(from), to);
	assert_true(text_utf8_valid(to, strlen(to)));
	assert_int_equal(strlen(to), 198);
}

static void the_end_is_estimated_from_progress_and_earlier_runs(void **state)
{
	static const struct {
		int percent;
		int64_t at, usual, now, end; /* seconds after the start; end 0: unknown */
	} cases[] = {
		{-1, 0, 0, 10, 0},
		{-1, 0, 60, 10, 60},
		{-1, 0, 60, 61, 0},      /* it takes longer than usual */
		{0, 10, 0, 10, 0},
		{0, 10, 60, 10, 60},
		{25, 10, 0, 10, 40},
		{50, 30, 100, 30, 80},   /* half of each: 60 by progress, 100 usual */
		{100, 30, 1000, 29, 30},
		{10, 10, 0, 101, 0},
	};
	const usec_t start = 1000 * USEC_DAY;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct progress p = {.percent = cases[i].percent,
			.at = cases[i].at ? start + cases[i].at * USEC_SEC : 0};

		assert_true(progress_estimate(&p, start, cases[i].usual * USEC_SEC, start + cases[i].now * USEC_SEC) ==
			(cases[i].end ? start + cases[i].end * USEC_SEC : 0));
	}
	assert_true(progress_estimate(&(struct progress){.percent = 1, .at = USEC_LAST}, 1, 0, 2) == 0);
	assert_true(progress_estimate(&(struct progress){.percent = 50}, 0, USEC_SEC, 2) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_form_of_a_sign_is_read),
		TEST(a_long_text_is_cut_between_characters),
		TEST(the_end_is_estimated_from_progress_and_earlier_runs),
	};

	return RUN_TESTS(tests);
}
