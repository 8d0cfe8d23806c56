/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of an attempt makes of its run. */
#include "base/auto.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/decide/judge.h"
#include "core/job/policy.h"
#include "unit/unit.h"
#include <string.h>

#define NOW (1000 * USEC_SEC)
#define FIRST (900 * USEC_SEC)

static void policy_of(struct retry_policy *p, int64_t retries, const char *on_exit)
{
	AUTO_DONE(job_spec) s;

	job_spec_init(&s);
	s.retries = retries;
	s.backoff = xstrdup("fixed:30s");
	s.on_exit = xstrdup(on_exit);
	policy_retry_of(&s, p);
}

static const struct row {
	const char *name;
	int64_t retries;
	const char *on_exit;
	usec_t run_timeout;
	bool fail_lost;
	struct judge_case in;
	struct judge_verdict out; /* due_at: after NOW */
} rows[] = {
	{"exit 0 is success", 2, NULL, 0, false, {ATTEMPT_SUCCEEDED, .exit_code = 0},
		{RUN_SUCCEEDED, .outcome = ATTEMPT_SUCCEEDED}},
	{"a failure with no retries asked for is just failed", 0, NULL, 0, false, {ATTEMPT_FAILED, .exit_code = 1},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true}},
	{"the first failure is followed by the first retry", 4, NULL, 0, false, {ATTEMPT_FAILED, .exit_code = 1},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 4 after exit code 1"}},
	{"the fourth failure by the last", 4, NULL, 0, false, {ATTEMPT_FAILED, .exit_code = 9, .failures = 3},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 4 of 4 after exit code 9"}},
	{"the fifth makes a dead letter", 4, NULL, 0, false, {ATTEMPT_FAILED, .exit_code = 1, .failures = 4},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .dead = true, .reason = "retries used up"}},
	{"a call with a temporary status is retried", 2, NULL, 0, false, {ATTEMPT_FAILED, .exit_code = -1, .status = 503},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 2 after status 503"}},
	{"not before the server wants it", 2, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1, .status = 429, .retry_after = 40 * USEC_SEC},
		{RUN_QUEUED, 40 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 2 after status 429"}},
	{"and not before the backoff", 2, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1, .status = 429, .retry_after = 10 * USEC_SEC},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 2 after status 429"}},
	{"a server cannot delay a retry by more than an hour", 2, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1, .retry_after = 2 * USEC_HOUR},
		{RUN_QUEUED, USEC_HOUR, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 2 after failed call"}},
	{"a final status makes a dead letter", 2, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1, .status = 404, .final = true},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .dead = true, .reason = "status 404 is final"}},
	{"a call that is not retried names the status", 0, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1, .status = 503},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .reason = "status 503"}},
	{"a call without an answer has failed", 0, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .reason = "the call failed"}},
	{"a final failure with no retries is just failed", 0, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1, .final = true},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .reason = "the failure is final"}},
	{"a signal is a failure", 1, NULL, 0, false, {ATTEMPT_FAILED, .exit_code = -1, .term_signal = 9},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 1 after signal 9"}},
	{"a signal with no retries is failed, not lost", 0, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = -1, .term_signal = 9}, {RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true}},
	{"a timeout counts", 1, NULL, 0, false, {ATTEMPT_TIMED_OUT, .exit_code = -1, .term_signal = 15},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_TIMED_OUT, .failure = true, .reason = "retry 1 of 1 after timeout"}},
	{"a timeout with no retries is timed_out", 0, NULL, 0, false, {ATTEMPT_TIMED_OUT, .exit_code = -1, .term_signal = 9},
		{RUN_TIMED_OUT, .outcome = ATTEMPT_TIMED_OUT, .failure = true, .reason = "timeout"}},
	{"the last timeout makes a dead letter", 1, NULL, 0, false, {ATTEMPT_TIMED_OUT, .exit_code = 0, .failures = 1},
		{RUN_TIMED_OUT, .outcome = ATTEMPT_TIMED_OUT, .failure = true, .dead = true, .reason = "retries used up"}},
	{"a stalled attempt is tried again", 1, NULL, 0, false, {ATTEMPT_STALLED, .exit_code = -1, .term_signal = 15},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_STALLED, .failure = true, .reason = "retry 1 of 1 after stall"}},
	{"a stalled attempt without retries is a timeout", 0, NULL, 0, false, {ATTEMPT_STALLED, .exit_code = -1, .term_signal = 15},
		{RUN_TIMED_OUT, .outcome = ATTEMPT_STALLED, .failure = true, .reason = "stalled"}},
	{"what cannot be started is tried again too", 1, NULL, 0, false, {ATTEMPT_NOT_STARTED, .exit_code = -1},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_NOT_STARTED, .failure = true, .reason = "retry 1 of 1 after failed start"}},
	{"what cannot be started is failed", 0, NULL, 0, false, {ATTEMPT_NOT_STARTED, .exit_code = -1},
		{RUN_FAILED, .outcome = ATTEMPT_NOT_STARTED, .failure = true, .reason = "not_started"}},
	{"what is denied is not tried again", 5, NULL, 0, false, {ATTEMPT_DENIED, .exit_code = -1},
		{RUN_FAILED, .outcome = ATTEMPT_DENIED, .reason = "denied"}},
	{"who denied it is the reason", 5, NULL, 0, false, {ATTEMPT_DENIED, .denial = "no_warrant", .exit_code = -1},
		{RUN_FAILED, .outcome = ATTEMPT_DENIED, .reason = "no_warrant"}},
	{"what is cancelled is not tried again", 5, NULL, 0, false, {ATTEMPT_CANCELLED, .exit_code = -1, .term_signal = 15},
		{RUN_CANCELLED, .outcome = ATTEMPT_CANCELLED, .reason = "cancelled"}},
	{"nor what failed after it was asked to end", 5, NULL, 0, false,
		{ATTEMPT_FAILED, .exit_code = 1, .cancel_asked = true},
		{RUN_CANCELLED, .outcome = ATTEMPT_FAILED, .failure = true, .reason = "cancelled"}},

	{"a gate delays without using up a retry", 1, NULL, 0, false, {ATTEMPT_GATED, .exit_code = 75, .number = 1},
		{RUN_QUEUED, 5 * USEC_SEC, ATTEMPT_GATED, .reason = "gate"}},
	{"each look of a gate doubles the delay", 5, NULL, 0, false, {ATTEMPT_GATED, .exit_code = 75, .number = 5, .failures = 1, .lost = 1},
		{RUN_QUEUED, 20 * USEC_SEC, ATTEMPT_GATED, .reason = "gate"}},
	{"the delay of a gate is bounded", 0, NULL, 0, false, {ATTEMPT_GATED, .exit_code = 75, .number = 1000},
		{RUN_QUEUED, 600 * USEC_SEC, ATTEMPT_GATED, .reason = "gate"}},
	{"the last look of a gate is at the deadline", 0, NULL, 0, false,
		{ATTEMPT_GATED, .exit_code = 75, .number = 3, .deadline = NOW + 7 * USEC_SEC, .expires = NOW + 9 * USEC_SEC},
		{RUN_QUEUED, 7 * USEC_SEC, ATTEMPT_GATED, .reason = "gate"}},
	{"a gate that delays beyond the deadline", 0, NULL, 0, false, {ATTEMPT_GATED, .exit_code = 75, .number = 3, .deadline = NOW},
		{RUN_EXPIRED, .outcome = ATTEMPT_GATED, .reason = "deadline (gate)"}},
	{"the deadline is for the first attempt", 2, NULL, 0, false,
		{ATTEMPT_GATED, .exit_code = 75, .number = 2, .failures = 1, .deadline = NOW}, {RUN_QUEUED, 5 * USEC_SEC, ATTEMPT_GATED, .reason = "gate"}},
	{"expires is for all attempts", 2, NULL, 0, false,
		{ATTEMPT_GATED, .exit_code = 75, .number = 2, .failures = 1, .deadline = NOW + USEC_HOUR, .expires = NOW - 1},
		{RUN_EXPIRED, .outcome = ATTEMPT_GATED, .reason = "expires (gate)"}},
	{"a gate skips the run", 3, NULL, 0, false, {ATTEMPT_GATED, .exit_code = 77, .number = 1},
		{RUN_SKIPPED, .outcome = ATTEMPT_GATED, .reason = "gate"}},
	{"a run that was cancelled is not delayed by its gate", 3, NULL, 0, false,
		{ATTEMPT_GATED, .exit_code = 75, .number = 1, .cancel_asked = true}, {RUN_CANCELLED, .outcome = ATTEMPT_GATED, .reason = "cancelled"}},
	{"a gate that fails is a failed attempt", 1, "3=ok", 0, false, {ATTEMPT_GATED, .exit_code = 3, .number = 1},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_GATED, .failure = true, .reason = "retry 1 of 1 after failed gate"}},
	{"a gate that fails without retries", 0, NULL, 0, false, {ATTEMPT_GATED, .exit_code = 3, .number = 1},
		{RUN_FAILED, .outcome = ATTEMPT_GATED, .failure = true, .reason = "gate"}},

	{"on_exit ok: 2 is success", 3, "0|2=ok", 0, false, {ATTEMPT_FAILED, .exit_code = 2},
		{RUN_SUCCEEDED, .outcome = ATTEMPT_SUCCEEDED}},
	{"on_exit fail: no retry, no dead letter", 3, "3=fail", 0, false, {ATTEMPT_FAILED, .exit_code = 3},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true}},
	{"on_exit fail: 0 may be a failure", 0, "0=fail", 0, false, {ATTEMPT_SUCCEEDED, .exit_code = 0},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true}},
	{"on_exit retry: even of 0", 1, "0=retry", 0, false, {ATTEMPT_SUCCEEDED, .exit_code = 0},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 1 after exit code 0"}},
	{"on_exit retry: as often as there are retries", 0, "75=retry", 0, false, {ATTEMPT_FAILED, .exit_code = 75},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true}},
	{"on_exit dead: at once", 3, "78=dead", 0, false, {ATTEMPT_FAILED, .exit_code = 78},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .dead = true, .reason = "dead letter by exit code"}},
	{"on_exit dead: without retries too", 0, "78=dead", 0, false, {ATTEMPT_FAILED, .exit_code = 78},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .dead = true, .reason = "dead letter by exit code"}},
	{"on_exit pause: failed, and the job paused", 3, "100=pause", 0, false, {ATTEMPT_FAILED, .exit_code = 100},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .pause = true, .reason = "job paused"}},
	{"on_exit does not speak of timeouts", 0, "0=ok", 0, false, {ATTEMPT_TIMED_OUT, .exit_code = 0},
		{RUN_TIMED_OUT, .outcome = ATTEMPT_TIMED_OUT, .failure = true, .reason = "timeout"}},

	{"a loss uses up no retry", 0, NULL, 0, false, {ATTEMPT_LOST, .exit_code = -1},
		{RUN_QUEUED, 0, ATTEMPT_LOST, .lost = true, .reason = "rerun 1 of 3 after loss"}},
	{"a third loss is the last that is forgiven", 0, NULL, 0, false, {ATTEMPT_LOST, .exit_code = -1, .lost = 2},
		{RUN_QUEUED, 0, ATTEMPT_LOST, .lost = true, .reason = "rerun 3 of 3 after loss"}},
	{"a fourth is not", 0, NULL, 0, false, {ATTEMPT_LOST, .exit_code = -1, .lost = 3},
		{RUN_LOST, .outcome = ATTEMPT_LOST, .lost = true, .reason = "lost"}},
	{"a fourth, where retries were asked for, is a dead letter", 9, NULL, 0, false, {ATTEMPT_LOST, .exit_code = -1, .lost = 3},
		{RUN_LOST, .outcome = ATTEMPT_LOST, .lost = true, .dead = true, .reason = "lost"}},
	{"on_lost fail", 9, NULL, 0, true, {ATTEMPT_LOST, .exit_code = -1},
		{RUN_LOST, .outcome = ATTEMPT_LOST, .lost = true, .dead = true, .reason = "lost"}},
	{"lost after it was asked to end", 0, NULL, 0, false, {ATTEMPT_LOST, .exit_code = -1, .cancel_asked = true},
		{RUN_CANCELLED, .outcome = ATTEMPT_LOST, .lost = true, .reason = "cancelled"}},
	{"lost for the fourth time after it was asked to end", 0, NULL, 0, true,
		{ATTEMPT_LOST, .exit_code = -1, .cancel_asked = true, .lost = 3},
		{RUN_CANCELLED, .outcome = ATTEMPT_LOST, .lost = true, .reason = "cancelled"}},
	{"a shutdown uses up nothing", 0, NULL, 0, true, {ATTEMPT_LOST, .stopped = true, .exit_code = -1, .lost = 3},
		{RUN_QUEUED, 0, ATTEMPT_LOST, .reason = "rerun after shutdown"}},
	{"a shutdown after it was asked to end", 0, NULL, 0, false,
		{ATTEMPT_LOST, .stopped = true, .exit_code = -1, .cancel_asked = true},
		{RUN_CANCELLED, .outcome = ATTEMPT_LOST, .reason = "cancelled"}},

	{"run timeout: a retry that would begin after it is none", 9, NULL, 130 * USEC_SEC, false,
		{ATTEMPT_FAILED, .exit_code = 1},
		{RUN_TIMED_OUT, .outcome = ATTEMPT_FAILED, .failure = true, .dead = true, .reason = "run timeout"}},
	{"run timeout: one that begins just before it is one", 9, NULL, 130 * USEC_SEC + 1, false,
		{ATTEMPT_FAILED, .exit_code = 1},
		{RUN_QUEUED, 30 * USEC_SEC, ATTEMPT_FAILED, .failure = true, .reason = "retry 1 of 9 after exit code 1"}},
	{"run timeout: ends the attempt that runs then, for good", 9, NULL, 100 * USEC_SEC, false,
		{ATTEMPT_TIMED_OUT, .exit_code = -1},
		{RUN_TIMED_OUT, .outcome = ATTEMPT_TIMED_OUT, .failure = true, .dead = true, .reason = "run timeout"}},
	{"run timeout: says so without retries too", 0, NULL, 100 * USEC_SEC, false,
		{ATTEMPT_TIMED_OUT, .exit_code = -1}, {RUN_TIMED_OUT, .outcome = ATTEMPT_TIMED_OUT, .failure = true, .reason = "run timeout"}},
	{"run timeout: retries may be used up first", 1, NULL, 110 * USEC_SEC, false,
		{ATTEMPT_FAILED, .exit_code = 1, .failures = 1},
		{RUN_FAILED, .outcome = ATTEMPT_FAILED, .failure = true, .dead = true, .reason = "retries used up"}},
	{"run timeout: what is lost after it is not started again", 0, NULL, 100 * USEC_SEC, false,
		{ATTEMPT_LOST, .exit_code = -1}, {RUN_TIMED_OUT, .outcome = ATTEMPT_LOST, .lost = true, .reason = "run timeout"}},
	{"run timeout: success is success", 0, NULL, 50 * USEC_SEC, false, {ATTEMPT_SUCCEEDED, .exit_code = 0},
		{RUN_SUCCEEDED, .outcome = ATTEMPT_SUCCEEDED}},
};

static void check_row(const struct row *r)
{
	struct retry_policy p;
	struct judge_case c = r->in;
	struct judge_verdict v;
	usec_t due_at = r->out.state == RUN_QUEUED ? NOW + r->out.due_at : 0;

	policy_of(&p, r->retries, r->on_exit);
	p.run_timeout = r->run_timeout;
	p.rerun_lost = !r->fail_lost;
	c.now = NOW;
	c.first_start = FIRST;
	c.random = 4711;
	v = judge_attempt(&p, &c);
	if (v.state != r->out.state || v.due_at != due_at || v.outcome != r->out.outcome ||
	    v.failure != r->out.failure || v.lost != r->out.lost || v.dead != r->out.dead ||
	    v.pause != r->out.pause || strcmp(v.reason, r->out.reason) != 0)
		fail_msg("%s: %s, due %+lld us, %s%s%s%s%s, '%s'", r->name, run_state_name(v.state),
			(long long)(v.due_at - NOW), attempt_outcome_name(v.outcome), v.failure ? " failure" : "",
			v.lost ? " lost" : "", v.dead ? " dead" : "", v.pause ? " pause" : "", v.reason);
	assert_true(run_move_allowed(RUN_RUNNING, v.state));
}

static void every_end_has_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTS(rows); i++)
		check_row(&rows[i]);
}

/* All combinations: what must hold whatever was asked for. */
static void a_verdict_is_consistent(void **state)
{
	static const char *const rules[] = {NULL, "0=retry", "1=dead", "1=pause", "1=ok", "1=fail"};
	struct retry_policy p;
	unsigned n = 0;

	(void)state;
	for (int i = 0; i < (ATTEMPT_STALE - ATTEMPT_SUCCEEDED) * 6 * 3 * 5 * 2 * 2 * 2; i++) {
		int x = i;
		struct judge_case c = {.outcome = (enum attempt_outcome)(ATTEMPT_SUCCEEDED + x % (ATTEMPT_STALE - ATTEMPT_SUCCEEDED)),
			.now = NOW, .first_start = FIRST, .random = (uint64_t)i * 2654435761u};
		struct judge_verdict v;

		x /= ATTEMPT_STALE - ATTEMPT_SUCCEEDED;
		policy_of(&p, x / 6 % 3, rules[x % 6]);
		x /= 18;
		c.failures = c.lost = x % 5;
		x /= 5;
		c.cancel_asked = x % 2;
		p.run_timeout = x / 2 % 2 ? 120 * USEC_SEC : 0;
		c.exit_code = c.outcome == ATTEMPT_SUCCEEDED ? 0 : x / 4 ? 1 : -1;
		v = judge_attempt(&p, &c);
		assert_true(run_move_allowed(RUN_RUNNING, v.state));
		assert_false(v.failure && v.lost);
		assert_true((v.state == RUN_QUEUED) == (v.due_at != 0));
		assert_true(v.state != RUN_QUEUED || (!c.cancel_asked && !v.dead && !v.pause && v.due_at >= NOW));
		assert_true(v.state != RUN_QUEUED || !v.failure || c.failures < p.retries);
		assert_true(v.state != RUN_QUEUED || !v.lost || c.lost < RUN_LOST_MAX);
		assert_true(!v.dead || v.state == RUN_FAILED || v.state == RUN_TIMED_OUT || v.state == RUN_LOST);
		assert_true(!p.run_timeout || v.due_at < FIRST + p.run_timeout);
		n++;
	}
	assert_true(n > 2000);
}

/* Full jitter: each wait is anywhere from nothing to its ceiling, and the ceiling doubles up to the cap. */
static void exponential_waits_are_spread_below_a_doubling_ceiling(void **state)
{
	enum { DRAWS = 20000, BINS = 10 };
	const struct backoff b = {false, 10 * USEC_SEC, 100 * USEC_SEC};
	static const usec_t ceilings[] = {10, 20, 40, 80, 100, 100, 100};
	uint64_t x = 88172645463325252u;

	(void)state;
	for (size_t k = 0; k < ELEMENTS(ceilings); k++) {
		usec_t ceiling = ceilings[k] * USEC_SEC;
		unsigned bins[BINS] = {};

		for (int i = 0; i < DRAWS; i++) {
			usec_t d;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			d = policy_backoff_delay(&b, (int64_t)k + 1, x);
			assert_true(d >= 0 && d <= ceiling);
			bins[d == ceiling ? BINS - 1 : d * BINS / ceiling]++;
		}
		for (int i = 0; i < BINS; i++) /* 2000 expected, standard deviation 42 */
			assert_in_range(bins[i], 1780, 2220);
	}
	assert_true(policy_backoff_delay(&b, 1000, UINT64_MAX) <= 100 * USEC_SEC);
}

static void a_fixed_wait_is_what_it_says(void **state)
{
	const struct backoff b = {true, 30 * USEC_SEC, 30 * USEC_SEC};

	(void)state;
	for (int64_t i = 1; i < 1000; i++)
		assert_true(policy_backoff_delay(&b, i, (uint64_t)i * 7919) == 30 * USEC_SEC);
}

static void an_attempt_has_what_is_left_of_its_run(void **state)
{
	static const struct {
		usec_t run_timeout, first_start, timeout, now;
		bool may;
		usec_t left;
	} cases[] = {
		{0, 0, 0, 100, true, 0},
		{0, 50, 7, 100, true, 7},
		{60, 0, 0, 100, true, 60},    /* the first attempt has all of it */
		{60, 0, 70, 100, true, 60},
		{60, 0, 50, 100, true, 50},
		{60, 50, 0, 100, true, 10},
		{60, 50, 20, 100, true, 10},
		{60, 50, 5, 100, true, 5},
		{60, 50, 0, 109, true, 1},
		{60, 50, 0, 110, false, 0},
		{60, 50, 5, 9999, false, 0},
		{60, 500, 0, 100, true, 60},  /* the clock was set back */
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct retry_policy p = {.run_timeout = cases[i].run_timeout};
		usec_t left = 0;

		assert_int_equal(judge_time_left(&p, cases[i].first_start, cases[i].timeout, cases[i].now, &left), cases[i].may);
		assert_true(left == cases[i].left);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_end_has_its_verdict),
		TEST(a_verdict_is_consistent),
		TEST(exponential_waits_are_spread_below_a_doubling_ceiling),
		TEST(a_fixed_wait_is_what_it_says),
		TEST(an_attempt_has_what_is_left_of_its_run),
	};

	return RUN_TESTS(tests);
}
