/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the command line: verbs, options, job definitions and help. */
#include "unit/unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/args.h"
#include "jobctl/help.h"
#include "jobctl/render/table.h"
#include "jobctl/spec/spec_args.h"
#include "jobctl/spec/spec_command.h"
#include "jobctl/verbs/verbs.h"
#include <string.h>

/* ---- options ---- */

static bool parse_add(struct args **ret, struct err *e, const char **words)
{
	struct opt opts[OPTS_MAX];
	struct args_how how = {.opts = opts,
		.count = verb_opts(verb_find(verbs, "add"), opts),
		.command = true};
	int n = 0;

	while (words[n])
		n++;
	return args_parse(&how, n, (char **)words, ret, e);
}
#define PARSE_ADD(ret, e, ...) parse_add(ret, e, (const char *[]){"add", __VA_ARGS__, NULL})

static void options_of_the_command_are_not_parsed(void **state)
{
	AUTO(args) *a = NULL;
	AUTO(args) *b = NULL;
	struct err e = {};
	char *const *words;

	(void)state;
	assert_true(PARSE_ADD(&a, &e, "-n", "x", "--", "ls", "-n", "--name=y", "--", "", "-"));
	assert_string_equal(args_last(a, "name"), "x");
	assert_int_equal(args_count(a, "name"), 1);
	assert_int_equal(args_operands(a, &words), 6);
	assert_string_equal(words[3], "--");
	assert_string_equal(words[4], "");
	assert_true(PARSE_ADD(&b, &e, "ls", "-n", "y"));
	assert_int_equal(args_operands(b, &words), 3);
	assert_false(args_has(b, "name"));
}

static void options_may_follow_operands_of_other_verbs(void **state)
{
	struct opt opts[OPTS_MAX];
	struct args_how how = {.opts = opts, .count = verb_opts(verb_find(verbs, "log"), opts)};
	const char *words[] = {"log", "12", "-f", "-n5", NULL};
	AUTO(args) *a = NULL;
	struct err e = {};
	char *const *operands;

	(void)state;
	assert_true(args_parse(&how, 4, (char **)words, &a, &e));
	assert_true(args_has(a, "follow"));
	assert_string_equal(args_last(a, "lines"), "5");
	assert_int_equal(args_operands(a, &operands), 1);
}

static void messages_name_wrong_options(void **state)
{
	AUTO(args) *a = NULL;
	struct err e = {};

	(void)state;
	assert_false(PARSE_ADD(&a, &e, "--bogus", "--", "x"));
	assert_non_null(strstr(e.msg, "'--bogus'"));
	assert_false(PARSE_ADD(&a, &e, "-Q"));
	assert_non_null(strstr(e.msg, "'-Q'"));
	assert_false(PARSE_ADD(&a, &e, "--name"));
	assert_non_null(strstr(e.msg, "'--name'"));
	assert_false(PARSE_ADD(&a, &e, "--follow=yes"));
	assert_null(a);
}

static void an_empty_value_is_a_value(void **state)
{
	char value[] = "", operand[] = ""; /* distinct arrays, as in a real argv */
	AUTO(args) *a = NULL;
	struct err e = {};
	char *const *words;

	(void)state;
	assert_true(PARSE_ADD(&a, &e, "--key", value, "--", operand));
	assert_string_equal(args_last(a, "key"), "");
	assert_int_equal(args_operands(a, &words), 1);
	assert_string_equal(words[0], "");
	assert_true(args_dashed(a));
}

static void dashes_as_a_value_are_not_the_end_of_options(void **state)
{
	AUTO(args) *a = NULL;
	AUTO(args) *b = NULL;
	struct err e = {};

	(void)state;
	assert_true(PARSE_ADD(&a, &e, "--key", "--", "x"));
	assert_false(args_dashed(a));
	assert_true(PARSE_ADD(&b, &e, "--key", "y", "--", "x"));
	assert_true(args_dashed(b));
}

/* ---- job definitions ---- */

static bool spec_of(struct job_spec *s, struct err *e, const char **words)
{
	AUTO(args) *a = NULL;

	job_spec_init(s);
	return parse_add(&a, e, words) && spec_args_read(s, a, e);
}
#define SPEC_OF(s, e, ...) spec_of(s, e, (const char *[]){"add", __VA_ARGS__, NULL})

static void options_set_the_fields_of_the_job(void **state)
{
	AUTO_DONE(job_spec) s;
	struct err e = {};

	(void)state;
	setenv("TEST_JOBCTL", "mine", 1);
	assert_true(SPEC_OF(&s, &e, "-n", "x", "-e", "A=1", "-e", "B=2", "-e", "A=3",
		"-eTEST_JOBCTL", "--timeout", "1h30m", "--umask", "27", "--output-limit", "64K",
		"-p", "-5", "--grace", "0", "-C", "/tmp", "--every", "15m"));
	assert_string_equal(s.name, "x");
	assert_int_equal(s.env.n, 3);
	assert_string_equal(s.env.v[0], "A=3");
	assert_string_equal(s.env.v[2], "TEST_JOBCTL=mine");
	assert_int_equal(s.timeout, 90 * USEC_MIN);
	assert_int_equal(s.umask, 027);
	assert_int_equal(s.output_limit, 65536);
	assert_int_equal(s.priority, -5);
	assert_int_equal(s.grace, 0);
	assert_string_equal(s.cwd, "/tmp");
	assert_string_equal(s.schedule.v[0], "every 15m");
}

static void schedule_options_become_schedules(void **state)
{
	static const struct {
		const char *flag, *value;
		const char *text;
	} rows[] = {
		{"--in", "3h", "now + 3h"},
		{"--in", "1h30m", "now + 5400s"},
		{"--every", "15m", "every 15m"},
		{"--at", "@17", "@17"},
		{"--cron", "0 2 * * *", "0 2 * * *"},
		{"--iso", "PT3H", "PT3H"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_DONE(job_spec) s;
		struct err e = {};

		assert_true(SPEC_OF(&s, &e, rows[i].flag, rows[i].value));
		assert_int_equal(s.schedule.n, 1);
		assert_string_equal(s.schedule.v[0], rows[i].text);
	}
}

static void messages_name_the_option_of_a_wrong_value(void **state)
{
	static const struct {
		const char *flag, *value;
	} rows[] = {
		{"--name", "12"},
		{"--name", "a b"},
		{"--env", "1A=x"},
		{"--env", "NOT_SET_ANYWHERE"},
		{"--env", "JOBSCHED_RUN=1"},
		{"--tag", "x"},
		{"--umask", "8"},
		{"--umask", "1000"},
		{"--priority", "101"},
		{"--priority", "x"},
		{"--timeout", "soon"},
		{"--output-limit", "-1"},
		{"--stdin", "/nonexistent"},
		{"--env-file", "/nonexistent"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_DONE(job_spec) s;
		struct err e = {};

		if (SPEC_OF(&s, &e, rows[i].flag, rows[i].value))
			fail_msg("%s %s was accepted", rows[i].flag, rows[i].value);
		if (!text_starts(e.msg, rows[i].flag))
			fail_msg("%s %s: %s", rows[i].flag, rows[i].value, e.msg);
	}
}

static void only_one_schedule_option_can_be_given(void **state)
{
	AUTO_DONE(job_spec) two;
	AUTO_DONE(job_spec) twice;
	AUTO_DONE(job_spec) crons;
	struct err e = {};

	(void)state;
	assert_false(SPEC_OF(&two, &e, "--at", "@17", "--in", "3h"));
	assert_false(SPEC_OF(&twice, &e, "--in", "3h", "--in", "4h"));
	assert_true(SPEC_OF(&crons, &e, "--cron", "0 2 * * *", "--cron", "0 4 * * *"));
	assert_int_equal(crons.schedule.n, 2);
}

static void the_command_of_a_job_creates_an_equal_job(void **state)
{
	AUTO_DONE(job_spec) s;
	AUTO_DONE(buf) out = {};
	struct err e = {};

	(void)state;
	assert_true(SPEC_OF(&s, &e, "-n", "x", "-e", "A=it's", "-t", "k=v", "--timeout", "90s",
		"--umask", "027", "-p", "7", "-C", "/", "--every", "15m", "--tz", "Europe/Berlin"));
	spec_args_set_command(&s, (char *const *)(const char *[]){"echo", "a b", "$x", NULL}, 3);
	spec_command_write(&s, NULL, &out);
	assert_string_equal(out.data,
		"jobctl add --name x --tz Europe/Berlin --env 'A=it'\\''s' --tag k=v --cwd / "
		"--umask 027 --priority 7 --timeout 1m30s --every 15m -- echo 'a b' '$x'");
}

static void a_single_word_stays_a_script_or_a_command(void **state)
{
	AUTO_DONE(job_spec) script = {};
	AUTO_DONE(job_spec) command = {};
	AUTO_DONE(buf) a = {};
	AUTO_DONE(buf) b = {};

	(void)state;
	job_spec_init(&script);
	job_spec_init(&command);
	script.script = xstrdup("true");
	spec_command_write(&script, NULL, &a);
	assert_string_equal(a.data, "jobctl add -- ' true'");
	strv_add(&command.command, "/opt/my program");
	spec_command_write(&command, NULL, &b);
	assert_string_equal(b.data, "jobctl add -- ''\\''/opt/my program'\\'''");
}

/* ---- verbs and help ---- */

static void the_help_of_a_verb_has_one_option_per_line(void **state)
{
	(void)state;
	for (const struct verb *v = verbs; v->name; v++) {
		AUTO_DONE(buf) out = {};
		struct opt opts[OPTS_MAX];
		size_t n = verb_opts(v, opts), found = 0;

		help_verb(v, &out);
		assert_non_null(strstr(out.data, v->name));
		for (const char *line = out.data; line; line = strchr(line, '\n')) {
			line += *line == '\n';
			found += text_starts(line, "  -") || text_starts(line, "      --");
		}
		assert_int_equal(found, n);
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < i; k++)
				if (strcmp(opts[i].name, opts[k].name) == 0 ||
					(opts[i].letter && opts[i].letter == opts[k].letter))
					fail_msg("'%s' has two options like --%s", v->name,
						opts[i].name);
	}
}

static void the_overview_fits_80_columns_and_has_every_verb(void **state)
{
	AUTO_DONE(buf) out = {};

	(void)state;
	help_all(verbs, &out);
	for (const char *line = out.data, *end; (end = strchr(line, '\n')); line = end + 1)
		if (table_text_width(line, (size_t)(end - line)) > 80)
			fail_msg("wider than 80 columns: %.*s", (int)(end - line), line);
	for (const struct verb *v = verbs; v->name; v++) {
		AUTO_TEXT line = xprintf("\n  %-16s%s\n", v->name, v->help);

		assert_true(v->hidden == !strstr(out.data, line));
	}
	assert_non_null(strstr(out.data, "\nInspect jobs and runs:\n  list "));
}

static void the_options_of_add_have_headings(void **state)
{
	AUTO_DONE(buf) out = {};

	(void)state;
	help_verb(verb_find(verbs, "add"), &out);
	assert_non_null(strstr(out.data, "\nWhen to run:\n      --at TIME"));
	assert_non_null(strstr(out.data, "\nFailures and notices:\n      --retries N"));
}

static const struct verb shop[] = {
	{.name = "queue"},
	{.name = "shelf add", .help = "adds one"},
	{.name = "shelf list", .help = "lists them", .bare = true},
	{.name = "box open", .help = "opens it"},
	{.name = "list"},
	{},
};

static void a_verb_of_two_words_is_found_by_both(void **state)
{
	static const struct {
		const char *words[3], *name;
		size_t used;
	} rows[] = {
		{{"shelf", "add", "x"}, "shelf add", 2},
		{{"shelf", "list"}, "shelf list", 2},
		{{"shelf"}, "shelf list", 1},
		{{"shelf", "--json"}, "shelf list", 1},
		{{"shelf", "lost"}, NULL, 0},
		{{"shelf add"}, NULL, 0},
		{{"box"}, NULL, 0},
		{{"box", "-h"}, NULL, 0},
		{{"list", "add"}, "list", 1},
		{{"queue", "add"}, "queue", 1},
		{{"shel", "add"}, NULL, 0},
		{{"add"}, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		size_t n = 0, used = 9;
		const struct verb *v;

		while (n < 3 && rows[i].words[n])
			n++;
		v = verb_match(shop, (char *const *)rows[i].words, n, &used);
		if (rows[i].name)
			assert_string_equal(v ? v->name : "none", rows[i].name);
		else
			assert_null(v);
		assert_int_equal(used, rows[i].used);
	}
}

static void the_help_of_a_group_lists_its_verbs(void **state)
{
	AUTO_DONE(buf) out = {};

	(void)state;
	help_group(shop, "shelf", &out);
	assert_non_null(strstr(out.data, "\n  shelf add       adds one\n"));
	assert_non_null(strstr(out.data, "\n  shelf list      lists them (default)"));
	assert_null(strstr(out.data, "box"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(options_of_the_command_are_not_parsed),
		TEST(options_may_follow_operands_of_other_verbs),
		TEST(messages_name_wrong_options),
		TEST(an_empty_value_is_a_value),
		TEST(dashes_as_a_value_are_not_the_end_of_options),
		TEST(options_set_the_fields_of_the_job),
		TEST(schedule_options_become_schedules),
		TEST(messages_name_the_option_of_a_wrong_value),
		TEST(only_one_schedule_option_can_be_given),
		TEST(the_command_of_a_job_creates_an_equal_job),
		TEST(a_single_word_stays_a_script_or_a_command),
		TEST(the_help_of_a_verb_has_one_option_per_line),
		TEST(the_overview_fits_80_columns_and_has_every_verb),
		TEST(the_options_of_add_have_headings),
		TEST(a_verb_of_two_words_is_found_by_both),
		TEST(the_help_of_a_group_lists_its_verbs),
	};

	return RUN_TESTS(tests);
}
