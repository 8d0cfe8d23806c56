/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of jobctl that need no daemon: names, words, tables, escaping, options. */
#include "unit.h"

#include "args.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "help.h"
#include "job_env.h"
#include "out.h"
#include "output.h"
#include "ref.h"
#include "rows.h"
#include "shell.h"
#include "spec_args.h"
#include "suggest.h"
#include "table.h"
#include "verbs.h"
#include "wire/codec.h"
#include "words.h"
#include "zone_here.h"
#include <string.h>

static const char *text_of(struct buf *b)
{
	return b->data ? b->data : "";
}

/* ---- names of things ---- */

static void a_number_is_a_job_and_a_hash_makes_a_run(void **state)
{
	struct err e = {};
	struct ref r;

	(void)state;
	assert_true(ref_parse("12", &r, &e));
	assert_true(r.job == 12 && r.run == 0 && !r.name[0]);
	assert_true(ref_parse("backup", &r, &e));
	assert_true(r.job == 0 && r.run == 0);
	assert_string_equal(r.name, "backup");
	assert_true(ref_parse("backup#17", &r, &e));
	assert_int_equal(r.run, 17);
	assert_string_equal(r.name, "backup");
	assert_true(ref_parse("12#17", &r, &e));
	assert_true(r.job == 12 && r.run == 17);
	assert_true(ref_parse("#17", &r, &e));
	assert_true(r.job == 0 && r.run == 17 && !r.name[0]);
}

static void what_cannot_be_a_name_is_refused(void **state)
{
	static const char *const wrong[] = {"", "#", "a#", "a#b", "a#0", "a#-1", "#1#2", "0", "a b", "a/b", "../x",
		"99999999999999999999", "a#99999999999999999999", "ä", "a#1 "};
	struct ref r;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(wrong); i++) {
		struct err e = {};

		if (ref_parse(wrong[i], &r, &e))
			fail_msg("'%s' was taken", wrong[i]);
		assert_int_equal(e.kind, ERR_INVALID);
	}
}

static void a_run_matches_only_the_job_named_before_it(void **state)
{
	struct ref r;

	(void)state;
	assert_true(ref_parse("backup#17", &r, NULL));
	assert_true(ref_job_matches(&r, 12, "backup"));
	assert_false(ref_job_matches(&r, 12, "other"));
	assert_false(ref_job_matches(&r, 12, NULL));
	assert_true(ref_parse("12#17", &r, NULL));
	assert_true(ref_job_matches(&r, 12, NULL));
	assert_false(ref_job_matches(&r, 13, NULL));
	assert_true(ref_parse("#17", &r, NULL));
	assert_true(ref_job_matches(&r, 13, NULL));
}

static void the_nearest_name_is_suggested_and_a_far_one_is_not(void **state)
{
	AUTO_DONE(suggestion) s = {.typed = "bakcup"};
	AUTO_DONE(suggestion) far = {.typed = "bakcup"};
	AUTO_DONE(suggestion) brief = {.typed = "nope"};

	(void)state;
	suggestion_offer(&s, "report");
	suggestion_offer(&s, "backups");
	suggestion_offer(&s, "backup");
	suggestion_offer(&s, "back");
	assert_string_equal(s.best, "backup");
	suggestion_offer(&far, "report");
	assert_null(far.best);
	suggestion_offer(&brief, "noon");
	assert_null(brief.best);
	suggestion_offer(&brief, "node");
	assert_string_equal(brief.best, "node");
	assert_int_equal(suggest_distance("ab", "ba"), 1);
	assert_int_equal(suggest_distance("", "abc"), 3);
	assert_int_equal(suggest_distance("kitten", "sitting"), 3);
}

/* ---- words ---- */

static void times_are_told_from_now(void **state)
{
	static const struct {
		usec_t away;
		const char *words;
	} rows[] = {
		{0, "now"}, {999 * USEC_MSEC, "now"}, {-999 * USEC_MSEC, "now"}, {5 * USEC_SEC, "in 5s"},
		{5 * USEC_SEC - 100 * USEC_MSEC, "in 5s"}, {5 * USEC_SEC + 100 * USEC_MSEC, "in 5s"}, {-5 * USEC_SEC, "5s ago"},
		{90 * USEC_SEC, "in 1m30s"}, {-2 * USEC_HOUR, "2h ago"},
		{-(2 * USEC_HOUR + 5 * USEC_MIN + 7 * USEC_SEC), "2h5m ago"}, {3 * USEC_DAY + USEC_HOUR, "in 3d1h"},
		{100 * USEC_DAY, "2024-02-22"},
	};
	const usec_t now = INT64_C(1700000000) * USEC_SEC;
	char out[WORDS_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		assert_string_equal(words_relative(now + rows[i].away, now, out), rows[i].words);
}

static void durations_and_sizes_are_short(void **state)
{
	char out[WORDS_MAX];

	(void)state;
	assert_string_equal(words_duration(12 * USEC_MSEC, out), "12ms");
	assert_string_equal(words_duration(1500 * USEC_MSEC, out), "1.5s");
	assert_string_equal(words_duration(185 * USEC_SEC, out), "3m5s");
	assert_string_equal(words_duration(51 * USEC_HOUR, out), "2d3h");
	assert_string_equal(words_duration(-1, out), "0ms");
	assert_string_equal(words_size(12, out), "12 B");
	assert_string_equal(words_size(1536, out), "1.5 KiB");
	assert_string_equal(words_size(10 * 1024 * 1024, out), "10.0 MiB");
}

static void a_result_says_code_signal_or_reason(void **state)
{
	static const struct {
		const char *run, *words;
	} rows[] = {
		{"{\"exit_code\":3,\"signal\":null,\"reason\":null}", "exit code 3"},
		{"{\"exit_code\":null,\"signal\":9,\"reason\":null}", "killed by SIGKILL"},
		{"{\"exit_code\":0,\"signal\":null,\"reason\":null}", ""},
		{"{\"exit_code\":null,\"signal\":15,\"reason\":\"replaced\"}", "killed by SIGTERM, replaced"},
		{"{\"reason\":\"overlap\"}", "overlap"},
		{"{\"reason\":\"not_started\"}", "not started"},
		{"{\"reason\":\"not_started\",\"attempts\":[{\"error\":null},{\"error\":\"no x\"}]}", "no x"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		json_auto_t *run = json_loads(rows[i].run, 0, NULL);
		AUTO_DONE(buf) out = {};

		words_result(run, &out);
		assert_string_equal(text_of(&out), rows[i].words);
	}
}

/* ---- shells ---- */

static void one_word_with_shell_syntax_is_a_script(void **state)
{
	static const char *const scripts[] = {"echo hello", "a|b", "a;b", "a&", "$HOME/x", "~/x", "a>b", "a*", "'a'",
		"`a`", "a\nb", "(a)", "{a}", "a\\b", "#a", "a\tb", "!a"};
	static const char *const plain[] = {"true", "/usr/bin/true", "./run-me", "a=b", "backup.sh", "a,b:c@d%e+f", "ä"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(scripts); i++)
		if (!shell_syntax(scripts[i]))
			fail_msg("'%s' was taken as plain", scripts[i]);
	for (size_t i = 0; i < ELEMENTS(plain); i++)
		if (shell_syntax(plain[i]))
			fail_msg("'%s' was taken as a script", plain[i]);
}

static void several_words_stay_what_they_are(void **state)
{
	char *const *words = (char *const *)(const char *[]){"echo", "a b", "$x", "", NULL};
	AUTO_DONE(job_spec) one;
	AUTO_DONE(job_spec) many;
	AUTO_DONE(job_spec) plain;

	(void)state;
	job_spec_init(&one);
	job_spec_init(&many);
	job_spec_init(&plain);
	spec_take_words(&many, words, 4);
	assert_null(many.script);
	assert_int_equal(many.command.n, 4);
	assert_string_equal(many.command.v[2], "$x");
	assert_string_equal(many.command.v[3], "");
	spec_take_words(&one, words + 1, 1);
	assert_string_equal(one.script, "a b");
	assert_int_equal(one.command.n, 0);
	spec_take_words(&plain, words, 1);
	assert_null(plain.script);
	assert_string_equal(plain.command.v[0], "echo");
}

static void a_quoted_word_is_one_word_again(void **state)
{
	static const struct {
		const char *word, *quoted;
	} rows[] = {
		{"plain", "plain"}, {"", "''"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"}, {"$x", "'$x'"},
		{"a\nb", "$'a\\nb'"}, {"\033[2J", "$'\\033[2J'"}, {"\xff'", "$'\\377\\''"}, {"K=V", "K=V"},
		{"a\\\n", "$'a\\\\\\n'"}, {"~", "'~'"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_DONE(buf) out = {};

		shell_quote(&out, rows[i].word);
		assert_string_equal(out.data, rows[i].quoted);
	}
}

/* ---- options ---- */

static bool parse_add(struct args **ret, struct err *e, const char **words)
{
	struct opt opts[OPTS_MAX];
	struct args_how how = {.opts = opts, .count = verb_opts(verb_find("add"), opts), .command = true};
	int n = 0;

	while (words[n])
		n++;
	return args_parse(&how, n, (char **)words, ret, e);
}
#define PARSE_ADD(ret, e, ...) parse_add(ret, e, (const char *[]){"add", __VA_ARGS__, NULL})

static void options_of_the_command_are_left_alone(void **state)
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
	struct args_how how = {.opts = opts, .count = verb_opts(verb_find("log"), opts)};
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

static void wrong_options_are_named(void **state)
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
	char value[] = "", operand[] = ""; /* the words of a real command line are all apart */
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

static void dashes_are_told_from_a_value_that_looks_like_them(void **state)
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

static bool spec_of(struct job_spec *s, struct err *e, const char **words)
{
	AUTO(args) *a = NULL;

	job_spec_init(s);
	return parse_add(&a, e, words) && spec_from_args(s, a, e);
}
#define SPEC_OF(s, e, ...) spec_of(s, e, (const char *[]){"add", __VA_ARGS__, NULL})

static void options_fill_the_fields_of_the_job(void **state)
{
	AUTO_DONE(job_spec) s;
	struct err e = {};

	(void)state;
	setenv("TEST_JOBCTL", "mine", 1);
	assert_true(SPEC_OF(&s, &e, "-n", "x", "-e", "A=1", "-e", "B=2", "-e", "A=3", "-eTEST_JOBCTL", "--timeout", "1h30m",
		"--umask", "27", "--output-limit", "64K", "-p", "-5", "--grace", "0", "-C", "/tmp", "--every", "15m"));
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

static void times_become_texts_of_the_schedule_language(void **state)
{
	static const struct {
		const char *flag, *value;
		const char *text;
	} rows[] = {
		{"--in", "3h", "now + 3h"}, {"--in", "1h30m", "now + 5400s"}, {"--every", "15m", "every 15m"}, {"--at", "@17", "@17"},
		{"--cron", "0 2 * * *", "0 2 * * *"}, {"--iso", "PT3H", "PT3H"},
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

static void wrong_values_name_their_option(void **state)
{
	static const struct {
		const char *flag, *value;
	} rows[] = {
		{"--name", "12"}, {"--name", "a b"}, {"--env", "1A=x"}, {"--env", "NOT_SET_ANYWHERE"},
		{"--env", "JOBSCHED_RUN=1"}, {"--tag", "x"}, {"--umask", "8"}, {"--umask", "1000"}, {"--priority", "101"},
		{"--priority", "x"}, {"--timeout", "soon"}, {"--output-limit", "-1"}, {"--stdin", "/nonexistent"},
		{"--env-file", "/nonexistent"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_DONE(job_spec) s;
		struct err e = {};

		if (SPEC_OF(&s, &e, rows[i].flag, rows[i].value))
			fail_msg("%s %s was taken", rows[i].flag, rows[i].value);
		if (!text_starts(e.msg, rows[i].flag))
			fail_msg("%s %s: %s", rows[i].flag, rows[i].value, e.msg);
	}
}

static void only_one_kind_of_time_can_be_given(void **state)
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

/* A spec as words, the words as a spec again: the JSON must be equal. */
static void the_command_that_makes_a_job_makes_an_equal_one(void **state)
{
	AUTO_DONE(job_spec) s;
	AUTO_DONE(buf) out = {};
	struct err e = {};

	(void)state;
	assert_true(SPEC_OF(&s, &e, "-n", "x", "-e", "A=it's", "-t", "k=v", "--timeout", "90s", "--umask", "022", "-p", "7",
		"-C", "/", "--every", "15m", "--tz", "Europe/Berlin"));
	spec_take_words(&s, (char *const *)(const char *[]){"echo", "a b", "$x", NULL}, 3);
	spec_to_words(&s, NULL, &out);
	assert_string_equal(out.data, "jobctl add --name x --tz Europe/Berlin --env 'A=it'\\''s' --tag k=v --cwd / "
				      "--umask 022 --priority 7 --timeout 1m30s --every 15m -- echo 'a b' '$x'");
}

static void a_single_word_keeps_its_kind_as_a_command(void **state)
{
	AUTO_DONE(job_spec) script = {};
	AUTO_DONE(job_spec) command = {};
	AUTO_DONE(buf) a = {};
	AUTO_DONE(buf) b = {};

	(void)state;
	job_spec_init(&script);
	job_spec_init(&command);
	script.script = xstrdup("true");
	spec_to_words(&script, NULL, &a);
	assert_string_equal(a.data, "jobctl add -- ' true'");
	strv_add(&command.command, "/opt/my program");
	spec_to_words(&command, NULL, &b);
	assert_string_equal(b.data, "jobctl add -- ''\\''/opt/my program'\\'''");
}

static void variables_that_look_like_secrets_are_masked(void **state)
{
	AUTO_TEXT masked = job_env_masked("API_TOKEN=abc=d", false);
	AUTO_TEXT shown = job_env_masked("API_TOKEN=abc", true);
	AUTO_TEXT plain = job_env_masked("COLOR=red", false);

	(void)state;
	assert_string_equal(masked, "API_TOKEN=***");
	assert_string_equal(shown, "API_TOKEN=abc");
	assert_string_equal(plain, "COLOR=red");
	assert_true(job_env_secret("db_password=x"));
	assert_true(job_env_secret("SSH_KEY=x"));
	assert_false(job_env_secret("KEYBOARD=x"));
}

static void the_zone_is_read_from_what_systems_say(void **state)
{
	static const struct {
		const char *text, *zone;
	} rows[] = {
		{"Europe/Berlin", "Europe/Berlin"}, {":Europe/Berlin", "Europe/Berlin"}, {"UTC\n", "UTC"},
		{"/usr/share/zoneinfo/America/New_York", "America/New_York"},
		{"../usr/share/zoneinfo/Etc/GMT+5", "Etc/GMT+5"}, {"CET-1CEST,M3.5.0,M10.5.0/3", NULL},
		{"CET-1CEST", NULL}, {"", NULL}, {"/etc/somewhere", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_TEXT zone = zone_name_in(rows[i].text);

		if (!text_equal(zone, rows[i].zone))
			fail_msg("'%s' gave '%s'", rows[i].text, zone ? zone : "(none)");
	}
}

/* ---- help ---- */

static void every_verb_has_help_with_one_option_a_line(void **state)
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
					fail_msg("'%s' has two options like --%s", v->name, opts[i].name);
	}
}

/* ---- tables ---- */

static const struct table_column two_columns[] = {{"ID", true, false}, {"STATE", false, true}, {"NAME", false, false}};

static void columns_are_aligned_and_nothing_trails(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	for (size_t i = 0; i < 6; i++)
		table_cell(&t, (const char *const[]){"7", "active", "a", "1234", "x", ""}[i]);
	table_flush(&t, &out);
	assert_string_equal(out.data, "  ID  STATE   NAME\n   7  active  a\n1234  x\n");
}

static void later_pages_keep_the_columns(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, "abc");
	table_flush(&t, &out);
	buf_clear(&out);
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, "x");
	table_flush(&t, &out);
	assert_string_equal(out.data, "  x  x      x\n");
}

static void lines_are_cut_to_the_terminal(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	t.width = 14;
	for (size_t i = 0; i < 6; i++)
		table_cell(&t, (const char *const[]){"7", "x", "abcdefgh", "8", "x", "日本語"}[i]);
	table_flush(&t, &out);
	assert_string_equal(out.data, "ID  STATE  NA…\n 7  x      ab…\n 8  x      日…\n");
}

static void only_state_words_are_coloured_and_colour_takes_no_room(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	t.colour = true;
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, (const char *const[]){"7", "failed", "failed"}[i]);
	table_flush(&t, &out);
	assert_string_equal(out.data, "ID  STATE   NAME\n 7  \033[31mfailed\033[0m  failed\n");
}

static void control_characters_in_cells_are_shown_not_sent(void **state)
{
	AUTO_DONE(table) t;
	AUTO_DONE(buf) out = {};

	(void)state;
	table_init(&t, two_columns, 3);
	for (size_t i = 0; i < 3; i++)
		table_cell(&t, (const char *const[]){"1", "\033[2J", "a\nb\r\u202e\x9b"}[i]);
	table_flush(&t, &out);
	assert_null(strchr(out.data, '\033'));
	assert_null(strchr(out.data, '\r'));
	assert_non_null(strstr(out.data, "\\x1b[2J"));
	assert_non_null(strstr(out.data, "a\\nb\\r\\u202e\\x9b"));
}

/* ---- JSON and output ---- */

static void json_carries_no_control_character(void **state)
{
	json_auto_t *o = json_object();
	AUTO_DONE(buf) out = {};
	json_t *again;

	(void)state;
	json_object_set_new(o, "x", json_string("\033[2J\x7f\xc2\x9b\u202e\U000e0041ä\"\\\n"));
	json_object_set_new(o, "cpu", json_real(0.1));
	json_show(o, JSON_COMPACT, &out);
	assert_string_equal(out.data,
		"{\"x\":\"\\u001B[2J\\u007f\\u009b\\u202e\\udb40\\udc41ä\\\"\\\\\\n\",\"cpu\":0.1}");
	again = json_loads(out.data, 0, NULL);
	assert_true(json_equal(o, again));
	json_decref(again);
}

static void output_for_a_terminal_is_escaped_but_for_lines_and_tabs(void **state)
{
	AUTO_DONE(output) o = {};

	(void)state;
	output_put(&o, "a\tb\n\033]52;c;x\a\r", 14);
	output_end(&o);
	assert_string_equal(o.out.data, "a\tb\n\\x1b]52;c;x\\x07\\r");
}

static void a_character_split_between_two_pieces_stays_whole(void **state)
{
	const char *text = "aä日😀\xff\xe6";
	AUTO_DONE(output) o = {};

	(void)state;
	for (size_t i = 0; i < strlen(text); i++)
		output_put(&o, text + i, 1);
	output_end(&o);
	assert_string_equal(o.out.data, "aä日😀\\xff\\xe6");
}

static void raw_output_is_left_alone(void **state)
{
	AUTO_DONE(output) o = {.raw = true};

	(void)state;
	output_put(&o, "\0\033\xff", 3);
	output_end(&o);
	assert_int_equal(o.out.len, 3);
	assert_memory_equal(o.out.data, "\0\033\xff", 3);
}

static void a_command_is_shown_as_one_would_type_it(void **state)
{
	static const struct {
		const char *job, *words;
	} rows[] = {
		{"{\"command\":[\"echo\",\"a b\"],\"script\":null}", "echo 'a b'"},
		{"{\"command\":[],\"script\":\"a | b\"}", "a | b"},
		{"{\"command_b64\":[\"ZWNobw==\",\"/w==\"]}", "echo $'\\377'"},
		{"{\"script_b64\":\"/w==\"}", "\xff"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		json_auto_t *job = json_loads(rows[i].job, 0, NULL);
		AUTO_DONE(buf) out = {};

		words_of_command(job, &out);
		assert_string_equal(text_of(&out), rows[i].words);
	}
}

/* ---- verbs of two words ---- */

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
	assert_non_null(strstr(out.data, "\n  shelf list      lists them; also"));
	assert_null(strstr(out.data, "box"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_number_is_a_job_and_a_hash_makes_a_run),
		TEST(what_cannot_be_a_name_is_refused),
		TEST(a_run_matches_only_the_job_named_before_it),
		TEST(the_nearest_name_is_suggested_and_a_far_one_is_not),
		TEST(times_are_told_from_now),
		TEST(durations_and_sizes_are_short),
		TEST(a_result_says_code_signal_or_reason),
		TEST(one_word_with_shell_syntax_is_a_script),
		TEST(several_words_stay_what_they_are),
		TEST(a_quoted_word_is_one_word_again),
		TEST(options_of_the_command_are_left_alone),
		TEST(options_may_follow_operands_of_other_verbs),
		TEST(wrong_options_are_named),
		TEST(an_empty_value_is_a_value),
		TEST(dashes_are_told_from_a_value_that_looks_like_them),
		TEST(options_fill_the_fields_of_the_job),
		TEST(times_become_texts_of_the_schedule_language),
		TEST(wrong_values_name_their_option),
		TEST(only_one_kind_of_time_can_be_given),
		TEST(the_command_that_makes_a_job_makes_an_equal_one),
		TEST(a_single_word_keeps_its_kind_as_a_command),
		TEST(variables_that_look_like_secrets_are_masked),
		TEST(the_zone_is_read_from_what_systems_say),
		TEST(every_verb_has_help_with_one_option_a_line),
		TEST(columns_are_aligned_and_nothing_trails),
		TEST(later_pages_keep_the_columns),
		TEST(lines_are_cut_to_the_terminal),
		TEST(only_state_words_are_coloured_and_colour_takes_no_room),
		TEST(control_characters_in_cells_are_shown_not_sent),
		TEST(json_carries_no_control_character),
		TEST(output_for_a_terminal_is_escaped_but_for_lines_and_tabs),
		TEST(a_character_split_between_two_pieces_stays_whole),
		TEST(raw_output_is_left_alone),
		TEST(a_command_is_shown_as_one_would_type_it),
		TEST(a_verb_of_two_words_is_found_by_both),
		TEST(the_help_of_a_group_lists_its_verbs),
	};

	return RUN_TESTS(tests);
}
