/* SPDX-License-Identifier: Apache-2.0 */
/* When somebody is told about a job. */
#include "base/auto.h"
#include "base/sha256.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/notice.h"
#include "core/job/notice_text.h"
#include "unit/unit.h"
#include <stdio.h>
#include <string.h>

/* Runs by one letter each: + succeeded, - failed, t timed out, l lost, e expired, o overlap, m missed, p paused,
   c cancelled; slots ascend. What is told: F failed, R recovered, M missed, . nothing. */
static char told(struct job_health *h, char what, usec_t slot)
{
	static const struct {
		char letter;
		enum run_state state;
		const char *reason;
	} runs[] = {
		{'+', RUN_SUCCEEDED, NULL}, {'-', RUN_FAILED, NULL}, {'t', RUN_TIMED_OUT, "timeout"},
		{'l', RUN_LOST, "lost"}, {'e', RUN_EXPIRED, "deadline"}, {'o', RUN_SKIPPED, "overlap"},
		{'i', RUN_SKIPPED, "limit"}, {'m', RUN_SKIPPED, "missed"}, {'w', RUN_SKIPPED, "condition"},
		{'p', RUN_SKIPPED, "paused"}, {'f', RUN_SKIPPED, "frozen"}, {'n', RUN_SKIPPED, NULL},
		{'c', RUN_CANCELLED, "cancelled"}, {'q', RUN_QUEUED, NULL}, {'r', RUN_RUNNING, NULL},
		{'k', RUN_CLAIMED, NULL},
	};
	static const char letters[NOTICE_KIND_MAX] = {'.', 'F', 'R', 'M', 'L', 'T'};

	for (size_t i = 0; i < ELEMENTS(runs); i++) {
		struct run_outcome o = {.run = slot, .slot = slot, .at = slot * 10};

		if (runs[i].letter != what)
			continue;
		if (!notice_health_of(runs[i].state, runs[i].reason, &o.health))
			return '.';
		return letters[notice_health_update(h, &o)];
	}
	fail_msg("no run '%c'", what);
	return '?';
}

static void only_a_change_of_state_is_told(void **state)
{
	static const char *const rows[][2] = {
		{"+++", "..."},         {"-", "F"},             {"+-", ".F"},           {"---", "F.."},
		{"-+", "FR"},           {"-++-+", "FR.FR"},     {"--+", "F.R"},         {"t-t+", "F..R"},
		{"ooo", "M.."},         {"o+", "MR"},           {"imw+", "M..R"},       {"eel+", "M..R"},
		{"o-", "MF"},           {"o-+", "MFR"},         {"-o", "F."},           {"-oo+", "F..R"},
		{"o-o-+", "MF..R"},     {"pfnc", "...."},       {"-pfc+", "F...R"},     {"+pfc-", "....F"},
		{"qrk", "..."},         {"l", "M"},             {"e", "M"},             {"m", "M"},
		{"-c-", "F.."},         {"opo", "M.."},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		struct job_health h = {};
		char got[16] = "";

		for (size_t k = 0; rows[i][0][k]; k++)
			got[k] = told(&h, rows[i][0][k], (usec_t)k + 1);
		if (strcmp(got, rows[i][1]) != 0)
			fail_msg("'%s' gives '%s', not '%s'", rows[i][0], got, rows[i][1]);
	}
}

/* By a second, slower way to say it: bad or worse is told when it gets worse, good when it was bad. */
static void every_series_of_six_runs_is_told_by_the_same_rule(void **state)
{
	static const char letters[] = "+-opc";

	(void)state;
	for (int n = 0; n < 5 * 5 * 5 * 5 * 5 * 5; n++) {
		struct job_health h = {};
		int level = 0;

		for (int k = 0, rest = n; k < 6; k++, rest /= 5) {
			char what = letters[rest % 5], want = '.';
			int to = what == '+' ? 0 : what == 'o' ? 1 : what == '-' ? 2 : -1;

			if (to == 0 && level > 0)
				want = 'R';
			else if (to > level)
				want = to == 1 ? 'M' : 'F';
			if (to == 0 || to > level)
				level = to;
			assert_int_equal(told(&h, what, k + 1), want);
			assert_int_equal(h.bad != HEALTH_GOOD, level > 0);
		}
	}
}

static void an_older_run_that_succeeds_does_not_make_up_for_a_newer_slot(void **state)
{
	struct job_health h = {};

	(void)state;
	assert_int_equal(told(&h, 'o', 20), 'M'); /* while the run of slot 10 goes on */
	assert_int_equal(told(&h, '+', 10), '.');
	assert_int_equal(h.bad, HEALTH_MISSED);
	assert_int_equal(h.last_success, 10);
	assert_int_equal(told(&h, '+', 30), 'R');
	assert_int_equal(told(&h, '-', 40), 'F');
	assert_int_equal(told(&h, '-', 50), '.');
	assert_int_equal(told(&h, '+', 40), '.'); /* tried again by hand: slot 50 is still bad */
	assert_int_equal(told(&h, '+', 50), 'R');
}

static void the_notice_state_of_a_job_follows_its_runs(void **state)
{
	struct job_health h = {};

	(void)state;
	told(&h, '+', 1);
	assert_int_equal(h.since, 0); /* nothing has changed yet */
	told(&h, '-', 2);
	assert_int_equal(h.since, 20);
	told(&h, '-', 3);
	assert_int_equal(h.since, 20);
	assert_int_equal(h.slot, 3);
	assert_int_equal(h.last_success, 1);
	told(&h, '+', 4);
	assert_int_equal(h.since, 40);
	assert_int_equal(h.last_success, 4);
}

static void the_typical_duration_is_a_moving_mean_of_successes(void **state)
{
	struct job_health h = {};
	struct run_outcome o = {.run = 1, .health = HEALTH_GOOD, .slot = 1, .at = 1, .took = 800};

	(void)state;
	notice_health_update(&h, &o);
	assert_int_equal(h.typical, 800);
	o.took = 1600;
	notice_health_update(&h, &o);
	assert_int_equal(h.typical, 900);
	o.took = 0; /* unknown */
	notice_health_update(&h, &o);
	assert_int_equal(h.typical, 900);
	o.took = 1;
	o.health = HEALTH_FAILED;
	notice_health_update(&h, &o);
	assert_int_equal(h.typical, 900);
}

static void unusually_long_is_three_times_or_a_minute_more(void **state)
{
	(void)state;
	assert_int_equal(notice_long_after(0), USEC_NEVER);
	assert_int_equal(notice_long_after(-1), USEC_NEVER);
	assert_int_equal(notice_long_after(1), 60 * USEC_SEC + 1);
	assert_int_equal(notice_long_after(30 * USEC_SEC), 90 * USEC_SEC);
	assert_int_equal(notice_long_after(31 * USEC_SEC), 93 * USEC_SEC);
	assert_int_equal(notice_long_after(USEC_HOUR), 3 * USEC_HOUR);
	assert_int_equal(notice_long_after(USEC_NEVER / 2), USEC_NEVER);
}

static void tries_are_spread_over_an_hour_with_jitter(void **state)
{
	static const int factors[] = {1, 4, 16, 40};
	usec_t least = 0, most = 0;

	(void)state;
	for (int64_t tries = 1; tries < NOTICE_TRIES; tries++) {
		usec_t mean = factors[tries - 1] * USEC_MIN;

		for (uint64_t r = 0; r < 1000; r++) {
			usec_t d = notice_retry_delay(tries, USEC_MIN, r * UINT64_C(0x9e3779b97f4a7c15));

			assert_in_range(d, mean * 3 / 4, mean * 5 / 4);
		}
		least += notice_retry_delay(tries, USEC_MIN, 0);
		most += notice_retry_delay(tries, USEC_MIN, (uint64_t)mean / 2);
	}
	assert_in_range(least, 40 * USEC_MIN, 61 * USEC_MIN);
	assert_in_range(most, 61 * USEC_MIN, 80 * USEC_MIN);
	assert_int_equal(notice_retry_delay(0, 4, 0), 3);
	assert_int_equal(notice_retry_delay(99, 4, 0), 120);
}

static void the_names_read_back(void **state)
{
	enum notice_kind kind;
	enum notice_state s;

	(void)state;
	for (int i = 0; i < NOTICE_KIND_MAX; i++) {
		assert_true(notice_kind_parse(notice_kind_name((enum notice_kind)i), &kind));
		assert_int_equal(kind, i);
	}
	for (int i = 0; i < NOTICE_STATE_MAX; i++) {
		assert_true(notice_state_parse(notice_state_name((enum notice_state)i), &s));
		assert_int_equal(s, i);
	}
	assert_false(notice_kind_parse("odd", &kind));
	assert_string_equal(notice_state_name(NOTICE_STATE_MAX), "unknown");
}

/* ---- the words ---- */

static void assert_subject(const struct notice_facts *f, const char *want)
{
	AUTO_DONE(buf) out = {};

	notice_text_subject(f, &out);
	assert_string_equal(out.data, want);
}

static void the_subject_says_what_happened(void **state)
{
	struct run r = {.id = 41, .state = RUN_FAILED, .exit_code = 3, .slot_count = 1};
	struct notice_facts f = {.kind = NOTICE_KIND_FAILED, .job = 12, .job_name = "backup", .node = "x", .run = &r};

	(void)state;
	assert_subject(&f, "jobsched: backup failed on node x (exit code 3)");
	r.term_signal = 9;
	assert_subject(&f, "jobsched: backup failed on node x (signal 9)");
	r.term_signal = 0;
	r.state = RUN_TIMED_OUT;
	assert_subject(&f, "jobsched: backup failed on node x (timed out)");
	r = (struct run){.id = 41, .state = RUN_FAILED, .exit_code = -1};
	f.error = "no such file";
	assert_subject(&f, "jobsched: backup failed on node x (no such file)");
	f.kind = NOTICE_KIND_RECOVERED;
	assert_subject(&f, "jobsched: backup succeeded again on node x");
	f.kind = NOTICE_KIND_MISSED;
	r = (struct run){.id = 41, .state = RUN_SKIPPED, .reason = (char *)"overlap", .slot_count = 1};
	assert_subject(&f, "jobsched: backup did not run (overlap)");
	r.slot_count = 7;
	assert_subject(&f, "jobsched: backup did not run 7 times (overlap)");
	r = (struct run){.id = 41, .state = RUN_EXPIRED, .reason = (char *)"deadline"};
	assert_subject(&f, "jobsched: backup did not run in time (deadline)");
	r = (struct run){.id = 41, .state = RUN_LOST};
	assert_subject(&f, "jobsched: backup was lost");
	f.kind = NOTICE_KIND_LONG;
	f.typical = 90 * USEC_SEC + 7;
	assert_subject(&f, "jobsched: backup takes unusually long on node x (usually 1m30s)");
	f = (struct notice_facts){.kind = NOTICE_KIND_TEST, .job = 12};
	assert_subject(&f, "jobsched: job 12: a test notice");
	f.job_name = "a\nBcc: b\x1b";
	assert_subject(&f, "jobsched: a\\nBcc: b\\x1b: a test notice");
}

static void assert_has(const struct notice_facts *f, const char *words, bool want)
{
	AUTO_DONE(buf) out = {};

	notice_text_body(f, &out);
	if ((strstr(out.data, words) != NULL) != want)
		fail_msg("'%s' is %sin:\n%s", words, want ? "not " : "", out.data);
}

static void the_text_says_what_changed_and_what_to_type(void **state)
{
	struct run r = {.id = 41, .state = RUN_FAILED, .exit_code = 3, .revision = 5, .attempt = 4, .dead_at = 1, .slot = 1};
	struct run last = {.id = 17, .state = RUN_SUCCEEDED, .revision = 5, .ended_at = 1800000000 * USEC_SEC};
	struct notice_facts f = {.kind = NOTICE_KIND_FAILED, .job = 12, .job_name = "backup", .run = &r};
	AUTO_DONE(strv) changed = {};

	(void)state;
	assert_has(&f, "No earlier run that succeeded is known.", true);
	assert_has(&f, "attempts      4, this was the last\n", true);
	assert_has(&f, "    jobctl log backup#41\n", true);
	assert_has(&f, "    jobctl dead retry backup#41\n", true);
	assert_has(&f, "    jobctl why backup\n", true);
	assert_has(&f, "jobctl resume", false);
	f.last_success = &last;
	assert_has(&f, "Nothing changed since run backup#17 succeeded at 2027-01-15T08:00:00Z.\n", true);
	last.revision = 3;
	assert_has(&f, "revision 3 then, 5 now", true);
	strv_add(&changed, "command");
	strv_add(&changed, "timeout");
	f.changed = &changed;
	assert_has(&f, "Changed since run backup#17 succeeded at 2027-01-15T08:00:00Z: command, timeout.\n", true);
	f.job_paused = true;
	assert_has(&f, "    jobctl resume backup\n", true);
	r.dead_at = 0;
	assert_has(&f, "dead", false);
}

static void only_the_last_lines_are_shown_and_escaped(void **state)
{
	struct run r = {.id = 1, .attempt = 1};
	struct notice_facts f = {.kind = NOTICE_KIND_FAILED, .job = 1, .run = &r};
	AUTO_DONE(buf) output = {};

	(void)state;
	for (int i = 1; i <= 30; i++)
		buf_printf(&output, "line %d\n", i);
	buf_str(&output, "\x1b[31mred\r");
	f.output = output.data;
	f.output_len = output.len;
	assert_has(&f, "    line 11\n", false);
	assert_has(&f, "The last lines of its output:\n\n    line 12\n", true);
	assert_has(&f, "    \\x1b[31mred\\r\n", true);
	assert_int_equal(notice_text_last_lines("a\nb\nc\n", 6, 2), 2);
	assert_int_equal(notice_text_last_lines("a\nb\nc", 5, 1), 4);
	assert_int_equal(notice_text_last_lines("abc", 3, 5), 0);
	assert_int_equal(notice_text_last_lines("", 0, 5), 0);
}

static void the_fields_that_differ_are_named(void **state)
{
	AUTO_DONE(job_spec) a;
	AUTO_DONE(job_spec) b;
	AUTO_DONE(strv) none = {};
	AUTO_DONE(strv) some = {};

	(void)state;
	job_spec_init(&a);
	job_spec_init(&b);
	notice_text_changed_fields(&a, &b, &none);
	assert_int_equal(none.n, 0);
	strv_add(&b.command, "x");
	b.timeout = 5;
	b.script = xstrdup("y");
	b.stdin_data = (struct blob){xstrdup("z"), 1};
	notice_text_changed_fields(&a, &b, &some);
	assert_int_equal(some.n, 4);
}

/* ---- the signature ---- */

static void sums_are_those_of_the_standards(void **state)
{
	static const struct {
		const char *text, *sum;
	} rows[] = { /* FIPS 180-4 examples */
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};
	unsigned char out[SHA256_LEN], big[131];
	char hex[SHA256_HEX];
	struct sha256 s;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++) {
		sha256_init(&s);
		for (const char *p = rows[i].text; *p; p++)
			sha256_add(&s, p, 1);
		sha256_end(&s, out);
		assert_string_equal(sha256_hex(out, hex), rows[i].sum);
	}
	/* RFC 4231, cases 2 and 6 */
	sha256_hmac("Jefe", 4, (struct sha256_part[]){{"what do ya want ", 16}, {"for nothing?", 12}}, 2, out);
	assert_string_equal(sha256_hex(out, hex), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(big, 0xaa, sizeof(big));
	sha256_hmac(big, sizeof(big),
		(struct sha256_part[]){{"Test Using Larger Than Block-Size Key - Hash Key First", 54}}, 1, out);
	assert_string_equal(sha256_hex(out, hex), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(only_a_change_of_state_is_told),
		TEST(every_series_of_six_runs_is_told_by_the_same_rule),
		TEST(an_older_run_that_succeeds_does_not_make_up_for_a_newer_slot),
		TEST(the_notice_state_of_a_job_follows_its_runs),
		TEST(the_typical_duration_is_a_moving_mean_of_successes),
		TEST(unusually_long_is_three_times_or_a_minute_more),
		TEST(tries_are_spread_over_an_hour_with_jitter),
		TEST(the_names_read_back),
		TEST(the_subject_says_what_happened),
		TEST(the_text_says_what_changed_and_what_to_type),
		TEST(only_the_last_lines_are_shown_and_escaped),
		TEST(the_fields_that_differ_are_named),
		TEST(sums_are_those_of_the_standards),
	};

	return RUN_TESTS(tests);
}
