/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of references, zones, shell quoting, and of times, sizes and results as text. */
#include "unit/unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/edit_distance.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "jobctl/local_zone.h"
#include "jobctl/progress.h"
#include "jobctl/ref.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/shell.h"
#include "jobctl/spec/spec_args.h"
#include "jobctl/suggest.h"
#include <time.h>

static const char *text_of(struct buf *b)
{
	return b->data ? b->data : "";
}

/* ---- references ---- */

static void a_number_refers_to_a_job_and_a_hash_to_a_run(void **state)
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

static void invalid_references_are_refused(void **state)
{
	static const char *const wrong[] = {"", "#", "a#", "a#b", "a#0", "a#-1", "#1#2", "0", "a b",
		"a/b", "../x", "99999999999999999999", "a#99999999999999999999", "ä", "a#1 "};
	struct ref r;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(wrong); i++) {
		struct err e = {};

		if (ref_parse(wrong[i], &r, &e))
			fail_msg("'%s' was taken", wrong[i]);
		assert_int_equal(e.kind, ERR_INVALID);
	}
}

static void a_run_matches_only_the_job_before_the_hash(void **state)
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

static void only_a_close_name_is_suggested(void **state)
{
	AUTO_DONE(suggest) s = {.typed = "bakcup"};
	AUTO_DONE(suggest) far = {.typed = "bakcup"};
	AUTO_DONE(suggest) brief = {.typed = "nope"};

	(void)state;
	suggest_offer(&s, "report");
	suggest_offer(&s, "backups");
	suggest_offer(&s, "backup");
	suggest_offer(&s, "back");
	assert_string_equal(s.best, "backup");
	suggest_offer(&far, "report");
	assert_null(far.best);
	suggest_offer(&brief, "noon");
	assert_null(brief.best);
	suggest_offer(&brief, "node");
	assert_string_equal(brief.best, "node");
	assert_int_equal(edit_distance("ab", "ba", 9), 1);
	assert_int_equal(edit_distance("", "abc", 9), 3);
	assert_int_equal(edit_distance("kitten", "sitting", 9), 3);
}

static void the_zone_is_read_from_all_usual_forms(void **state)
{
	static const struct {
		const char *text, *zone;
	} rows[] = {
		{"Europe/Berlin", "Europe/Berlin"},
		{":Europe/Berlin", "Europe/Berlin"},
		{"UTC\n", "UTC"},
		{"/usr/share/zoneinfo/America/New_York", "America/New_York"},
		{"../usr/share/zoneinfo/Etc/GMT+5", "Etc/GMT+5"},
		{"CET-1CEST,M3.5.0,M10.5.0/3", NULL},
		{"CET-1CEST", NULL},
		{"", NULL},
		{"/etc/somewhere", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_TEXT zone = local_zone_parse(rows[i].text);

		if (!text_equal(zone, rows[i].zone))
			fail_msg("'%s' gave '%s'", rows[i].text, zone ? zone : "(none)");
	}
}

/* ---- text ---- */

static void times_are_shown_relative_to_now(void **state)
{
	static const struct {
		usec_t away;
		const char *words;
	} rows[] = {
		{0, "now"},
		{999 * USEC_MSEC, "now"},
		{-999 * USEC_MSEC, "now"},
		{5 * USEC_SEC, "in 5s"},
		{5 * USEC_SEC - 100 * USEC_MSEC, "in 5s"},
		{5 * USEC_SEC + 100 * USEC_MSEC, "in 5s"},
		{-5 * USEC_SEC, "5s ago"},
		{90 * USEC_SEC, "in 1m30s"},
		{-2 * USEC_HOUR, "2h ago"},
		{-(2 * USEC_HOUR + 5 * USEC_MIN + 7 * USEC_SEC), "2h5m ago"},
		{3 * USEC_DAY + USEC_HOUR, "in 3d1h"},
		{100 * USEC_DAY, "2024-02-22"},
	};
	const usec_t now = INT64_C(1700000000) * USEC_SEC;
	char out[WORDS_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		assert_string_equal(words_relative(now + rows[i].away, now, out), rows[i].words);
}

static void local_times_have_whole_seconds(void **state)
{
	static const struct {
		const char *tz, *utc, *local;
	} rows[] = {
		{"UTC", "2026-11-16T09:00:00.250Z", "2026-11-16T09:00:00Z"},
		{"Europe/Berlin", "2026-11-16T09:00:00.999999Z", "2026-11-16T10:00:00+01:00"},
		{"Europe/Berlin", "2026-07-16T09:00:00Z", "2026-07-16T11:00:00+02:00"},
		{"America/St_Johns", "2026-01-16T01:00:00Z", "2026-01-15T21:30:00-03:30"},
		{"Europe/London", "2026-01-16T01:00:00Z", "2026-01-16T01:00:00+00:00"},
	};
	AUTO_DONE(buf) text = {};
	char out[WORDS_MAX];
	usec_t t;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		setenv("TZ", rows[i].tz, 1);
		tzset();
		assert_true(rfc3339_parse(rows[i].utc, &t, NULL));
		assert_string_equal(words_instant(t, out), rows[i].local);
	}
	setenv("TZ", "Asia/Tokyo", 1);
	tzset();
	words_localize(
		"paused until 2026-11-16T20:00:00.5Z: 2026-11-16T20:00:00 is no time, 2026-99-16T20:00:00Z neither; "
		"typed: '2026-11-16T20:00:00Z'",
		&text);
	assert_string_equal(text.data,
		"paused until 2026-11-17T05:00:00+09:00: 2026-11-16T20:00:00 is no time, 2026-99-16T20:00:00Z neither; "
		"typed: '2026-11-16T20:00:00Z'");
	assert_string_equal(words_relative(0, 100 * USEC_DAY, out), "1970-01-01");
	unsetenv("TZ");
	tzset();
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

static void a_result_is_an_exit_code_a_signal_or_a_reason(void **state)
{
	static const struct {
		const char *run, *words;
	} rows[] = {
		{"{\"exit_code\":3,\"signal\":null,\"reason\":null}", "exit code 3"},
		{"{\"exit_code\":null,\"signal\":9,\"reason\":null}", "killed by SIGKILL"},
		{"{\"exit_code\":0,\"signal\":null,\"reason\":null}", ""},
		{"{\"exit_code\":null,\"signal\":15,\"reason\":\"replaced\"}",
			"killed by SIGTERM, replaced"},
		{"{\"reason\":\"overlap\"}", "overlap"},
		{"{\"reason\":\"not_started\"}", "not started"},
		{"{\"reason\":\"not_started\",\"attempts\":[{\"error\":null},{\"error\":\"no x\"}]}",
			"no x"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		json_auto_t *run = json_loads(rows[i].run, 0, NULL);
		AUTO_DONE(buf) out = {};

		words_result(run, &out);
		assert_string_equal(text_of(&out), rows[i].words);
	}
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

/* ---- shell ---- */

static void one_word_with_shell_syntax_is_a_script(void **state)
{
	static const char *const scripts[] = {"echo hello", "a|b", "a;b", "a&", "$HOME/x", "~/x",
		"a>b", "a*", "'a'", "`a`", "a\nb", "(a)", "{a}", "a\\b", "#a", "a\tb", "!a"};
	static const char *const plain[] = {"true", "/usr/bin/true", "./run-me", "a=b", "backup.sh",
		"a,b:c@d%e+f", "ä"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(scripts); i++)
		if (!shell_syntax(scripts[i]))
			fail_msg("'%s' was taken as plain", scripts[i]);
	for (size_t i = 0; i < ELEMENTS(plain); i++)
		if (shell_syntax(plain[i]))
			fail_msg("'%s' was taken as a script", plain[i]);
}

static void several_words_are_not_interpreted(void **state)
{
	char *const *words = (char *const *)(const char *[]){"echo", "a b", "$x", "", NULL};
	AUTO_DONE(job_spec) one;
	AUTO_DONE(job_spec) many;
	AUTO_DONE(job_spec) plain;

	(void)state;
	job_spec_init(&one);
	job_spec_init(&many);
	job_spec_init(&plain);
	spec_args_set_command(&many, words, 4);
	assert_null(many.script);
	assert_int_equal(many.command.n, 4);
	assert_string_equal(many.command.v[2], "$x");
	assert_string_equal(many.command.v[3], "");
	spec_args_set_command(&one, words + 1, 1);
	assert_string_equal(one.script, "a b");
	assert_int_equal(one.command.n, 0);
	spec_args_set_command(&plain, words, 1);
	assert_null(plain.script);
	assert_string_equal(plain.command.v[0], "echo");
}

static void a_shell_reads_a_quoted_word_as_one_word(void **state)
{
	static const struct {
		const char *word, *quoted;
	} rows[] = {
		{"plain", "plain"},
		{"", "''"},
		{"a b", "'a b'"},
		{"it's", "'it'\\''s'"},
		{"$x", "'$x'"},
		{"a\nb", "$'a\\nb'"},
		{"\033[2J", "$'\\033[2J'"},
		{"\xff'", "$'\\377\\''"},
		{"K=V", "K=V"},
		{"a\\\n", "$'a\\\\\\n'"},
		{"~", "'~'"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		AUTO_DONE(buf) out = {};

		shell_quote(&out, rows[i].word);
		assert_string_equal(out.data, rows[i].quoted);
	}
}

static void a_command_is_shown_quoted_for_a_shell(void **state)
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

		words_command(job, &out);
		assert_string_equal(text_of(&out), rows[i].words);
	}
}

static void a_progress_line_has_what_is_known(void **state)
{
	static const struct {
		int64_t done, total;
		const char *text;
	} cases[] = {{0, 0, "copying: 12s"}, {2048, 0, "copying: 2.0 KiB, 12s"},
		{0, 4096, "copying: 0 B of 4.0 KiB, 0 %, 12s"},
		{1024, 4096, "copying: 1.0 KiB of 4.0 KiB, 25 %, 12s"},
		{8192, 4096, "copying: 8.0 KiB of 4.0 KiB, 100 %, 12s"}};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO_DONE(buf) out = {};

		progress_text("copying", 12 * USEC_SEC + 900 * USEC_MSEC, cases[i].done,
			cases[i].total, &out);
		assert_string_equal(out.data, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_number_refers_to_a_job_and_a_hash_to_a_run),
		TEST(invalid_references_are_refused),
		TEST(a_run_matches_only_the_job_before_the_hash),
		TEST(only_a_close_name_is_suggested),
		TEST(the_zone_is_read_from_all_usual_forms),
		TEST(times_are_shown_relative_to_now),
		TEST(local_times_have_whole_seconds),
		TEST(durations_and_sizes_are_short),
		TEST(a_progress_line_has_what_is_known),
		TEST(a_result_is_an_exit_code_a_signal_or_a_reason),
		TEST(variables_that_look_like_secrets_are_masked),
		TEST(one_word_with_shell_syntax_is_a_script),
		TEST(several_words_are_not_interpreted),
		TEST(a_shell_reads_a_quoted_word_as_one_word),
		TEST(a_command_is_shown_quoted_for_a_shell),
	};

	return RUN_TESTS(tests);
}
