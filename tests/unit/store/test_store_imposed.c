/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pauses that an administrator set: the owner cannot end them. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/ops/run/triggers.h"
#include "unit/store/pause_fixture.h"
#include <string.h>

static void assert_denied(struct store *s, struct op *op /* moved */)
{
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_DENIED);
	assert_non_null(strstr(op->err.msg, "paused by eve"));
	assert_non_null(strstr(op->err.msg, "only an administrator"));
	op_free(op);
	assert_counts_true(s);
}

static struct op *ann_pauses(struct op *op)
{
	pause_op(op)->uid = pause_op(op)->pause.by_uid = ANN;
	pause_op(op)->pause.by_name = (char *)"ann";
	return op;
}

static struct op *ann_resumes(struct op *op)
{
	resume_op(op)->uid = ANN;
	return op;
}

static struct op *ann_triggers(int64_t id, bool forced)
{
	struct op *op = op_trigger(id, T0 + 3);

	trigger_op(op)->uid = ANN;
	trigger_op(op)->forced = forced;
	return op;
}

static struct op *ann_ends(enum op_kind kind, int64_t id)
{
	struct op *op = op_job_cancel(kind, id);

	job_cancel_op(op)->uid = ANN;
	return op;
}

static struct op *ann_renames(int64_t id, const char *name)
{
	struct op *op = op_new(OP_JOB_CHANGE, NULL, NULL);

	op_fill(job_change_op(op), .uid = ANN, .id = id, .what = "name",
		.to = {.name = name, .spec = "{}", .now = T0 + 3});
	return op;
}

static void an_owner_does_not_lift_an_administrators_pause_of_a_job(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *lift = op_resume(id, T0 + 9);

	assert_true(pause_job(s, id, T0, 0));
	assert_denied(s, ann_resumes(op_resume(id, T0 + 2)));
	assert_denied(s, ann_pauses(op_pause(id, T0 + 2, T0 + 3))); /* nor replace it by a shorter pause */
	assert_denied(s, ann_triggers(id, false));
	assert_denied(s, ann_triggers(id, true));
	assert_denied(s, ann_renames(id, "other"));
	assert_denied(s, ann_ends(OP_JOB_REMOVE, id));
	assert_int_equal(state_of(s, id), JOB_PAUSED);
	assert_true(apply_one(s, lift));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_counts_true(s);
}

static struct op *op_resume_until(int64_t id, usec_t now, usec_t until, const char *reason)
{
	struct op *op = op_resume(id, now);

	resume_op(op)->until = until;
	resume_op(op)->by_uid = 7;
	resume_op(op)->by_name = "eve";
	resume_op(op)->reason = reason;
	return op;
}

static void a_resumed_job_is_paused_again_at_the_given_time(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "night", NULL);
	AUTO(op) *none = op_resume_until(id, T0, T0 + HOUR, NULL);
	AUTO(op) *until = op_resume_until(id, T0 + 1, T0 + HOUR, NULL);
	AUTO(op) *again = op_resume_until(id, T0 + 2, T0 + 2 * HOUR, NULL);
	AUTO(op) *early = op_trigger(id, T0 + 3), *late = op_trigger(id, T0 + 2 * HOUR);
	AUTO(op) *due = op_new(OP_PAUSES_END, NULL, NULL);
	AUTO(op) *lift = op_resume(id, T0 + 3 * HOUR);
	struct batch_wake wake;
	AUTO(job) *j = NULL;

	assert_false(apply_one(s, none));
	assert_int_equal(none->err.kind, ERR_CONFLICT);
	assert_true(pause_job(s, id, T0, 0));
	wake = apply_all(s, &until, 1);
	assert_int_equal(wake.pause_end, T0 + HOUR);
	wake = apply_all(s, &again, 1); /* replaces the one before, and keeps the reason */
	assert_int_equal(wake.pause_end, T0 + 2 * HOUR);
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_true(apply_one(s, early));
	pause_times_op(due)->now = T0 + 2 * HOUR;
	wake = apply_all(s, &due, 1);
	assert_int_equal(pause_times_op(due)->begun, 1);
	assert_int_equal(wake.pause_end, USEC_NEVER);
	j = get_job(s, id);
	assert_int_equal(j->state, JOB_PAUSED);
	assert_string_equal(j->reason, "works");
	assert_int_equal(j->pause.at, T0 + 2 * HOUR);
	assert_false(apply_one(s, late));
	assert_counts_true(s);
	assert_true(apply_one(s, lift));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
}

static void an_owner_does_not_lift_an_administrators_pause_that_is_to_come(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *until = op_resume_until(id, T0 + 1, T0 + HOUR, "night");
	AUTO(op) *early = ann_triggers(id, false);
	AUTO(op) *begin = op_new(OP_PAUSES_END, NULL, NULL);

	assert_true(pause_job(s, id, T0, 0));
	assert_true(apply_one(s, until));
	assert_denied(s, ann_resumes(op_resume(id, T0 + 2)));
	assert_denied(s, ann_resumes(op_resume_until(id, T0 + 2, T0 + 9 * HOUR, NULL)));
	assert_denied(s, ann_pauses(op_pause(id, T0 + 2, T0 + 3)));
	assert_denied(s, ann_ends(OP_JOB_REMOVE, id));
	assert_true(apply_one(s, early));
	pause_times_op(begin)->now = T0 + HOUR;
	assert_true(apply_one(s, begin));
	assert_denied(s, ann_resumes(op_resume(id, T0 + HOUR + 1)));
	assert_int_equal(state_of(s, id), JOB_PAUSED);
}

static void an_administrators_pause_outlives_a_cancellation_by_the_owner(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *cancel = ann_ends(OP_JOB_CANCEL, id);
	AUTO(op) *other = op_add("free", NULL, NULL);
	AUTO(op) *same = op_add("held", NULL, NULL);

	assert_true(pause_job(s, id, T0, T0 + HOUR));
	assert_true(apply_one(s, cancel));
	assert_int_equal(state_of(s, id), JOB_CANCELLED);
	assert_denied(s, ann_resumes(op_resume(id, T0 + 2)));
	assert_denied(s, ann_ends(OP_JOB_REMOVE, id));
	assert_denied(s, op_add("held", NULL, NULL));
	assert_true(apply_one(s, other));
	job_add_op(same)->job.now = T0 + HOUR; /* the pause has ended by then */
	assert_true(apply_one(s, same));
	assert_counts_true(s);
}

static void an_administrator_gives_a_paused_name_away(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *cancel = ann_ends(OP_JOB_CANCEL, id);
	AUTO(op) *add = op_add("held", NULL, NULL);

	assert_true(pause_job(s, id, T0, 0));
	assert_true(apply_one(s, cancel));
	job_add_op(add)->job.by_admin = true;
	assert_true(apply_one(s, add));
}

static void an_owner_does_not_lift_an_administrators_pause_of_the_owner(void **state)
{
	static const struct {
		enum pause_scope scope;
		const char *key;
	} cases[] = {{PAUSE_OWNER, "1000"}, {PAUSE_ALL, ""}, {PAUSE_TAG, "a=1"}};
	struct store *s = store_of(state);
	AUTO_DONE(strv) tags = {};
	int64_t id;

	strv_add(&tags, "a=1");
	id = add_recurring(s, "held", &tags);
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct op *trigger = ann_triggers(id, true);

		put_scope(s, cases[i].scope, cases[i].key, ANN);
		assert_denied(s, ann_resumes(op_unscope(cases[i].scope, cases[i].key, ANN)));
		assert_denied(s, ann_pauses(op_scope(cases[i].scope, cases[i].key, ANN, T0 + 5)));
		trigger_op(trigger)->tags = &tags;
		assert_denied(s, trigger);
		drop_scope(s, cases[i].scope, cases[i].key, ANN);
	}
}

static void an_owner_ends_pauses_of_his_own_and_of_an_exit_code(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "mine", NULL);
	AUTO(op) *pause = ann_pauses(op_pause(id, T0, 0));
	AUTO(op) *resume = ann_resumes(op_resume(id, T0 + 1));
	AUTO(op) *by_exit = op_pause(id, T0 + 2, 0);
	AUTO(op) *again = ann_resumes(op_resume(id, T0 + 3));
	AUTO(op) *scope = ann_pauses(op_scope(PAUSE_ALL, "", ANN, 0));
	AUTO(op) *unscope = ann_resumes(op_unscope(PAUSE_ALL, "", ANN));

	assert_true(apply_one(s, pause));
	assert_true(apply_one(s, resume));
	pause_op(by_exit)->pause.by_uid = -1;
	assert_true(apply_one(s, by_exit));
	assert_true(apply_one(s, again));
	assert_true(apply_one(s, scope));
	assert_true(apply_one(s, unscope));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(an_owner_does_not_lift_an_administrators_pause_of_a_job),
	STORE_TEST(a_resumed_job_is_paused_again_at_the_given_time),
	STORE_TEST(an_owner_does_not_lift_an_administrators_pause_that_is_to_come),
	STORE_TEST(an_administrators_pause_outlives_a_cancellation_by_the_owner),
	STORE_TEST(an_administrator_gives_a_paused_name_away),
	STORE_TEST(an_owner_does_not_lift_an_administrators_pause_of_the_owner),
	STORE_TEST(an_owner_ends_pauses_of_his_own_and_of_an_exit_code),
};
const struct suite_part store_imposed_part = {tests, ELEMENTS(tests)};
