/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the policies: what is read, what is refused, and the arithmetic behind them. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/policy.h"
#include "core/time/slots.h"
#include "unit/unit.h"
#include <string.h>

static void overlap_words_are_read(void **state)
{
	static const char *const bad[] = {"", "no", "queue:", "queue:0", "queue:10001", "queue:x", "skip:1", "Skip", "queue:1:2"};
	struct overlap o;
	struct err e = {};

	(void)state;
	assert_true(policy_overlap_parse("skip", &o, &e) && o.word == OVERLAP_SKIP);
	assert_true(policy_overlap_parse("queue", &o, &e) && o.word == OVERLAP_QUEUE && o.waiting == 1);
	assert_true(policy_overlap_parse("queue:7", &o, &e) && o.word == OVERLAP_QUEUE && o.waiting == 7);
	assert_true(policy_overlap_parse("replace", &o, &e) && o.word == OVERLAP_REPLACE);
	assert_true(policy_overlap_parse("allow", &o, &e) && o.word == OVERLAP_ALLOW);
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		assert_false(policy_overlap_parse(bad[i], &o, &e));
		assert_string_equal(e.field, "overlap");
	}
}

static void catchup_words_are_read(void **state)
{
	static const char *const bad[] = {"", "every", "all:0", "all:1001", "latest:2", "none:1", "all:"};
	struct catchup c;
	struct err e = {};

	(void)state;
	assert_true(slot_catchup_parse("none", &c, &e) && c.word == CATCHUP_NONE && c.newest == 0);
	assert_true(slot_catchup_parse("latest", &c, &e) && c.word == CATCHUP_LATEST && c.newest == 1);
	assert_true(slot_catchup_parse("all", &c, &e) && c.word == CATCHUP_ALL && c.newest == CATCHUP_ALL_MAX);
	assert_true(slot_catchup_parse("all:3", &c, &e) && c.newest == 3);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(slot_catchup_parse(bad[i], &c, &e));
}

static void backoff_words_are_read(void **state)
{
	static const char *const bad[] = {"", "exp", "exp:10s", "exp:10m..10s", "exp:..10s", "exp:0s..1m", "fixed:", "fixed:0s",
		"fixed:soon", "linear:1s..2s"};
	struct backoff b;
	struct err e = {};

	(void)state;
	assert_true(policy_backoff_parse("exp:10s..10m", &b, &e));
	assert_true(!b.fixed && b.base == 10 * USEC_SEC && b.cap == 10 * USEC_MIN);
	assert_true(policy_backoff_parse("fixed:30s", &b, &e));
	assert_true(b.fixed && b.base == 30 * USEC_SEC);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(policy_backoff_parse(bad[i], &b, &e));
}

static void a_backoff_doubles_up_to_its_cap_and_draws_below(void **state)
{
	struct backoff b = {.base = 10 * USEC_SEC, .cap = 65 * USEC_SEC};
	static const usec_t ceilings[] = {10, 20, 40, 65, 65};

	(void)state;
	for (int64_t i = 0; i < (int64_t)ELEMENTS(ceilings); i++) {
		uint64_t top = (uint64_t)(ceilings[i] * USEC_SEC);

		assert_int_equal(policy_backoff_delay(&b, i + 1, top), top);
		assert_int_equal(policy_backoff_delay(&b, i + 1, top + 1), 0);
	}
	b.cap = INT64_MAX;
	b.base = INT64_MAX / 2;
	assert_true(policy_backoff_delay(&b, 1000, UINT64_MAX) >= 0);
	b.fixed = true;
	assert_int_equal(policy_backoff_delay(&b, 3, 12345), b.base);
}

static void exit_rules_are_read(void **state)
{
	static const char *const bad[] = {"", "75", "75=", "75=maybe", "256=ok", "-1=ok", "1|=ok", "1=ok,1=dead", "1=ok,", "x=ok"};
	struct exit_rules r;
	struct err e = {};

	(void)state;
	assert_true(policy_exit_rules_parse("75=retry,78=dead,0|2=ok,100=pause,3=fail", &r, &e));
	assert_int_equal(r.action[75], EXIT_RETRY);
	assert_int_equal(r.action[78], EXIT_DEAD);
	assert_int_equal(r.action[0], EXIT_OK);
	assert_int_equal(r.action[2], EXIT_OK);
	assert_int_equal(r.action[100], EXIT_PAUSE);
	assert_int_equal(r.action[3], EXIT_FAIL);
	assert_int_equal(r.action[1], -1);
	assert_true(policy_exit_rules_parse(NULL, &r, &e) && r.action[0] == -1);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(policy_exit_rules_parse(bad[i], &r, &e));
}

static void a_rate_is_kept_over_any_time(void **state)
{
	static const char *const bad[] = {"", "10", "0/1m", "10/", "10/0s", "10/1m:0", "10/1m:", "x/1m", "1000000/1ms"};
	struct rate r;
	struct err e = {};
	usec_t bucket = 0, again = 0, now = 1000 * USEC_SEC, started[64];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(policy_rate_parse(bad[i], &r, &e));
	assert_true(policy_rate_parse("6/1m:3", &r, &e));
	assert_true(r.n == 6 && r.per == USEC_MIN && r.burst == 3);
	while (n < ELEMENTS(started)) {
		if (policy_rate_take(&r, now, &bucket, &again)) {
			started[n++] = now;
		} else {
			assert_true(again > now);
			assert_false(policy_rate_take(&r, again - 1, &(usec_t){bucket}, &(usec_t){0}));
			now = again;
		}
	}
	for (size_t i = 0; i + 9 < n; i++) /* no minute has more than the rate and one burst */
		assert_true(started[i + 9] - started[i] >= USEC_MIN);
	assert_int_equal(started[2], started[0]);
	assert_true(policy_rate_take(&(struct rate){}, now, &bucket, &again));
}

static void conditions_are_read(void **state)
{
	static const char *const bad[] = {"", "load", "load<", "load<x", "load>2", "load<0", "swap<1", "load<1.2345", "load<1.", "load<1x"};
	struct gate g;
	struct err e = {};

	(void)state;
	assert_true(policy_condition_parse("load<2", &g, &e) && g.figure == MACHINE_LOAD && g.below == 2000);
	assert_true(policy_condition_parse("memory<0.5", &g, &e) && g.figure == MACHINE_MEMORY && g.below == 500);
	assert_true(policy_condition_parse("io<12.345", &g, &e) && g.figure == MACHINE_IO && g.below == 12345);
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(policy_condition_parse(bad[i], &g, &e));
}

static void channels_are_read(void **state)
{
	static const char *const bad[] = {"", "mail", "mail:", "mail:-oQ/tmp", "mail:a b@c", "mail:a@b,c@d", "mail:a@b@c", "mail:a\n@b",
		"webhook:ftp://x", "webhook:example.com", "exec:", "sms:123"};
	enum notify_channel c;
	const char *target;
	struct err e = {};

	(void)state;
	assert_true(policy_notify_parse("mail:root", &c, &target, &e) && c == NOTIFY_MAIL && !strcmp(target, "root"));
	assert_true(policy_notify_parse("webhook:https://h.example/x", &c, &target, &e) && c == NOTIFY_WEBHOOK);
	assert_true(policy_notify_parse("exec:logger -t x: y", &c, &target, &e) && !strcmp(target, "logger -t x: y"));
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(policy_notify_parse(bad[i], &c, &target, &e));
}

static void a_job_that_says_nothing_skips_overlaps_and_is_tried_once(void **state)
{
	AUTO_DONE(job_spec) s;
	struct start_policy start;
	struct retry_policy retry;

	(void)state;
	job_spec_init(&s);
	policy_start_of(&s, &start);
	policy_retry_of(&s, &retry);
	assert_true(start.overlap == OVERLAP_SKIP && start.permits == 1 && !start.gated && !start.deadline);
	assert_true(retry.retries == 0 && retry.rerun_lost && retry.on_exit.action[1] == -1);
	s.overlap = xstrdup("allow");
	s.max_running = 3;
	s.rate = xstrdup("1/1m");
	policy_start_of(&s, &start);
	assert_true(start.overlap == OVERLAP_ALLOW && start.permits == 3 && start.gated);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(overlap_words_are_read),
		TEST(catchup_words_are_read),
		TEST(backoff_words_are_read),
		TEST(a_backoff_doubles_up_to_its_cap_and_draws_below),
		TEST(exit_rules_are_read),
		TEST(a_rate_is_kept_over_any_time),
		TEST(conditions_are_read),
		TEST(channels_are_read),
		TEST(a_job_that_says_nothing_skips_overlaps_and_is_tried_once),
	};

	return RUN_TESTS(tests);
}
