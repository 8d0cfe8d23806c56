/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of slots that are decided late: caught up, inside a past pause, or past their deadline. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/late_runs.h"
#include "store/ops/run/plans.h"
#include "unit/store/claim_fixture.h"
#include <string.h>

#define HOUR USEC_HOUR

static const struct start_policy skips = {.overlap = OVERLAP_SKIP, .permits = 1};

static void pause_scope(struct store *s, enum pause_scope scope, usec_t at, usec_t until)
{
	AUTO(op) *op = op_new(OP_PAUSE, NULL, NULL);

	op_fill(pause_op(op), .uid = -1, .pause = {.scope = scope, .key = (char *)"", .uid = -1, .by_uid = 7,
		.by_name = (char *)"eve", .at = at, .until = until});
	assert_true(apply_one(s, op));
}

static void pause_job(struct store *s, int64_t job, usec_t at, usec_t until)
{
	AUTO(op) *op = op_new(OP_PAUSE, NULL, NULL);

	op_fill(pause_op(op), .uid = -1, .job = job, .pause = {.by_uid = 7, .by_name = (char *)"eve", .at = at,
		.until = until});
	assert_true(apply_one(s, op));
}

static void resume(struct store *s, enum pause_scope scope, int64_t job, usec_t now)
{
	AUTO(op) *op = op_new(OP_RESUME, NULL, NULL);

	op_fill(resume_op(op), .uid = -1, .job = job, .scope = scope, .key = "", .of_uid = -1, .now = now);
	assert_true(apply_one(s, op));
	assert_true(resume_op(op)->found);
}

static bool resume_until(struct store *s, enum pause_scope scope, int64_t job, usec_t now, usec_t until)
{
	AUTO(op) *op = op_new(OP_RESUME, NULL, NULL);

	op_fill(resume_op(op), .uid = -1, .job = job, .scope = scope, .key = "", .of_uid = -1, .now = now,
		.until = until, .by_uid = 7, .by_name = "eve", .reason = "night");
	return apply_one(s, op);
}

static void end_pauses(struct store *s, usec_t now)
{
	AUTO(op) *op = op_new(OP_PAUSES_END, NULL, NULL);

	pause_times_op(op)->now = now;
	assert_true(apply_one(s, op));
}

static size_t expire(struct store *s, usec_t now)
{
	AUTO(op) *op = op_new(OP_EXPIRE, NULL, NULL);

	expired_runs_op(op)->now = now;
	assert_true(apply_one(s, op));
	return expired_runs_op(op)->expired.n;
}

static void past_pauses_are(void **state, const char *n)
{
	AUTO_TEXT rows = ask(state, "SELECT count(*) FROM pauses_past");

	if (!strstr(rows, n))
		fail_msg("%s past pauses, not %s", rows, n);
}

/* ---- catching up ---- */

static void slots_to_be_caught_up_run_one_after_another(void **state)
{
	struct store *s = store_of(state);

	add_slots(s, &(struct slots){.n = 4, .step = 20 * USEC_SEC, .policy = skips, .next = T0 + HOUR});
	sql(state, "UPDATE runs SET caught_up = 1 WHERE id <= 3");
	claim_is(state, 9, T0 + 40 * USEC_SEC, "1");
	states_are(state, "claimed held held queued");
	claim_is(state, 9, T0 + USEC_MIN, "");
	claim_is(state, 9, T0 + USEC_MIN, "");
	states_are(state, "claimed held held skipped:overlap"); /* the last was planned in time */
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 2 * USEC_MIN);
	claim_is(state, 9, T0 + 2 * USEC_MIN, "2");
	end_by_number(s, 2, ATTEMPT_FAILED, T0 + 3 * USEC_MIN);
	claim_is(state, 9, T0 + 3 * USEC_MIN, "3");
	kept_is_true(state);
}

static size_t one_missed_the_rest_caught_up(const struct late_job *late, usec_t now, bool *ret_caught_up, void *arg)
{
	(void)late;
	(void)now;
	(void)arg;
	*ret_caught_up = true;
	return 1;
}

static void runs_planned_before_an_outage_are_caught_up_too(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *late = op_new(OP_LATE, NULL, NULL);

	add_slots(s, &(struct slots){.n = 4, .policy = skips, .next = T0 + HOUR});
	op_fill(late_runs_op(late), .since = T0 - 1, .now = T0 + USEC_MIN, .fn = one_missed_the_rest_caught_up);
	assert_true(apply_one(s, late));
	claim_is(state, 9, T0 + USEC_MIN, "2");
	states_are(state, "skipped:missed claimed held held");
}

/* ---- pauses ---- */

static void a_slot_inside_a_pause_is_skipped_however_late_it_is_looked_at(void **state)
{
	struct store *s = store_of(state);

	/* slots at T0, T0 + 1 min ... T0 + 4 min; the pause covers the second and the third */
	add_slots(s, &(struct slots){.n = 5, .step = USEC_MIN, .policy = {.overlap = OVERLAP_ALLOW}, .next = T0 + HOUR});
	pause_scope(s, PAUSE_ALL, T0 + USEC_SEC, T0 + 3 * USEC_MIN);
	end_pauses(s, T0 + 10 * USEC_MIN);
	past_pauses_are(state, "1");
	claim_is(state, 9, T0 + 10 * USEC_MIN, "1 4 5");
	states_are(state, "claimed skipped:paused skipped:paused claimed claimed");
	past_pauses_are(state, "0"); /* every slot inside it is planned and decided */
	kept_is_true(state);
}

static void a_pause_that_was_not_tidied_yet_is_decided_by_the_slot(void **state)
{
	struct store *s = store_of(state);

	add_slots(s, &(struct slots){.n = 3, .step = USEC_MIN, .policy = {.overlap = OVERLAP_ALLOW}, .next = T0 + HOUR});
	pause_scope(s, PAUSE_FREEZE, T0 + USEC_SEC, T0 + 2 * USEC_MIN);
	claim_is(state, 9, T0 + 10 * USEC_MIN, "1 3");
	states_are(state, "claimed skipped:frozen claimed");
}

static void a_resumed_pause_decides_about_slots_planned_after_it(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_due(s, "tick", T0), other = add_due(s, "behind", T0 + USEC_SEC);
	usec_t end = T0 + 20 * USEC_SEC;
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 9 * USEC_SEC);
	AUTO_TEXT rows = NULL;

	/* the planner is behind: nothing of the last ten seconds is planned */
	pause_job(s, job, T0 + 2 * USEC_SEC, 0);
	resume(s, PAUSE_JOB, job, T0 + 5 * USEC_SEC);
	pause_job(s, job, T0 + 7 * USEC_SEC, 0); /* two pauses in a row */
	resume(s, PAUSE_JOB, job, T0 + 8 * USEC_SEC);
	past_pauses_are(state, "2");
	plan_op(plan)->now = T0 + 9 * USEC_SEC;
	assert_true(apply_one(s, plan));
	{
		AUTO(op) *claim = op_claim(99, T0 + 9 * USEC_SEC);

		assert_true(apply_one(s, claim));
		assert_int_equal(claim_op(claim)->claimed.n, 10 + 9 - 4); /* of the other job all nine */
	}
	rows = ask(state, "SELECT count(*) FROM runs WHERE reason = 'paused' AND job = 1");
	assert_non_null(strstr(rows, "4")); /* seconds 2, 3, 4 and 7 */
	past_pauses_are(state, "0");
	assert_counts_true(s);
	(void)other;
}

static void a_pause_of_a_job_that_begins_again_is_decided_by_the_slot(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_due(s, "tick", T0);
	usec_t end = T0 + 20 * USEC_SEC;
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 9 * USEC_SEC);
	AUTO(op) *before = op_claim(99, T0 + 4 * USEC_SEC);
	AUTO(op) *claim = op_claim(99, T0 + 9 * USEC_SEC);
	AUTO_TEXT rows = NULL;

	pause_job(s, job, T0 - 10 * USEC_SEC, 0);
	assert_true(resume_until(s, PAUSE_JOB, job, T0 - 5 * USEC_SEC, T0 + 5 * USEC_SEC));
	plan_op(plan)->now = T0;
	assert_true(apply_one(s, plan));
	assert_true(apply_one(s, before));
	assert_int_equal(claim_op(before)->claimed.n, 5);
	assert_true(apply_one(s, claim)); /* the job is not in state paused yet */
	assert_int_equal(claim_op(claim)->claimed.n, 0);
	rows = ask(state, "SELECT count(*) FROM runs WHERE reason = 'paused' AND ended_at <> 0");
	assert_non_null(strstr(rows, "5"));
	assert_counts_true(s);
}

static void a_pause_of_a_scope_that_begins_again_is_decided_by_the_slot(void **state)
{
	struct store *s = store_of(state);

	add_slots(s, &(struct slots){.n = 5, .step = USEC_MIN, .policy = {.overlap = OVERLAP_ALLOW}, .next = T0 + HOUR});
	assert_false(resume_until(s, PAUSE_ALL, 0, T0, T0 + USEC_MIN)); /* there is no pause yet */
	pause_scope(s, PAUSE_ALL, T0 - USEC_SEC, 0);
	assert_true(resume_until(s, PAUSE_ALL, 0, T0, T0 + USEC_MIN));
	assert_true(resume_until(s, PAUSE_ALL, 0, T0, T0 + 2 * USEC_MIN)); /* replaces the one before */
	claim_is(state, 1, T0, "1");
	end_pauses(s, T0 + 10 * USEC_MIN);
	requeue(s, 1, T0 + USEC_MIN);
	claim_is(state, 9, T0 + 10 * USEC_MIN, ""); /* the pause is in force for whatever could wait */
	states_are(state, "held:paused held:paused skipped:paused skipped:paused skipped:paused");
	resume(s, PAUSE_ALL, 0, T0 + 11 * USEC_MIN);
	claim_is(state, 9, T0 + 11 * USEC_MIN, "1 2");
	assert_counts_true(s);
}

static void a_past_pause_is_kept_until_its_slots_are_planned(void **state)
{
	struct store *s = store_of(state);

	add_due(s, "behind", T0 + USEC_SEC);
	add_job(s, "now");
	pause_scope(s, PAUSE_ALL, T0 + 1, T0 + USEC_MIN);
	end_pauses(s, T0 + HOUR);
	claim_is(state, 9, T0 + HOUR, "1");
	past_pauses_are(state, "1");
}

static void a_run_in_a_full_queue_is_skipped_when_its_past_pause_is_dropped(void **state)
{
	struct store *s = store_of(state);

	sql(state, "INSERT INTO limits (scope, key, running, weight, rate_n, rate_per, rate_burst) VALUES ('queue', 'slow', 1, 100, 0, 0, 0)");
	add_slots(s, &(struct slots){.n = 1, .policy = {.overlap = OVERLAP_ALLOW}, .queue = "slow", .next = T0 + HOUR});
	add_slots(s, &(struct slots){.n = 1, .first = T0 + USEC_MIN, .policy = {.overlap = OVERLAP_ALLOW}, .queue = "slow", .next = T0 + HOUR});
	add_slots(s, &(struct slots){.n = 1, .first = T0 + USEC_MIN, .policy = {.overlap = OVERLAP_ALLOW}, .next = T0 + HOUR});
	claim_is(state, 9, T0, "1"); /* the queue is full */
	pause_scope(s, PAUSE_ALL, T0 + USEC_SEC, T0 + 2 * USEC_MIN);
	end_pauses(s, T0 + 3 * USEC_MIN);
	claim_is(state, 9, T0 + 3 * USEC_MIN, "");
	states_are(state, "claimed skipped:paused skipped:paused");
	past_pauses_are(state, "0");
	kept_is_true(state);
}

static void a_slot_before_the_pause_waits_for_its_end(void **state)
{
	struct store *s = store_of(state);

	add_slots(s, &(struct slots){.n = 1, .policy = skips, .next = T0 + HOUR});
	pause_scope(s, PAUSE_ALL, T0 + USEC_SEC, 0);
	claim_is(state, 9, T0 + 2 * USEC_SEC, "");
	states_are(state, "held:paused");
	resume(s, PAUSE_ALL, 0, T0 + USEC_MIN);
	claim_is(state, 9, T0 + USEC_MIN, "1");
}

/* ---- deadlines ---- */

static void a_run_that_is_paused_expires_at_its_deadline(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(9, T0 + 1);
	struct batch_wake wake;

	add_slots(s, &(struct slots){.n = 1, .policy = {.overlap = OVERLAP_SKIP, .permits = 1, .deadline = USEC_MIN}});
	pause_scope(s, PAUSE_ALL, T0, 0);
	wake = apply_all(s, &claim, 1);
	states_are(state, "held:paused");
	assert_int_equal(wake.expiry, T0 + USEC_MIN);
	assert_int_equal(expire(s, T0 + USEC_MIN), 0);
	assert_int_equal(expire(s, T0 + USEC_MIN + 1), 1);
	states_are(state, "expired:deadline (paused)");
	kept_is_true(state);
}

static void a_run_in_a_full_queue_expires_at_its_deadline(void **state)
{
	struct store *s = store_of(state);
	const struct start_policy first = {.overlap = OVERLAP_ALLOW, .deadline = HOUR};
	const struct start_policy late = {.overlap = OVERLAP_ALLOW, .deadline = USEC_MIN, .expires = 2 * USEC_MIN};

	sql(state, "INSERT INTO limits (scope, key, running, weight, rate_n, rate_per, rate_burst) VALUES ('queue', 'slow', 1, 100, 0, 0, 0)");
	add_slots(s, &(struct slots){.n = 1, .policy = first, .queue = "slow"});
	add_slots(s, &(struct slots){.n = 1, .first = T0 + 1, .policy = late, .queue = "slow"});
	claim_is(state, 9, T0 + 2, "1");
	assert_int_equal(expire(s, T0 + USEC_MIN + 1), 0);
	assert_int_equal(expire(s, T0 + USEC_MIN + 2), 1);
	states_are(state, "claimed expired:deadline (limit)");
	assert_int_equal(expire(s, T0 + 2 * HOUR), 0); /* a run that was started has kept its deadline */
	kept_is_true(state);
}

static void a_retry_expires_while_it_waits(void **state)
{
	struct store *s = store_of(state);

	add_slots(s, &(struct slots){.n = 1, .policy = {.overlap = OVERLAP_SKIP, .permits = 1, .deadline = USEC_SEC, .expires = USEC_MIN}});
	claim_is(state, 9, T0, "1");
	requeue(s, 1, T0 + HOUR);
	assert_int_equal(expire(s, T0 + USEC_MIN), 0); /* the deadline is for the first attempt */
	assert_int_equal(expire(s, T0 + USEC_MIN + 1), 1);
	kept_is_true(state);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(slots_to_be_caught_up_run_one_after_another),
	STORE_TEST(runs_planned_before_an_outage_are_caught_up_too),
	STORE_TEST(a_slot_inside_a_pause_is_skipped_however_late_it_is_looked_at),
	STORE_TEST(a_pause_that_was_not_tidied_yet_is_decided_by_the_slot),
	STORE_TEST(a_resumed_pause_decides_about_slots_planned_after_it),
	STORE_TEST(a_pause_of_a_job_that_begins_again_is_decided_by_the_slot),
	STORE_TEST(a_pause_of_a_scope_that_begins_again_is_decided_by_the_slot),
	STORE_TEST(a_past_pause_is_kept_until_its_slots_are_planned),
	STORE_TEST(a_run_in_a_full_queue_is_skipped_when_its_past_pause_is_dropped),
	STORE_TEST(a_slot_before_the_pause_waits_for_its_end),
	STORE_TEST(a_run_that_is_paused_expires_at_its_deadline),
	STORE_TEST(a_run_in_a_full_queue_expires_at_its_deadline),
	STORE_TEST(a_retry_expires_while_it_waits),
};
const struct suite_part store_slots_part = {tests, ELEMENTS(tests)};
