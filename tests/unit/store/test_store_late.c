/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of catch-up: planned runs after downtime, bounded rounds, a clock that was set back. */
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/late_runs.h"
#include "store/ops/run/plans.h"
#include "store/read/list/list_runs.h"
#include "unit/store/store_suite.h"
#include <string.h>

static size_t every_one(const struct late_job *late, usec_t now, bool *ret_caught_up, void *arg)
{
	(void)now;
	(void)ret_caught_up;
	(void)arg;
	return late->n;
}

/* ---- rounds ---- */

/* Uses up the steps of a round for a job called "old". */
static void slow_for_the_old(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)arg;
	if (due->name && strcmp(due->name, "old") == 0) {
		ret->steps = 0;
		ret->later = true;
		return;
	}
	plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot, .due_at = due->slot});
	ret->next_slot = horizon + USEC_SEC;
}

static void those_in_time_do_not_wait_for_those_left_behind(void **state)
{
	struct store *s = store_of(state);
	int64_t old = add_due(s, "old", T0 - USEC_DAY), older = add_due(s, "older", T0 - USEC_HOUR);
	int64_t fresh = add_due(s, "fresh", T0 + USEC_SEC);
	AUTO(op) *plan = op_plan(slow_for_the_old, NULL, T0 + 5 * USEC_SEC);
	AUTO(job) *a = NULL;
	AUTO(job) *b = NULL;
	AUTO(job) *c = NULL;

	plan_op(plan)->steps = 1000;
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->jobs, 1);
	a = get_job(s, fresh);
	b = get_job(s, old);
	c = get_job(s, older);
	assert_int_equal(a->next_slot, T0 + USEC_SEC); /* its run, queued now */
	assert_int_equal(plan_op(plan)->runs, 1);
	assert_int_equal(b->next_slot, T0 - USEC_DAY); /* unchanged, for the next round */
	assert_int_equal(c->next_slot, T0 - USEC_HOUR);
}

static void a_thousand_each(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)arg;
	for (usec_t i = 0; i < 1000; i++)
		plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot + i, .due_at = due->slot + i});
	ret->next_slot = horizon + USEC_SEC;
}

static void a_thousand_runs_of_one_job_are_made_and_the_rest_of_the_round_waits(void **state)
{
	struct store *s = store_of(state);
	size_t jobs = 0, runs = 0;

	for (int i = 0; i < 8; i++)
		add_due(s, NULL, T0);
	for (int round = 0; round < 2; round++) {
		AUTO(op) *plan = op_plan(a_thousand_each, NULL, T0 + 5 * USEC_SEC);

		assert_true(apply_one(s, plan));
		assert_int_equal(plan_op(plan)->runs, plan_op(plan)->jobs * 1000);
		assert_in_range(plan_op(plan)->jobs, 1, 6);
		jobs += plan_op(plan)->jobs;
		runs += plan_op(plan)->runs;
	}
	assert_int_equal(jobs, 8);
	assert_int_equal(runs, 8000);
	assert_counts_true(s);
}

static void an_engine_learns_when_the_last_one_was_there(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_node_open("n1", "one", SPAWNER);
	AUTO(op) *add = op_add(NULL, NULL, NULL);
	AUTO(op) *after_crash = op_node_open("n2", "one", SPAWNER);
	AUTO(op) *close = op_new(OP_NODE_CLOSE, NULL, NULL);
	AUTO(op) *after_close = op_node_open("n3", "one", SPAWNER);

	node_open_op(first)->now = T0 - USEC_DAY;
	assert_true(apply_one(s, first));
	assert_int_equal(node_open_op(first)->last_seen, 0);
	job_add_op(add)->job.now = T0 + 7;
	assert_true(apply_one(s, add));
	assert_true(apply_one(s, after_crash));
	assert_int_equal(node_open_op(after_crash)->last_seen, T0 + 7); /* the time of its last run */
	op_fill(node_close_op(close), .node = "n2", .now = T0 + USEC_MIN);
	assert_true(apply_one(s, close));
	assert_true(apply_one(s, after_close));
	assert_int_equal(node_open_op(after_close)->last_seen, T0 + USEC_MIN);
}

/* ---- after downtime ---- */

/* Misses all but the newest; 'arg' counts the jobs asked about. */
static size_t all_but_the_newest(const struct late_job *late, usec_t now, bool *ret_caught_up, void *arg)
{
	(void)ret_caught_up;
	++*(int *)arg;
	assert_true(late->n > 0 && late->slots[late->n - 1] <= now && late->job.spec);
	for (size_t i = 1; i < late->n; i++)
		assert_true(late->slots[i] > late->slots[i - 1]);
	return late->n - 1;
}

static struct op *op_late(usec_t since, usec_t now, int *asked)
{
	struct op *op = op_new(OP_LATE, NULL, NULL);

	op_fill(late_runs_op(op), .since = since, .now = now, .fn = all_but_the_newest, .fn_arg = asked);
	return op;
}

static void planned_runs_that_passed_unseen_are_missed_as_the_policy_says(void **state)
{
	struct store *s = store_of(state);
	usec_t end = USEC_LAST;
	int64_t id = add_due(s, "tick", T0);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	struct run_filter filter = {.uid = -1, .job = id, .limit = 10};
	AUTO_DONE(run_list) runs = {};
	AUTO(run) *waiting = NULL;
	int asked = 0;
	AUTO(op) *late = op_late(T0, T0 + 4 * USEC_SEC, &asked);

	assert_true(apply_one(s, plan));
	assert_true(apply_one(s, late));
	assert_int_equal(asked, 1);
	assert_int_equal(late_runs_op(late)->missed, 3); /* of seconds 1 to 4; 0 was due before the downtime, 5 is later */
	assert_int_equal(late_runs_op(late)->more, 0);
	assert_true(list_runs_page(s, &filter, &runs, NULL));
	assert_int_equal(runs.n, 6);
	for (size_t i = 0; i < runs.n; i++) {
		usec_t second = (runs.v[i]->slot - T0) / USEC_SEC;

		assert_int_equal(runs.v[i]->state, second >= 1 && second <= 3 ? RUN_SKIPPED : RUN_QUEUED);
		if (runs.v[i]->state == RUN_SKIPPED)
			assert_string_equal(runs.v[i]->reason, "missed");
	}
	waiting = claim_one(s, T0 + 4 * USEC_SEC);
	assert_int_equal(waiting->slot, T0);
	assert_counts_true(s);
}

static void runs_that_were_begun_held_or_asked_for_are_not_missed(void **state)
{
	struct store *s = store_of(state);
	usec_t end = T0 + 2 * USEC_SEC;
	int64_t id = add_due(s, "tick", T0);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	int asked = 0;
	AUTO(op) *late = op_late(T0 - 1, T0 + USEC_HOUR, &asked);
	AUTO_TEXT hold = NULL;

	assert_true(apply_one(s, plan));
	hold = xprintf("UPDATE runs SET hold = %d WHERE slot = %lld; UPDATE runs SET attempt = 1, fence = 1 WHERE slot = %lld; "
		       "UPDATE runs SET kind = %d WHERE slot = %lld", HOLD_PERMIT, (long long)T0,
		(long long)(T0 + USEC_SEC), RUN_KIND_MANUAL, (long long)(T0 + 2 * USEC_SEC));
	place_query(where_of(state), hold, NULL);
	assert_true(apply_one(s, late));
	assert_int_equal(asked, 0);
	(void)id;
}

static void a_job_whose_last_run_was_missed_is_finished(void **state)
{
	struct store *s = store_of(state);
	usec_t end = T0;
	int64_t id = add_due(s, NULL, T0);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	AUTO(op) *late = op_new(OP_LATE, NULL, NULL);
	AUTO(job) *job = NULL;
	int asked = 0;

	assert_true(apply_one(s, plan));
	op_fill(late_runs_op(late), .since = T0 - 1, .now = T0 + USEC_DAY, .fn = all_but_the_newest, .fn_arg = &asked);
	assert_true(apply_one(s, late));
	assert_int_equal(late_runs_op(late)->missed, 0);
	late_runs_op(late)->fn = every_one;
	assert_true(apply_one(s, late));
	assert_int_equal(late_runs_op(late)->missed, 1);
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_FINISHED);
	assert_counts_true(s);
}

/* More late runs than one transaction examines, three of each job. */
static void many_late_runs_are_looked_at_in_pages_and_no_job_twice(void **state)
{
	enum { JOBS = 1500 };
	struct store *s = store_of(state);
	usec_t end = T0 + 2 * USEC_SEC;
	AUTO(op) *bulk = op_new(OP_JOB_BULK, NULL, NULL);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	int asked = 0;
	size_t missed = 0;
	AUTO(op) *late = op_late(T0 - 1, T0 + USEC_HOUR, &asked);

	job_bulk_op(bulk)->n = JOBS;
	job_bulk_op(bulk)->v = xcalloc(JOBS, sizeof(*job_bulk_op(bulk)->v));
	for (size_t i = 0; i < JOBS; i++)
		job_bulk_op(bulk)->v[i] = (struct job_new){.uid = 5, .owner = "eve", .spec = "{}", .now = T0, .next_slot = T0};
	assert_true(apply_one(s, bulk));
	plan_op(plan)->limit = 2 * JOBS;
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, 3 * JOBS);
	do {
		late_runs_op(late)->after = late_runs_op(late)->more;
		assert_true(apply_one(s, late));
		missed += late_runs_op(late)->missed;
	} while (late_runs_op(late)->more);
	assert_int_equal(asked, JOBS);
	assert_int_equal(missed, 2 * JOBS);
	assert_counts_true(s);
}

static void a_clock_set_back_undoes_what_was_planned_for_later(void **state)
{
	struct store *s = store_of(state);
	usec_t end = USEC_LAST, back = T0 - 365 * USEC_DAY;
	int64_t tick = add_due(s, "tick", T0), once, now;
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	AUTO(op) *late = op_new(OP_LATE, NULL, NULL);
	AUTO(run) *done = NULL;
	AUTO(run) *soon = NULL;
	AUTO(job) *job = NULL;
	struct batch_wake wake;

	assert_true(apply_one(s, plan));
	done = claim_one(s, T0);
	end_run(s, done, ATTEMPT_SUCCEEDED, T0);
	now = add_job(s, "now"); /* its slot is the time of submission */
	once = add_due(s, "once", T0 + USEC_DAY);
	op_fill(late_runs_op(late), .since = back, .now = back, .set_back = true, .fn = every_one);
	wake = apply_all(s, &late, 1);
	assert_int_equal(late_runs_op(late)->undone, 5);
	assert_true(wake.next_slot > back && wake.next_slot <= back + 1); /* the planner searches from there */
	job = get_job(s, tick);
	assert_int_equal(job->last_run.id, done->id); /* ended runs are kept */
	job_free(STEAL(job));
	soon = claim_one(s, back);
	assert_non_null(soon);
	assert_int_equal(soon->job, now);
	(void)once;
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(planned_runs_that_passed_unseen_are_missed_as_the_policy_says),
	STORE_TEST(runs_that_were_begun_held_or_asked_for_are_not_missed),
	STORE_TEST(a_job_whose_last_run_was_missed_is_finished),
	STORE_TEST(many_late_runs_are_looked_at_in_pages_and_no_job_twice),
	STORE_TEST(a_clock_set_back_undoes_what_was_planned_for_later),
	STORE_TEST(those_in_time_do_not_wait_for_those_left_behind),
	STORE_TEST(a_thousand_runs_of_one_job_are_made_and_the_rest_of_the_round_waits),
	STORE_TEST(an_engine_learns_when_the_last_one_was_there),
};
const struct suite_part store_late_part = {tests, ELEMENTS(tests)};
