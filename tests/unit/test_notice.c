/* SPDX-License-Identifier: Apache-2.0 */
/* When somebody is told about a job. */
#include "base/auto.h"
#include "core/notice.h"
#include "unit.h"
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
		if (!health_of(runs[i].state, runs[i].reason, &o.health))
			return '.';
		return letters[health_move(h, &o)];
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

static void what_is_remembered_of_a_job_follows_its_runs(void **state)
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

static void what_is_usual_is_a_moving_mean_of_successes(void **state)
{
	struct job_health h = {};
	struct run_outcome o = {.run = 1, .health = HEALTH_GOOD, .slot = 1, .at = 1, .took = 800};

	(void)state;
	health_move(&h, &o);
	assert_int_equal(h.typical, 800);
	o.took = 1600;
	health_move(&h, &o);
	assert_int_equal(h.typical, 900);
	o.took = 0; /* unknown */
	health_move(&h, &o);
	assert_int_equal(h.typical, 900);
	o.took = 1;
	o.health = HEALTH_FAILED;
	health_move(&h, &o);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(only_a_change_of_state_is_told),
		TEST(every_series_of_six_runs_is_told_by_the_same_rule),
		TEST(an_older_run_that_succeeds_does_not_make_up_for_a_newer_slot),
		TEST(what_is_remembered_of_a_job_follows_its_runs),
		TEST(what_is_usual_is_a_moving_mean_of_successes),
		TEST(unusually_long_is_three_times_or_a_minute_more),
		TEST(tries_are_spread_over_an_hour_with_jitter),
		TEST(the_names_read_back),
	};

	return RUN_TESTS(tests);
}
