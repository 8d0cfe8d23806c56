/* SPDX-License-Identifier: Apache-2.0 */
/* The crontab parser: each rule of Debian's cron. */
#include "base/buf.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "unit/core/parse_table.h"
#include "unit/unit.h"
#include <stdlib.h>
#include <string.h>

/* A table of one entry that is accepted. */
static void expect_schedule(const char *fields, const char *schedule)
{
	AUTO_TEXT text = xprintf("%s cmd\n", fields);
	AUTO(crontab) *t = parse(text);
	AUTO_DONE(buf) out = {};

	if (!t->accepted || t->n_entries != 1)
		fail_msg("'%s' is refused", fields);
	crontab_schedule(&t->entries[0], &out);
	assert_string_equal(out.data, schedule);
	assert_string_equal(t->entries[0].command, "cmd");
}

static void expect_refused(const char *text, const char *cron_text, size_t line, size_t column)
{
	AUTO(crontab) *t = parse(text);
	const struct crontab_finding *f = crontab_first_error(t);

	if (t->accepted || !f)
		fail_msg("'%s' is accepted", text);
	assert_string_equal(f->cron_text, cron_text);
	assert_int_equal(f->line, line);
	assert_int_equal(f->column, column);
	assert_true(strlen(f->text) > 10);
}

static void expect_command(const char *rest, const char *command, const char *input)
{
	AUTO_TEXT text = xprintf("5 4 * * * %s\n", rest);
	AUTO(crontab) *t = parse(text);

	assert_true(t->accepted);
	assert_int_equal(t->n_entries, 1);
	assert_string_equal(t->entries[0].command, command);
	if (!input)
		assert_null(t->entries[0].input);
	else
		assert_string_equal(t->entries[0].input, input);
}

/* 'line' is a setting with this value; NULL: it is no setting, so the table is refused. */
static void expect_setting(const char *line, const char *name, const char *value)
{
	AUTO_TEXT text = xprintf("%s\n1 2 3 4 5 cmd\n", line);
	AUTO(crontab) *t = parse(text);

	if (!value) {
		if (t->accepted)
			fail_msg("'%s' is accepted", line);
		return;
	}
	if (!t->accepted || t->n_settings != 1)
		fail_msg("'%s' is not a setting", line);
	assert_string_equal(t->settings[0].name, name);
	assert_string_equal(t->settings[0].value, value);
	assert_string_equal(crontab_get(t, &t->entries[0], name), value);
}

static void fields_become_schedules(void **state)
{
	(void)state;
	expect_schedule("*/5 * * * *", "*/5 * * * *");
	expect_schedule("  17\t*   *\t* *", "17 * * * *");
	expect_schedule("0 02 01 * 1-5", "0 2 1 * MON-FRI");
	expect_schedule("10-50/20,3 0,12 * jan-mar,12 *", "3,10-50/20 0,12 * JAN-MAR,DEC *");
	expect_schedule("0 0 * * 7", "0 0 * * SUN");
	expect_schedule("0 0 * * 5-7", "0 0 * * FRI-SUN");
	expect_schedule("0 0 * * Sat,SUN", "0 0 * * SAT,SUN");
	expect_schedule("0-59 0-23 1-31 1-12 0-6", "0-59 0-23 1-31 * MON-SUN");
	expect_schedule("@daily", "@daily");
	expect_schedule("@midnight", "@midnight");
	expect_schedule("@annually", "@annually");
	expect_schedule("@reboot", "@reboot");
}

static void names_have_three_letters_and_belong_to_their_fields(void **state)
{
	(void)state;
	expect_refused("0 0 * * monday x\n", "bad day-of-week", 1, 9);
	expect_refused("0 0 * january * x\n", "bad month", 1, 7);
	expect_refused("mon 0 * * * x\n", "bad minute", 1, 1);
	expect_refused("0 0 * mon * x\n", "bad month", 1, 7);
	expect_refused("@DAILY x\n", "bad time specifier", 1, 1);
	expect_refused("@every_minute x\n", "bad time specifier", 1, 1);
	expect_refused("\n @ x\n", "bad time specifier", 2, 2);
}

static void values_outside_a_field_are_refused(void **state)
{
	(void)state;
	expect_refused("60 * * * * x\n", "bad minute", 1, 1);
	expect_refused("0 24 * * * x\n", "bad hour", 1, 3);
	expect_refused("0 0 0 * * x\n", "bad day-of-month", 1, 5);
	expect_refused("0 0 32 * * x\n", "bad day-of-month", 1, 5);
	expect_refused("0 0 * 13 * x\n", "bad month", 1, 7);
	expect_refused("0 0 * * 8 x\n", "bad day-of-week", 1, 9);
	expect_refused("5-64/30 * * * * x\n", "bad minute", 1, 1);
	expect_refused("-5 * * * * x\n", "bad minute", 1, 1);
}

static void steps_need_a_range_and_a_positive_number(void **state)
{
	(void)state;
	expect_refused("5/15 * * * * x\n", "bad minute", 1, 2);
	expect_refused("*/ * * * * x\n", "bad minute", 1, 3);
	expect_refused("*/0 * * * * x\n", "bad minute", 1, 3);
	expect_refused("*/mon * * * * x\n", "bad minute", 1, 3);
	expect_schedule("*/90 * * * *", "*/60 * * * *");
	expect_schedule("0 0 * * */7", "0 0 * * */7");
	expect_schedule("7-7/3 * * * *", "7 * * * *");
	expect_refused("* * */2147483647 * * x\n", "bad day-of-month", 1, 5);
	expect_schedule("*/2147483647 5 * * *", "*/60 5 * * *");
}

static void lists_have_no_empty_items(void **state)
{
	(void)state;
	expect_refused("1,,2 * * * * x\n", "bad minute", 1, 3);
	expect_refused(",1 * * * * x\n", "bad minute", 1, 1);
	expect_refused("1, 2 * * * x\n", "bad minute", 1, 3);
	expect_schedule("*,5 * * * *", "* * * * *");
	expect_schedule("5,* * * * *", "0-59 * * * *");
}

static void text_after_a_value_is_ignored(void **state)
{
	static const char *const ignored[] = {"1.5", "10~20", "5#3", "1-2-3", "5L", "10-20x"};
	AUTO(crontab) *t = parse("10~20 * * * * x\n");

	(void)state;
	expect_schedule("*5 * * * *", "* * * * *");
	expect_schedule("10~20 * * * *", "10 * * * *");
	expect_schedule("1-2-3 * * * *", "1,2 * * * *");
	expect_schedule("*/5/5 * * * *", "*/5 * * * *");
	assert_non_null(finding(t, "ignored-text"));
	assert_int_equal(finding(t, "ignored-text")->column, 3);
	for (size_t i = 0; i < ELEMENTS(ignored); i++) {
		AUTO_TEXT text = xprintf("0 0 %s * * x\n", ignored[i]);
		AUTO(crontab) *one = parse(text);

		/* a letter directly after a digit belongs to the word, which is then no number */
		assert_int_equal(one->accepted, strspn(ignored[i] + strcspn(ignored[i], "Lx"), "Lx") == 0);
	}
}

static void the_command_may_touch_the_last_field(void **state)
{
	AUTO(crontab) *t = parse("* * * * *echo hello\n");

	(void)state;
	assert_true(t->accepted);
	assert_string_equal(t->entries[0].command, "hello");
}

static void numbers_overflow_as_in_cron(void **state)
{
	(void)state;
	expect_schedule("4294967301 * * * *", "5 * * * *");
	expect_refused("2147483648 * * * * x\n", "bad minute", 1, 1);
	expect_refused("99999999999999999999 * * * * x\n", "bad minute", 1, 1);
}

static void reversed_ranges_match_nothing(void **state)
{
	AUTO(crontab) *t = parse("0 22-6 * * * x\n0 0 20-10 * 1 y\n0 0 15 * fri-mon z\n0 8,22-6 * * * a\n");
	static const char *const want[] = {"manual", "0 0 * * MON", "0 0 15 * *", "0 8 * * *"};

	(void)state;
	assert_true(t->accepted);
	assert_true(t->entries[0].never);
	assert_false(t->entries[1].never);
	for (size_t i = 0; i < ELEMENTS(want); i++) {
		AUTO_DONE(buf) out = {};

		crontab_schedule(&t->entries[i], &out);
		assert_string_equal(out.data, want[i]);
	}
	assert_int_equal(finding(t, "reversed-range")->column, 3);
	assert_non_null(strstr(finding(t, "reversed-range")->text, "22-23,0-6"));
}

static void the_first_character_decides_the_day_rule(void **state)
{
	(void)state;
	expect_schedule("0 0 13 * FRI", "0 0 13 * FRI");
	expect_schedule("0 0 */2 * 1", "0 0 */2 * MON");
	expect_schedule("0 0 1 * */2", "0 0 1 * */2");
	expect_schedule("0 0 *,1 * 1", "0 0 * * MON");
	expect_schedule("0 0 1,* * 1", "0 0 1-31 * MON");
	expect_schedule("0 0 1-31 * 1", "0 0 1-31 * MON");
}

static void dates_that_do_not_exist_never_match(void **state)
{
	AUTO(crontab) *t = parse("0 0 30 2 * x\n0 0 31 4,6 * y\n0 0 29 2 * z\n0 0 30 2 1 a\n");

	(void)state;
	assert_true(t->entries[0].never);
	assert_true(t->entries[1].never);
	assert_false(t->entries[2].never);
	assert_false(t->entries[3].never);
	assert_non_null(finding(t, "never"));
}

static void percent_signs_split_the_command(void **state)
{
	(void)state;
	expect_command("date +\\%F", "date +%F", NULL);
	expect_command("cat%one%two", "cat", "one\ntwo\n");
	expect_command("cat%", "cat", NULL);
	expect_command("cat%%", "cat", "\n");
	expect_command("cat%a\\%b%", "cat", "a%b\n");
	expect_command("echo a\\\\b \\n", "echo a\\b \\n", NULL);
	expect_command("cat%a\\\\b\\n", "cat", "a\\\\b\\n\n");
	expect_command("cat%a\\", "cat", "a\\\n");
	expect_command("cat%a%\\", "cat", "a\n\\");
	expect_command("echo \\\\%in", "echo \\", "in\n");
	expect_command("echo x\\", "echo x\\", NULL);
}

static void blanks_and_hashes_of_a_command_are_kept(void **state)
{
	(void)state;
	expect_command("  a  b # c \t", "a  b # c \t", NULL);
	expect_command("a\r", "a\r", NULL);
}

static void a_user_table_may_have_an_empty_command(void **state)
{
	AUTO(crontab) *t = parse("* * * * *\n@daily\n");

	(void)state;
	assert_true(t->accepted);
	assert_int_equal(t->n_entries, 2);
	assert_string_equal(t->entries[0].command, "");
	assert_non_null(finding(t, "no-command"));
	expect_refused("* * * * * * x\n", "bad command", 1, 11);
	expect_refused("1 2 3 4\n", "bad day-of-week", 1, 8);
}

static void system_tables_have_a_user(void **state)
{
	AUTO(crontab) *t = parse_system("1 2 * * * root  cmd\n3 4 * * * ann\tcmd x\n@reboot root cmd\n");
	AUTO(crontab) *unknown = parse_system("1 2 * * * nobody2 cmd\n");
	AUTO(crontab) *missing = parse_system("1 2 * * * root\n3 4 * * * ann x\n");
	AUTO(crontab) *star = parse_system("1 2 * * * root *\n");

	(void)state;
	assert_true(t->accepted);
	assert_string_equal(t->entries[0].user, "root");
	assert_string_equal(t->entries[0].command, " cmd");
	assert_string_equal(t->entries[1].user, "ann");
	assert_string_equal(t->entries[1].command, "cmd x");
	assert_true(t->entries[2].reboot);
	assert_string_equal(crontab_first_error(unknown)->cron_text, "bad username");
	assert_int_equal(crontab_first_error(unknown)->column, 11);
	assert_string_equal(crontab_first_error(missing)->cron_text, "bad username");
	assert_int_equal(crontab_first_error(missing)->line, 1);
	assert_int_equal(missing->n_entries, 1);
	assert_true(star->accepted);
}

static void one_bad_line_refuses_the_table(void **state)
{
	AUTO(crontab) *t = parse("1 * * * * a\n61 * * * * b\n2 * * * * c\nx\n");

	(void)state;
	assert_false(t->accepted);
	assert_int_equal(t->n_entries, 2);
	assert_int_equal(t->count[CRONTAB_LINE_ENTRY], 2);
	assert_int_equal(t->count[CRONTAB_LINE_REFUSED], 2);
	assert_int_equal(crontab_first_error(t)->line, 2);
}

static void the_last_line_needs_a_newline(void **state)
{
	AUTO(crontab) *comment = parse("1 * * * * a\n# end");
	AUTO(crontab) *blank = parse("1 * * * * a\n \t");
	AUTO(crontab) *empty = parse("");
	AUTO(crontab) *shown = parse("A=1\n  2 * * * * b");

	(void)state;
	expect_refused("1 * * * * a\n2 * * * * b", "missing newline before EOF", 2, 12);
	expect_refused("A=1", "missing newline before EOF", 1, 4);
	assert_int_equal(shown->n_entries, 1);
	assert_int_equal(shown->entries[0].line, 2);
	assert_int_equal(shown->entries[0].column, 3);
	assert_string_equal(shown->entries[0].command, "b");
	assert_int_equal(shown->count[CRONTAB_LINE_REFUSED], 1);
	assert_true(comment->accepted);
	assert_true(blank->accepted);
	assert_true(empty->accepted);
	assert_int_equal(empty->n_lines, 0);
}

static void settings_are_read_as_cron_reads_them(void **state)
{
	(void)state;
	expect_setting("A=b", "A", "b");
	expect_setting("  A  =  b c  ", "A", "b c");
	expect_setting("A=\"b c \"", "A", "b c");
	expect_setting("A=\" b\"", "A", " b");
	expect_setting("A='b'", "A", "b");
	expect_setting("A=\"'b'\"", "A", "b");
	expect_setting("A=b\"c\"", "A", "b\"c\"");
	expect_setting("A=\"\"", "A", "");
	expect_setting("A=b # c", "A", "b # c");
	expect_setting("A=$HOME/x", "A", "$HOME/x");
	expect_setting("A=b=c", "A", "b=c");
	expect_setting("\"A B\"=c", "A B", "c");
	expect_setting("'A'=c", "A", "c");
	expect_setting("=c", "", "c");
	expect_setting("*=5 * * * * x", "*", "5 * * * * x");
	expect_setting("A=b\r", "A", "b");
	expect_setting("A=", NULL, NULL);
	expect_setting("A= \t", NULL, NULL);
	expect_setting("A=\"b\" c", NULL, NULL);
	expect_setting("A=\"b", NULL, NULL);
	expect_setting("export A=b", NULL, NULL);
	expect_setting("\"A=b", NULL, NULL);
	expect_setting("\"A=\"=b", NULL, NULL);
}

static void a_setting_applies_to_the_entries_after_it(void **state)
{
	AUTO(crontab) *t = parse("A=1\nB=2\n1 * * * * x\nA=3\nLOGNAME=me\n2 * * * * y\nC=4\n");
	AUTO_DONE(strv) first = {};
	AUTO_DONE(strv) second = {};

	(void)state;
	crontab_env(t, &t->entries[0], &first);
	crontab_env(t, &t->entries[1], &second);
	assert_int_equal(first.n, 2);
	assert_string_equal(first.v[0], "A=1");
	assert_int_equal(second.n, 2);
	assert_string_equal(second.v[0], "B=2");
	assert_string_equal(second.v[1], "A=3");
	assert_string_equal(crontab_get(t, &t->entries[0], "A"), "1");
	assert_null(crontab_get(t, &t->entries[1], "C"));
}

static void lengths_are_limited(void **state)
{
	AUTO_DONE(buf) longest = {};
	AUTO_DONE(buf) longer = {};
	AUTO_DONE(buf) setting = {};
	AUTO(crontab) *t = NULL;
	AUTO(crontab) *u = NULL;

	(void)state;
	buf_str(&longest, "* * * * * ");
	buf_str(&setting, "A=");
	for (int i = 0; i < CRONTAB_COMMAND_MAX; i++)
		buf_char(&longest, 'x');
	for (int i = 0; i < 2000; i++)
		buf_char(&setting, 'v');
	buf_str(&longer, longest.data);
	buf_str(&longest, "\n");
	buf_str(&longer, "x\n");
	buf_str(&setting, "\n1 * * * * y\n");
	t = parse(longest.data);
	assert_true(t->accepted);
	expect_refused(longer.data, "command too long", 1, 11);
	u = parse(setting.data);
	assert_true(u->accepted);
	assert_int_equal(strlen(u->settings[0].value), CRONTAB_COMMAND_MAX - 2);
	assert_non_null(finding(u, "setting-cut"));
}

/* Entries on lines up to 'line', blank lines before the last one. */
static struct crontab *table_of_lines(size_t line)
{
	AUTO_DONE(buf) text = {};

	for (size_t i = 1; i < line; i++)
		buf_char(&text, '\n');
	buf_str(&text, "1 * * * * x\n");
	return parse_bytes(text.data, text.len, CRONTAB_DEBIAN, false);
}

static void the_number_of_lines_is_limited(void **state)
{
	AUTO(crontab) *crontab_limit = table_of_lines(10000);
	AUTO(crontab) *more = table_of_lines(10001);
	AUTO(crontab) *daemon_limit = table_of_lines(10003);
	AUTO(crontab) *too_many = table_of_lines(10004);

	(void)state;
	assert_false(crontab_limit->too_long);
	assert_true(more->too_long);
	assert_true(more->accepted);
	assert_true(daemon_limit->accepted);
	assert_false(too_many->accepted);
	assert_non_null(finding(too_many, "too-many-lines"));
}

static void unusual_bytes_are_read_as_cron_reads_them(void **state)
{
	static const char nul[] = "1 * * * * a\0" "2 * * * * b\n";
	static const char nul_setting[] = "A=1\0B=2\n3 * * * * c\n";
	AUTO(crontab) *t = parse_bytes(nul, sizeof nul - 1, CRONTAB_DEBIAN, false);
	AUTO(crontab) *s = parse_bytes(nul_setting, sizeof nul_setting - 1, CRONTAB_DEBIAN, false);
	AUTO(crontab) *latin = parse("1 * * * * caf\xe9\n");

	(void)state;
	assert_true(t->accepted);
	assert_int_equal(t->n_entries, 2);
	assert_int_equal(t->entries[1].line, 1);
	assert_string_equal(t->entries[1].command, "b");
	assert_int_equal(s->n_settings, 2);
	assert_true(latin->accepted);
	expect_refused("\xef\xbb\xbf" "1 * * * * x\n", "bad minute", 1, 1);
	expect_refused("1\xc2\xa0* * * * x\n", "bad day-of-week", 1, 12);
	expect_refused("\r\n", "bad minute", 1, 1);
	expect_refused("\f\n", "bad minute", 1, 1);
	expect_refused("1 * * * * \xffx\n", "bad day-of-week", 1, 11);
	expect_refused("1\xff * * * * x\n", "bad minute", 1, 2);
	expect_refused("*\xff * * * * x\n", "bad minute", 1, 2);
}

static void comments_are_whole_lines(void **state)
{
	AUTO(crontab) *t = parse("# a\n  # b\n\n \t\n1 * * * * c # d\nA=1\n");

	(void)state;
	assert_true(t->accepted);
	assert_int_equal(t->count[CRONTAB_LINE_COMMENT], 2);
	assert_int_equal(t->count[CRONTAB_LINE_BLANK], 2);
	assert_int_equal(t->count[CRONTAB_LINE_ENTRY], 1);
	assert_int_equal(t->count[CRONTAB_LINE_SETTING], 1);
	assert_int_equal(t->n_lines, 6);
	assert_int_equal(t->entries[0].line, 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(fields_become_schedules),
		TEST(names_have_three_letters_and_belong_to_their_fields),
		TEST(values_outside_a_field_are_refused),
		TEST(steps_need_a_range_and_a_positive_number),
		TEST(lists_have_no_empty_items),
		TEST(text_after_a_value_is_ignored),
		TEST(the_command_may_touch_the_last_field),
		TEST(numbers_overflow_as_in_cron),
		TEST(reversed_ranges_match_nothing),
		TEST(the_first_character_decides_the_day_rule),
		TEST(dates_that_do_not_exist_never_match),
		TEST(percent_signs_split_the_command),
		TEST(blanks_and_hashes_of_a_command_are_kept),
		TEST(a_user_table_may_have_an_empty_command),
		TEST(system_tables_have_a_user),
		TEST(one_bad_line_refuses_the_table),
		TEST(the_last_line_needs_a_newline),
		TEST(settings_are_read_as_cron_reads_them),
		TEST(a_setting_applies_to_the_entries_after_it),
		TEST(lengths_are_limited),
		TEST(the_number_of_lines_is_limited),
		TEST(unusual_bytes_are_read_as_cron_reads_them),
		TEST(comments_are_whole_lines),
	};

	return RUN_TESTS(tests);
}
