/* SPDX-License-Identifier: Apache-2.0 */
/* The crontab parser: findings, the modes strict and cronie, and the recognition of tables. */
#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "unit/core/parse_table.h"
#include "unit/unit.h"
#include <string.h>

static void doubtful_lines_are_found(void **state)
{
	static const struct {
		const char *text, *code;
	} doubtful[] = {
		{"0 5 * * * date +%F\n", "percent"},
		{"0 22-6 * * * x\n", "reversed-range"},
		{"*/35 * * * * x\n", "uneven-step"},
		{"*/90 * * * * x\n", "wide-step"},
		{"0 0 1 * 1 x\n", "day-or-weekday"},
		{"0 0 */2 * 1 x\n", "day-and-weekday"},
		{"CRON_TZ=UTC\n", "cron-tz-ignored"},
		{"RANDOM_DELAY=5\n", "random-delay-ignored"},
		{"TZ=UTC\n", "tz-of-command"},
		{"PATH=$PATH:/x\n", "not-expanded"},
		{"MAILTO=ann # me\n", "comment-in-value"},
		{"A-B=1\n", "odd-name"},
		{"1 * * * * x\r\n", "carriage-return"},
		{"4294967296 * * * * x\n", "number-overflow"},
	};
	AUTO(crontab) *good = parse("MAILTO=\"\"\n*/15 3 * * 1-5 /bin/true\n");

	(void)state;
	for (size_t i = 0; i < ELEMENTS(doubtful); i++) {
		AUTO(crontab) *t = parse(doubtful[i].text);

		if (!t->accepted || !finding(t, doubtful[i].code))
			fail_msg("'%s' has no finding %s", doubtful[i].text, doubtful[i].code);
	}
	assert_int_equal(good->n_findings, 0);
}

static void strict_mode_refuses_doubtful_lines(void **state)
{
	static const char *const doubtful[] = {"0 5 * * * date +%F\n", "0 22-6 * * * x\n", "10~20 * * * * x\n",
		"0 0 30 2 * x\n", "* * * * *\n", "CRON_TZ=UTC\n"};
	static const char *const fine[] = {"*/35 * * * * x\n", "0 0 1 * 1 x\n", "A=1\n@daily x\n"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(doubtful); i++) {
		AUTO(crontab) *t = parse_bytes(doubtful[i], strlen(doubtful[i]), CRONTAB_STRICT, false);

		if (t->accepted || !crontab_first_error(t))
			fail_msg("'%s' is accepted", doubtful[i]);
	}
	for (size_t i = 0; i < ELEMENTS(fine); i++) {
		AUTO(crontab) *t = parse_bytes(fine[i], strlen(fine[i]), CRONTAB_STRICT, false);

		assert_true(t->accepted);
	}
}

static void cronie_skips_only_the_bad_line(void **state)
{
	AUTO(crontab) *t = parse_cronie("1 * * * * a\n61 * * * * b\n2 * * * * c\n3 * * * * d");

	(void)state;
	assert_true(t->accepted);
	assert_int_equal(t->n_entries, 2);
	assert_int_equal(t->count[CRONTAB_LINE_REFUSED], 2);
}

static void cronie_has_zones_delays_and_random_values(void **state)
{
	AUTO(crontab) *t = parse_cronie("1 * * * * a\nCRON_TZ=Asia/Tokyo\nRANDOM_DELAY=45\n10~20 3 * * * b\n~ 4 * * 1~5 c\n");
	AUTO(crontab) *again = parse_cronie("1 * * * * a\nCRON_TZ=Asia/Tokyo\nRANDOM_DELAY=45\n10~20 3 * * * b\n~ 4 * * 1~5 c\n");
	AUTO(crontab) *bad = parse_cronie("RANDOM_DELAY=1441\n1 * * * * a\n20~10 * * * * b\n");

	(void)state;
	assert_int_equal(t->n_entries, 3);
	assert_null(t->entries[0].zone);
	assert_int_equal(t->entries[0].delay_minutes, 0);
	assert_string_equal(t->entries[1].zone, "Asia/Tokyo");
	assert_int_equal(t->entries[1].delay_minutes, 45);
	assert_int_equal(__builtin_popcountll(t->entries[1].time.minute), 1);
	assert_true(t->entries[1].time.minute & UINT64_C(0x1ffc00));
	assert_int_equal(__builtin_popcountll(t->entries[2].time.minute), 1);
	assert_int_equal(__builtin_popcountll(t->entries[2].time.dow), 1);
	assert_true(t->entries[2].time.dow & 0x3e);
	assert_int_equal(t->entries[1].time.minute, again->entries[1].time.minute);
	assert_int_equal(bad->entries[0].delay_minutes, 0);
	assert_non_null(finding(bad, "bad-random-delay"));
	assert_int_equal(bad->n_entries, 1);
}

static void cronie_reads_an_empty_value(void **state)
{
	AUTO(crontab) *t = parse_cronie("CRON_TZ=Asia/Tokyo\nMAILTO=x\n0 1 * * * a\nCRON_TZ=\nMAILTO = \n0 2 * * * b\n");
	AUTO(crontab) *debian = parse_bytes("MAILTO=\n0 1 * * * a\n", 20, CRONTAB_DEBIAN, false);

	(void)state;
	assert_null(crontab_first_error(t));
	assert_int_equal(t->n_entries, 2);
	assert_string_equal(t->entries[0].zone, "Asia/Tokyo");
	assert_null(t->entries[1].zone);
	assert_string_equal(crontab_get(t, &t->entries[1], "MAILTO"), "");
	assert_false(debian->accepted);
}

static void cronie_reads_a_delay_up_to_the_first_letter(void **state)
{
	static const struct {
		const char *value;
		int minutes;
		bool reported;
	} cases[] = {{"0", 0, false}, {"1440", 1440, false}, {"007", 7, false}, {"\" 7\"", 7, true}, {"+3", 3, true}, {"12abc", 12, true},
		{"abc", 0, true}, {"\"\"", 0, true}, {"-0", 0, true}, {"-5", 0, true}, {"1441", 0, true}, {"99999999999999999999", 0, true}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_DONE(buf) text = {};
		AUTO(crontab) *t = NULL;

		buf_printf(&text, "RANDOM_DELAY=%s\n0 * * * * x\n", cases[i].value);
		t = parse_cronie(text.data);
		assert_int_equal(t->n_entries, 1);
		if (t->entries[0].delay_minutes != cases[i].minutes || !finding(t, "bad-random-delay") == cases[i].reported)
			fail_msg("RANDOM_DELAY=%s is %d minutes", cases[i].value, (int)t->entries[0].delay_minutes);
	}
}

static void random_values_of_a_list_are_independent(void **state)
{
	AUTO_DONE(buf) text = {};
	AUTO(crontab) *t = NULL;
	int different = 0;

	(void)state;
	for (int i = 0; i < 20; i++)
		buf_printf(&text, "~,~ * * * * x\n");
	t = parse_cronie(text.data);
	assert_int_equal(t->n_entries, 20);
	for (size_t i = 0; i < 20; i++)
		different += __builtin_popcountll(t->entries[i].time.minute) == 2;
	assert_true(different > 10);
}

static void cronie_refuses_what_debian_ignores(void **state)
{
	static const char *const refused[] = {"1.5 * * * * x\n", "* * * * *\n", "@daily\n", "* * * * * * x\n",
		"*5 * * * * x\n", "- 1 * * * * x\n", "1 * * * * -q x\n"};
	AUTO(crontab) *sunday = parse_cronie("0 0 * * fri-sun x\n");
	AUTO(crontab) *backwards = parse_cronie("0,60-13 * * * * x\n50-100/60 * * * * x\n* * * feb-0 * x\n50-110/60 * * * * x\n");
	AUTO(crontab) *mail = parse_cronie("0 0 * * * -n x\n");
	AUTO(crontab) *user = parse_bytes("-1 2 * * * root   cmd\n", 22, CRONTAB_CRONIE, true);
	AUTO(crontab) *backslash = parse_cronie("0 0 * * * a\\\\b\n");

	(void)state;
	for (size_t i = 0; i < ELEMENTS(refused); i++) {
		AUTO(crontab) *t = parse_cronie(refused[i]);

		if (t->n_entries != 0 || !crontab_first_error(t))
			fail_msg("'%s' is accepted", refused[i]);
	}
	assert_int_equal(sunday->entries[0].time.dow, 0x61);
	assert_int_equal(backwards->n_entries, 3);
	assert_int_equal(backwards->entries[0].time.minute, 1);
	assert_int_equal(backwards->entries[1].time.minute, UINT64_C(1) << 50);
	assert_true(backwards->entries[2].never);
	assert_string_equal(finding(backwards, "reversed-range")->text,
		"minute field: the range 60-13 runs backwards and matches nothing; values go from 0 to 59");
	assert_true(mail->entries[0].mail_on_error);
	assert_string_equal(mail->entries[0].command, "x");
	assert_true(user->entries[0].quiet);
	assert_string_equal(user->entries[0].command, "cmd");
	assert_string_equal(backslash->entries[0].command, "a\\\\b");
}

static void a_crontab_is_distinguished_from_a_script(void **state)
{
	static const char *const crontabs[] = {
		"0 2 * * * backup",
		"# m h dom mon dow command\nSHELL=/bin/bash\nPATH = \"/bin:/usr/bin\"\n\n  */5\t* * * 1-5  a | b\n@reboot x\n",
		"@daily /usr/bin/true\r\n",
	};
	static const char *const scripts[] = {
		"",
		"# nothing\n",
		"PATH=/bin\n",
		"echo hello\n",
		"#!/bin/sh\n0 2 * * * backup\n",
		"PATH=/bin\n0 2 * * * x\necho hello\n",
		"0 2 * * *\n",
		"@daily\n",
		"for i in 1 2 3 4 5 6; do echo $i; done\n",
		"61 2 * * * x\n",
		"[ 1 = 2 ] || exit 1\n",
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(crontabs); i++)
		assert_true(crontab_recognise(crontabs[i]));
	for (size_t i = 0; i < ELEMENTS(scripts); i++)
		assert_false(crontab_recognise(scripts[i]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(doubtful_lines_are_found),
		TEST(strict_mode_refuses_doubtful_lines),
		TEST(cronie_skips_only_the_bad_line),
		TEST(cronie_has_zones_delays_and_random_values),
		TEST(cronie_reads_an_empty_value),
		TEST(cronie_reads_a_delay_up_to_the_first_letter),
		TEST(random_values_of_a_list_are_independent),
		TEST(cronie_refuses_what_debian_ignores),
		TEST(a_crontab_is_distinguished_from_a_script),
	};

	return RUN_TESTS(tests);
}
