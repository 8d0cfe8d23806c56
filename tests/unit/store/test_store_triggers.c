/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of triggered runs, and of cancelled jobs that are resumed. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/triggers.h"
#include "unit/store/pause_fixture.h"
#include <string.h>

static void two_triggers_in_one_microsecond_are_two_runs(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "twice", NULL);
	struct op *ops[] = {op_trigger(id, T0 + 5), op_trigger(id, T0 + 5)};

	apply_all(s, ops, 2);
	assert_true(ops[0]->ok && ops[1]->ok);
	assert_int_not_equal(trigger_op(ops[0])->run->id, trigger_op(ops[1])->run->id);
	assert_int_equal(trigger_op(ops[0])->run->kind, RUN_KIND_MANUAL);
	assert_int_equal(trigger_op(ops[1])->run->due_at, T0 + 5);
	assert_counts_true(s);
	op_free(ops[0]);
	op_free(ops[1]);
}

static void force_overrules_a_pause_and_a_freeze_only_for_administrators(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(run) *first = claim_one(s, T0);
	AUTO(op) *pause = op_pause(id, T0, 0);
	AUTO(op) *plain = op_trigger(id, T0 + 1);
	AUTO(op) *forced = op_trigger(id, T0 + 1);
	AUTO(op) *frozen = op_trigger(id, T0 + 2);
	AUTO(op) *thawing = op_trigger(id, T0 + 3);

	end_run(s, first, ATTEMPT_SUCCEEDED, T0 + 1);
	pause_op(pause)->pause.by_uid = ANN;
	assert_true(apply_one(s, pause));
	assert_false(apply_one(s, plain));
	assert_int_equal(plain->err.kind, ERR_CONFLICT);
	assert_non_null(strstr(plain->err.msg, "paused by eve"));
	assert_non_null(strstr(plain->err.msg, "works"));
	assert_non_null(strstr(plain->err.msg, "--force"));
	trigger_op(forced)->forced = trigger_op(frozen)->forced = trigger_op(thawing)->forced = trigger_op(thawing)->overrides_freeze = true;
	assert_true(apply_one(s, forced));
	assert_claimed(s, trigger_op(forced)->run->id, T0 + 1, RUN_CLAIMED, NULL);
	put_scope(s, PAUSE_FREEZE, "", -1);
	assert_false(apply_one(s, frozen));
	assert_non_null(strstr(frozen->err.msg, "administrator"));
	assert_true(apply_one(s, thawing));
	assert_claimed(s, trigger_op(thawing)->run->id, T0 + 3, RUN_CLAIMED, NULL);
}

static void a_finished_job_lives_for_its_run(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "again");
	AUTO(run) *first = claim_one(s, T0);
	AUTO(run) *second = NULL;
	AUTO(op) *trigger = op_trigger(id, T0 + 5);
	AUTO(op) *taken = op_trigger(id, T0 + 9);

	end_run(s, first, ATTEMPT_SUCCEEDED, T0 + 1);
	assert_int_equal(state_of(s, id), JOB_FINISHED);
	assert_true(apply_one(s, trigger));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_counts_true(s);
	second = claim_one(s, T0 + 6);
	assert_int_equal(second->id, trigger_op(trigger)->run->id);
	end_run(s, second, ATTEMPT_SUCCEEDED, T0 + 7);
	assert_int_equal(state_of(s, id), JOB_FINISHED);
	add_recurring(s, "again", NULL);
	assert_false(apply_one(s, taken));
	assert_int_equal(taken->err.kind, ERR_CONFLICT);
	assert_counts_true(s);
}

static void cancelled_and_changed_jobs_are_not_triggered(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "gone", NULL);
	AUTO(op) *stale = op_trigger(id, T0 + 5);
	AUTO(op) *late = op_trigger(id, T0 + 5);
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);

	trigger_op(stale)->revision = 2;
	assert_false(apply_one(s, stale));
	assert_int_equal(stale->err.kind, ERR_BUSY);
	assert_true(pause_job(s, id, T0, T0 + HOUR));
	assert_true(apply_one(s, cancel));
	assert_false(apply_one(s, late));
	assert_int_equal(late->err.kind, ERR_CONFLICT);
	{
		AUTO(op) *end = op_new(OP_PAUSES_END, NULL, NULL);
		struct batch_wake wake;

		pause_times_op(end)->now = T0 + HOUR;
		wake = apply_all(s, &end, 1);
		assert_int_equal(wake.pause_end, USEC_NEVER);
		assert_int_equal(state_of(s, id), JOB_CANCELLED); /* it stays cancelled */
	}
	assert_counts_true(s);
}

/* ---- cancelled, and back ---- */

/* The schedule has a slot each full hour, up to the last one. */
static void hourly_until(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	usec_t next = due->slot / HOUR * HOUR + HOUR;

	(void)now;
	(void)horizon;
	ret->next_slot = next <= *(const usec_t *)arg ? next : 0;
}

static struct op *op_revive(int64_t job, usec_t now, usec_t *last)
{
	struct op *op = op_resume(job, now);

	resume_op(op)->fn = hourly_until;
	resume_op(op)->fn_arg = last;
	return op;
}

static void a_cancelled_job_that_is_resumed_goes_on_with_its_next_slot(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "tick", NULL);
	usec_t last = USEC_NEVER, later = T0 + 10 * HOUR;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *resume = op_revive(id, later, &last);
	struct batch_wake wake;

	assert_true(apply_one(s, cancel));
	wake = apply_all(s, &resume, 1);
	assert_true(resume->ok && resume_op(resume)->found);
	assert_int_equal(resume_op(resume)->was, JOB_CANCELLED);
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_int_equal(wake.next_slot, later / HOUR * HOUR + HOUR); /* missed slots are not caught up */
	assert_counts_true(s);
}

static void a_cancelled_job_without_a_slot_left_becomes_finished(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "once");
	usec_t last = T0;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *resume = op_revive(id, T0 + 5, &last);
	AUTO(op) *trigger = op_trigger(id, T0 + 6);

	assert_true(apply_one(s, cancel));
	assert_true(apply_one(s, resume));
	assert_int_equal(state_of(s, id), JOB_FINISHED);
	assert_counts_true(s);
	assert_true(apply_one(s, trigger)); /* as jobctl advises */
}

static void a_cancelled_job_whose_name_is_taken_stays_cancelled(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "tick", NULL);
	usec_t last = USEC_NEVER;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *resume = op_revive(id, T0 + 5, &last);
	AUTO(op) *full = op_revive(add_recurring(s, "more", NULL), T0 + 5, &last);
	AUTO(op) *cancel_more = op_job_cancel(OP_JOB_CANCEL, resume_op(full)->job);

	assert_true(apply_one(s, cancel));
	add_recurring(s, "tick", NULL);
	assert_false(apply_one(s, resume));
	assert_int_equal(resume->err.kind, ERR_CONFLICT);
	assert_int_equal(state_of(s, id), JOB_CANCELLED);
	assert_true(apply_one(s, cancel_more));
	resume_op(full)->limit = 1;
	assert_false(apply_one(s, full));
	assert_int_equal(full->err.kind, ERR_LIMIT);
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(two_triggers_in_one_microsecond_are_two_runs),
	STORE_TEST(force_overrules_a_pause_and_a_freeze_only_for_administrators),
	STORE_TEST(a_finished_job_lives_for_its_run),
	STORE_TEST(cancelled_and_changed_jobs_are_not_triggered),
	STORE_TEST(a_cancelled_job_that_is_resumed_goes_on_with_its_next_slot),
	STORE_TEST(a_cancelled_job_without_a_slot_left_becomes_finished),
	STORE_TEST(a_cancelled_job_whose_name_is_taken_stays_cancelled),
};
const struct suite_part store_triggers_part = {tests, ELEMENTS(tests)};
