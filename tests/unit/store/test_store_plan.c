/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of planning: each due slot becomes one run, and the job gets its next slot. */
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/run/boot_runs.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/run_cancel.h"
#include "store/read/list/list_runs.h"
#include "unit/store/store_suite.h"
#include <string.h>

static void each_slot_in_the_window_becomes_a_run(void **state)
{
	struct store *s = store_of(state);
	usec_t end = USEC_LAST;
	AUTO(op) *add = op_due("tick", T0);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	AUTO(op) *claim = op_claim(10, T0 + 2 * USEC_SEC);
	AUTO(job) *job = NULL;
	struct batch_wake wake;

	job_add_op(add)->job.priority = 4;
	assert_true(apply_one(s, add));
	wake = apply_all(s, &plan, 1);
	assert_int_equal(plan_op(plan)->jobs, 1);
	assert_int_equal(plan_op(plan)->runs, 6);
	assert_int_equal(wake.next_slot, T0 + 6 * USEC_SEC);
	assert_int_equal(wake.next_due, T0);
	job = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(job->next_slot, T0); /* lists show the next run, planned or not */
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 3);
	assert_int_equal(claim_op(claim)->claimed.v[2].run->slot, T0 + 2 * USEC_SEC);
	assert_int_equal(claim_op(claim)->claimed.v[2].run->priority, 4);
	assert_counts_true(s);
}

static void while_the_clock_is_unsure_only_newer_runs_are_claimed(void **state)
{
	struct store *s = store_of(state);
	usec_t end = USEC_LAST;
	AUTO(op) *add = op_due("tick", T0);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + USEC_SEC);
	AUTO(op) *newer = op_claim(10, T0 + 2 * USEC_SEC);
	AUTO(op) *all = op_claim(10, T0 + 2 * USEC_SEC);
	struct batch_wake wake;
	usec_t made;

	assert_true(apply_one(s, add));
	apply_all(s, &plan, 1);
	made = plan_op(plan)->now;
	claim_op(newer)->made_since = made + 1;
	wake = apply_all(s, &newer, 1);
	assert_int_equal(claim_op(newer)->claimed.n, 0);
	assert_int_equal(wake.next_due, T0 + 2 * USEC_SEC); /* they stay due */
	claim_op(all)->made_since = made;
	apply_all(s, &all, 1);
	assert_int_equal(claim_op(all)->claimed.n, 2);
	assert_counts_true(s);
}

static void the_same_slot(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = T0 + 1, .due_at = T0 + 1});
	ret->next_slot = due->slot + 1;
}

static void a_slot_becomes_one_run_however_often_it_is_planned(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[3];

	add_due(s, NULL, T0);
	for (size_t i = 0; i < 3; i++)
		ops[i] = op_plan(the_same_slot, NULL, T0 + USEC_SEC);
	apply_all(s, ops, 3);
	assert_int_equal(plan_op(ops[0])->runs, 1);
	assert_int_equal(plan_op(ops[1])->runs + plan_op(ops[2])->runs, 0);
	assert_int_equal(plan_op(ops[2])->jobs, 1);
	assert_counts_true(s);
	for (size_t i = 0; i < 3; i++)
		op_free(ops[i]);
}

static void a_schedule_that_ends_lets_its_job_finish(void **state)
{
	struct store *s = store_of(state);
	usec_t end = T0 + USEC_SEC;
	int64_t id = add_due(s, NULL, T0);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	AUTO(job) *before = NULL;
	AUTO(job) *after = NULL;

	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, 2);
	for (int i = 0; i < 2; i++) {
		AUTO(run) *run = claim_one(s, end);

		before = get_job(s, id);
		assert_int_equal(before->state, JOB_ACTIVE);
		job_free(STEAL(before));
		end_run(s, run, ATTEMPT_SUCCEEDED, end + 5);
	}
	after = get_job(s, id);
	assert_int_equal(after->state, JOB_FINISHED);
	assert_counts_true(s);
}

static void missed(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	plan_run_add(ret, &(struct planned_run){.state = RUN_SKIPPED, .slot = due->slot, .slot_last = due->slot + 90,
		.slot_count = 10, .due_at = due->slot, .reason = "missed"});
}

static void missed_slots_are_one_row_and_end_the_job(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_due(s, NULL, T0);
	AUTO(op) *plan = op_plan(missed, NULL, T0 + USEC_SEC);
	AUTO(job) *job = NULL;
	AUTO(run) *run = NULL;

	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, 1);
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_FINISHED);
	run = get_run(s, job->last_run.id);
	assert_int_equal(run->state, RUN_SKIPPED);
	assert_string_equal(run->reason, "missed");
	assert_int_equal(run->slot_count, 10);
	assert_int_equal(run->slot_last, T0 + 90);
	assert_int_equal(run->ended_at, T0);
	assert_counts_true(s);
}

static void no_further(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	if (due->name && strcmp(due->name, "bad") == 0)
		ret->suspend = "its zone is unknown";
	else
		ret->next_slot = due->slot + USEC_HOUR;
}

static void a_job_that_cannot_go_on_is_suspended_alone(void **state)
{
	struct store *s = store_of(state);
	int64_t bad = add_due(s, "bad", T0), good = add_due(s, "good", T0);
	AUTO(op) *plan = op_plan(no_further, NULL, T0 + USEC_SEC);
	AUTO(job) *suspended = NULL;
	AUTO(job) *moved = NULL;

	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->jobs, 2);
	suspended = get_job(s, bad);
	assert_int_equal(suspended->state, JOB_SUSPENDED);
	assert_string_equal(suspended->reason, "its zone is unknown");
	assert_int_equal(suspended->next_slot, 0);
	moved = get_job(s, good);
	assert_int_equal(moved->next_slot, T0 + USEC_HOUR);
	assert_counts_true(s);
}

static void planning_takes_the_earliest_up_to_its_limit(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *plan = op_plan(no_further, NULL, T0 + USEC_MIN);
	int64_t last;
	AUTO(job) *left = NULL;

	last = add_due(s, NULL, T0 + 9 * USEC_SEC);
	add_due(s, NULL, T0 + 1 * USEC_SEC);
	add_due(s, NULL, T0 + 2 * USEC_SEC);
	add_due(s, NULL, T0 + USEC_DAY);
	plan_op(plan)->limit = 2;
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->jobs, 2);
	left = get_job(s, last);
	assert_int_equal(left->next_slot, T0 + 9 * USEC_SEC);
}

static void wait_for_the_end(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot, .due_at = due->slot});
	ret->next_slot = USEC_NEVER;
}

static void a_job_that_waits_for_its_run_is_looked_at_when_that_ended(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_due(s, "follow", T0);
	AUTO(op) *plan = op_plan(wait_for_the_end, NULL, T0 + USEC_SEC);
	AUTO(op) *claim = op_claim(10, T0 + USEC_SEC);
	AUTO(op) *end = NULL;
	AUTO(job) *job = NULL;
	struct batch_wake wake;

	wake = apply_all(s, &plan, 1);
	assert_true(wake.next_slot == USEC_NEVER);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	end = op_ended(claim_op(claim)->claimed.v[0].run, ATTEMPT_SUCCEEDED, T0 + 3 * USEC_SEC);
	wake = apply_all(s, &end, 1);
	assert_int_equal(wake.next_slot, T0 + 3 * USEC_SEC + 1); /* not a whole second: the planner searches from there */
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_ACTIVE);
	assert_int_equal(job->next_slot, 0);
	assert_counts_true(s);
}

static void a_cancelled_run_does_not_have_its_slot_planned_again(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_due(s, "follow", T0);
	AUTO(op) *plan = op_plan(wait_for_the_end, NULL, T0 + USEC_SEC);
	AUTO(op) *cancel = op_new(OP_RUN_CANCEL, NULL, NULL);
	struct run_filter filter = {.uid = -1, .job = id, .limit = 1};
	AUTO_DONE(run_list) runs = {};
	struct batch_wake wake;

	apply_all(s, &plan, 1);
	assert_true(list_runs_page(s, &filter, &runs, NULL));
	assert_int_equal(runs.n, 1);
	op_fill(run_cancel_op(cancel), .uid = -1, .id = runs.v[0]->id, .now = T0 - 3 * USEC_SEC);
	wake = apply_all(s, &cancel, 1);
	assert_int_equal(run_cancel_op(cancel)->run->state, RUN_CANCELLED);
	assert_int_equal(wake.next_slot, runs.v[0]->slot - 1); /* the search starts just before the slot */
}

static struct op *op_boot(const char *name, const char *boot, usec_t now)
{
	struct op *op = op_new(OP_BOOT, NULL, NULL);

	op_fill(boot_runs_op(op), .name = name, .boot = boot, .now = now);
	return op;
}

static void a_boot_gives_a_run_once_and_on_each_node(void **state)
{
	static const struct {
		const char *node, *boot;
		size_t runs;
	} boots[] = {{"one", "b1", 1}, {"one", "b1", 0}, {"two", "b1", 1}, {"one", "b2", 1}, {"two", "b1", 0}};
	struct store *s = store_of(state);
	AUTO(op) *add = op_add("atboot", NULL, NULL);
	AUTO(op) *cancel = NULL;
	AUTO(op) *again = op_boot("one", "b3", T0 + 100);

	job_add_op(add)->job.run_at = 0;
	job_add_op(add)->job.next_slot = USEC_NEVER;
	job_add_op(add)->job.boots = true;
	assert_true(apply_one(s, add));
	for (size_t i = 0; i < ELEMENTS(boots); i++) {
		AUTO(op) *boot = op_boot(boots[i].node, boots[i].boot, T0 + (usec_t)i);

		assert_true(apply_one(s, boot));
		assert_int_equal(boot_runs_op(boot)->runs, boots[i].runs);
	}
	cancel = op_job_cancel(OP_JOB_CANCEL, job_add_op(add)->job.id);
	assert_true(apply_one(s, cancel));
	assert_int_equal(job_cancel_op(cancel)->queued_cancelled, 3);
	assert_true(apply_one(s, again));
	assert_int_equal(boot_runs_op(again)->runs, 0);
	assert_counts_true(s);
}

/* The second of two jobs runs, a little later. */
static bool all_but_the_first(int64_t job, const char *spec, usec_t now, usec_t *ret_due, struct start_policy *policy, void *arg)
{
	(void)policy;
	assert_non_null(spec);
	*ret_due = now + 7;
	return job != *(int64_t *)arg;
}

static void a_job_may_leave_a_boot_out_or_be_late(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *boot = op_boot("one", "b1", T0);
	AUTO(job) *job = NULL;
	AUTO(run) *run = NULL;
	int64_t ids[2];

	for (size_t i = 0; i < 2; i++) {
		AUTO(op) *add = op_add(NULL, NULL, NULL);

		job_add_op(add)->job.run_at = 0;
		job_add_op(add)->job.next_slot = USEC_NEVER;
		job_add_op(add)->job.boots = true;
		assert_true(apply_one(s, add));
		ids[i] = job_add_op(add)->job.id;
	}
	boot_runs_op(boot)->fn = all_but_the_first;
	boot_runs_op(boot)->fn_arg = &ids[0];
	assert_true(apply_one(s, boot));
	assert_int_equal(boot_runs_op(boot)->runs, 1);
	job = get_job(s, ids[0]);
	assert_int_equal(job->next_slot, 0);
	run = claim_one(s, T0 + 6);
	assert_null(run);
	run = claim_one(s, T0 + 7);
	assert_int_equal(run->job, ids[1]);
	assert_int_equal(run->slot, T0);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(each_slot_in_the_window_becomes_a_run),
	STORE_TEST(while_the_clock_is_unsure_only_newer_runs_are_claimed),
	STORE_TEST(a_slot_becomes_one_run_however_often_it_is_planned),
	STORE_TEST(a_schedule_that_ends_lets_its_job_finish),
	STORE_TEST(missed_slots_are_one_row_and_end_the_job),
	STORE_TEST(a_job_that_cannot_go_on_is_suspended_alone),
	STORE_TEST(planning_takes_the_earliest_up_to_its_limit),
	STORE_TEST(a_job_that_waits_for_its_run_is_looked_at_when_that_ended),
	STORE_TEST(a_cancelled_run_does_not_have_its_slot_planned_again),
	STORE_TEST(a_boot_gives_a_run_once_and_on_each_node),
	STORE_TEST(a_job_may_leave_a_boot_out_or_be_late),
};
const struct suite_part store_plan_part = {tests, ELEMENTS(tests)};
