/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of runs: claims, starts, ends, fences, take-over. */
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/runs.h"
#include "store/read/run_durations.h"
#include "store/read/single.h"
#include "unit/store/store_suite.h"
#include <string.h>

static void a_job_for_now_goes_through_its_whole_life(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "hello");
	AUTO(run) *claimed = claim_one(s, T0);
	AUTO(run) *ended = NULL;
	AUTO(job) *job = NULL;
	AUTO_DONE(attempt_list) attempts = {};
	struct err e = {};

	assert_non_null(claimed);
	assert_int_equal(claimed->job, id);
	assert_int_equal(claimed->state, RUN_CLAIMED);
	assert_int_equal(claimed->fence, 1);
	assert_string_equal(claimed->node, NODE);
	assert_string_equal(claimed->job_name, "hello");
	assert_string_equal(claimed->owner, "ann");
	start_run(s, claimed, T0 + 1);
	end_run(s, claimed, ATTEMPT_SUCCEEDED, T0 + 100);
	ended = get_run(s, claimed->id);
	assert_int_equal(ended->state, RUN_SUCCEEDED);
	assert_int_equal(ended->attempt, 1);
	assert_int_equal(ended->exit_code, 0);
	assert_int_equal(ended->started_at, T0 + 1);
	assert_int_equal(ended->ended_at, T0 + 100);
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_FINISHED);
	assert_int_equal(job->last_run.id, claimed->id);
	assert_int_equal(job->last_run.state, RUN_SUCCEEDED);
	assert_true(store_attempts(s, claimed->id, &attempts, &e));
	assert_int_equal(attempts.n, 1);
	assert_int_equal(attempts.v[0]->outcome, ATTEMPT_SUCCEEDED);
	assert_int_equal(attempts.v[0]->pid, 4711);
	assert_int_equal(attempts.v[0]->started_at, T0 + 1);
	assert_string_equal(attempts.v[0]->node_name, "one");
	assert_string_equal(attempts.v[0]->spawner, SPAWNER);
	assert_counts_true(s);
}

static void claims_go_by_priority_then_by_due_time(void **state)
{
	struct store *s = store_of(state);
	static const struct {
		int64_t priority;
		usec_t run_at;
	} given[] = {{0, T0}, {5, T0 - 1}, {5, T0 - 9}, {-3, T0 - 99}, {0, T0 - 5}, {7, T0 + 1}};
	static const size_t order[] = {2, 1, 4, 0, 3};
	struct op *ops[6];
	AUTO(op) *claim = op_claim(10, T0);

	for (size_t i = 0; i < 6; i++) {
		ops[i] = op_add(NULL, NULL, NULL);
		job_add_op(ops[i])->job.priority = given[i].priority;
		job_add_op(ops[i])->job.run_at = given[i].run_at;
	}
	apply_all(s, ops, 6);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 5); /* the one of T0 + 1 is not due */
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(claim_op(claim)->claimed.v[i].run->id, job_add_op(ops[order[i]])->job.run);
	for (size_t i = 0; i < 6; i++)
		op_free(ops[i]);
}

static void a_claim_takes_no_more_than_there_is_room_for(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *low = op_add(NULL, NULL, NULL);
	AUTO(op) *first = op_claim(2, T0);
	AUTO(op) *second = op_claim(2, T0);

	job_add_op(low)->job.priority = -1;
	assert_true(apply_one(s, low));
	add_job(s, NULL);
	add_job(s, NULL);
	assert_true(apply_one(s, first));
	assert_int_equal(claim_op(first)->claimed.n, 2);
	assert_true(apply_one(s, second));
	assert_int_equal(claim_op(second)->claimed.n, 1);
	assert_int_equal(claim_op(second)->claimed.v[0].run->id, job_add_op(low)->job.run);
}

static void a_displaced_engine_claims_nothing(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *newer = op_node_open("node-two-engine", "one", SPAWNER);
	AUTO(op) *old = op_claim(5, T0);
	AUTO(op) *fresh = op_claim(5, T0);

	add_job(s, NULL);
	assert_true(apply_one(s, newer));
	assert_false(apply_one(s, old));
	assert_int_equal(old->err.kind, ERR_FENCED);
	claim_op(fresh)->node = "node-two-engine";
	assert_true(apply_one(s, fresh));
	assert_int_equal(claim_op(fresh)->claimed.n, 1);
}

static void an_engine_that_left_claims_nothing(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *leave = op_new(OP_NODE_CLOSE, NULL, NULL);
	AUTO(op) *claim = op_claim(5, T0);

	op_fill(node_close_op(leave), .node = NODE, .now = T0);
	assert_true(apply_one(s, leave));
	assert_false(apply_one(s, claim));
	assert_int_equal(claim->err.kind, ERR_FENCED);
}

static void a_lost_attempt_is_queued_again_under_a_new_fence(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL;
	AUTO(run) *waiting = NULL;
	AUTO(run) *second = NULL;

	add_job(s, NULL);
	first = claim_one(s, T0);
	start_run(s, first, T0 + 1);
	end_run(s, first, ATTEMPT_LOST, T0 + 50);
	waiting = get_run(s, first->id);
	assert_int_equal(waiting->state, RUN_QUEUED);
	assert_int_equal(waiting->attempt, 1);
	assert_int_equal(waiting->lost, 1);
	assert_null(waiting->node);
	assert_int_equal(waiting->claimed_at, 0);
	assert_int_equal(waiting->started_at, 0);
	assert_null(claim_one(s, T0 + 49)); /* not before its time */
	second = claim_one(s, T0 + 50);
	assert_int_equal(second->id, first->id);
	assert_int_equal(second->fence, first->fence + 1);
	assert_counts_true(s);
}

static void a_late_end_of_a_lost_attempt_is_stale(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL;
	AUTO(run) *second = NULL;
	AUTO(run) *now = NULL;
	AUTO(op) *late = NULL;
	AUTO_DONE(attempt_list) attempts = {};
	struct err e = {};

	add_job(s, NULL);
	first = claim_one(s, T0);
	start_run(s, first, T0 + 1);
	end_run(s, first, ATTEMPT_LOST, T0 + 50);
	second = claim_one(s, T0 + 50);
	start_run(s, second, T0 + 51);
	late = op_ended(first, ATTEMPT_SUCCEEDED, T0 + 60);
	assert_true(apply_one(s, late));
	assert_true(run_ended_op(late)->stale);
	now = get_run(s, first->id);
	assert_int_equal(now->state, RUN_RUNNING);
	assert_int_equal(now->fence, second->fence);
	assert_true(store_attempts(s, first->id, &attempts, &e));
	assert_int_equal(attempts.n, 2);
	assert_int_equal(attempts.v[0]->outcome, ATTEMPT_STALE);
	assert_int_equal(attempts.v[1]->outcome, ATTEMPT_RUNNING);
	assert_counts_true(s);
}

static void an_end_told_twice_is_recorded_once(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = NULL;
	AUTO(op) *again = NULL;
	AUTO_DONE(attempt_list) attempts = {};
	struct err e = {};

	add_job(s, NULL);
	run = claim_one(s, T0);
	start_run(s, run, T0 + 1);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 50);
	again = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 50);
	assert_true(apply_one(s, again));
	assert_false(run_ended_op(again)->stale);
	assert_true(store_attempts(s, run->id, &attempts, &e));
	assert_int_equal(attempts.n, 1);
	assert_int_equal(attempts.v[0]->outcome, ATTEMPT_SUCCEEDED);
	assert_counts_true(s);
}

/* For a lost run whose end arrived later, and for one that its spawner reported as lost. */
static void kept_output_of_a_late_end_is_counted_once(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL;
	AUTO(run) *second = NULL;
	struct op *twice[2];

	add_job(s, NULL);
	first = claim_one(s, T0);
	start_run(s, first, T0 + 1);
	end_run(s, first, ATTEMPT_LOST, T0 + 50); /* with 12 bytes */
	second = claim_one(s, T0 + 50);
	start_run(s, second, T0 + 51);
	for (int i = 0; i < 3; i++) {
		AUTO(op) *late = op_ended(first, ATTEMPT_LOST, T0 + 50);

		assert_true(apply_one(s, late));
		assert_true(run_ended_op(late)->stale);
		assert_counts_true(s);
	}
	twice[0] = op_ended(second, ATTEMPT_SUCCEEDED, T0 + 60);
	twice[1] = op_ended(second, ATTEMPT_SUCCEEDED, T0 + 60);
	for (int i = 0; i < 2; i++)
		run_ended_op(twice[i])->node = "who-had-it-before";
	apply_all(s, twice, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(twice[i]->ok && run_ended_op(twice[i])->stale);
		op_free(twice[i]);
	}
	assert_counts_true(s);
}

static void start_and_end_may_share_a_batch_and_come_twice(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = NULL;
	AUTO(run) *after = NULL;
	struct op *ops[5];

	add_job(s, NULL);
	run = claim_one(s, T0);
	ops[0] = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 5);
	ops[1] = op_started(run, T0 + 1);
	ops[2] = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 5);
	ops[3] = op_started(run, T0 + 1);
	ops[4] = op_claim(5, T0 + 9);
	apply_all(s, ops, 5);
	for (size_t i = 0; i < 5; i++)
		assert_true(ops[i]->ok);
	assert_false(run_ended_op(ops[0])->stale || run_ended_op(ops[2])->stale);
	assert_true(run_ended_op(ops[0])->job_finished);
	assert_int_equal(claim_op(ops[4])->claimed.n, 0);
	after = get_run(s, run->id);
	assert_int_equal(after->state, RUN_SUCCEEDED);
	assert_int_equal(after->started_at, T0 + 1);
	assert_counts_true(s);
	for (size_t i = 0; i < 5; i++)
		op_free(ops[i]);
}

static void a_start_under_an_old_fence_is_refused(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL;
	AUTO(run) *second = NULL;
	AUTO(op) *late = NULL;
	AUTO(op) *unknown = NULL;

	add_job(s, NULL);
	first = claim_one(s, T0);
	end_run(s, first, ATTEMPT_LOST, T0 + 5);
	second = claim_one(s, T0 + 5);
	late = op_started(first, T0 + 6);
	assert_false(apply_one(s, late));
	assert_int_equal(late->err.kind, ERR_FENCED);
	unknown = op_started(first, T0 + 6);
	run_started_op(unknown)->run = 999999;
	assert_false(apply_one(s, unknown));
	assert_int_equal(unknown->err.kind, ERR_NOT_FOUND);
	start_run(s, second, T0 + 7);
}

static struct op *op_back(const struct run *r)
{
	struct op *op = op_new(OP_GIVE_BACK, NULL, NULL);

	op_fill(run_give_back_op(op), .node = NODE, .run = r->id, .fence = r->fence, .due_at = T0 + 20, .now = T0 + 20);
	return op;
}

static void a_run_that_never_started_goes_back_to_the_queue(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL;
	AUTO(run) *second = NULL;
	AUTO(op) *back = NULL;
	AUTO(op) *twice = NULL;

	add_job(s, NULL);
	first = claim_one(s, T0);
	back = op_back(first);
	twice = op_back(first);
	assert_true(apply_one(s, back));
	assert_false(apply_one(s, twice));
	assert_int_equal(twice->err.kind, ERR_FENCED);
	assert_null(claim_one(s, T0 + 19));
	second = claim_one(s, T0 + 20);
	assert_int_equal(second->fence, 2);
	assert_int_equal(second->attempt, 0);
	assert_counts_true(s);
}

static void a_cancelled_run_is_not_queued_again(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, NULL);
	AUTO(run) *given = claim_one(s, T0);
	AUTO(run) *lost = NULL;
	AUTO(run) *after = NULL;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *back = op_back(given);
	AUTO(op) *removal = NULL;
	AUTO(op) *end = NULL;

	assert_true(apply_one(s, cancel));
	assert_true(apply_one(s, back));
	after = get_run(s, given->id);
	assert_int_equal(after->state, RUN_CANCELLED);

	id = add_job(s, NULL);
	lost = claim_one(s, T0);
	start_run(s, lost, T0 + 1);
	removal = op_job_cancel(OP_JOB_REMOVE, id);
	assert_true(apply_one(s, removal));
	end = op_ended(lost, ATTEMPT_LOST, T0 + 2);
	assert_int_equal(run_ended_op(end)->state, RUN_QUEUED);
	assert_true(apply_one(s, end));
	assert_int_equal(run_ended_op(end)->became, RUN_CANCELLED);
	assert_counts_true(s);
}

static struct op *op_cancel_run(int64_t id)
{
	struct op *op = op_new(OP_RUN_CANCEL, NULL, NULL);

	op_fill(run_cancel_op(op), .uid = 1000, .id = id, .now = T0 + 3);
	return op;
}

static void a_run_is_cancelled_according_to_its_state(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add(NULL, NULL, NULL);
	AUTO(op) *queued = NULL;
	AUTO(op) *final = NULL;
	AUTO(op) *running = NULL;
	AUTO(op) *foreign = NULL;
	AUTO(run) *claimed = NULL;
	AUTO(job) *job = NULL;

	assert_true(apply_one(s, add));
	foreign = op_cancel_run(job_add_op(add)->job.run);
	run_cancel_op(foreign)->uid = 1;
	assert_false(apply_one(s, foreign));
	assert_int_equal(foreign->err.kind, ERR_NOT_FOUND);
	queued = op_cancel_run(job_add_op(add)->job.run);
	assert_true(apply_one(s, queued));
	assert_int_equal(run_cancel_op(queued)->run->state, RUN_CANCELLED);
	assert_false(run_cancel_op(queued)->was_final);
	job = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(job->state, JOB_FINISHED);
	final = op_cancel_run(job_add_op(add)->job.run);
	assert_true(apply_one(s, final));
	assert_true(run_cancel_op(final)->was_final);

	add_job(s, NULL);
	claimed = claim_one(s, T0);
	start_run(s, claimed, T0 + 1);
	running = op_cancel_run(claimed->id);
	assert_true(apply_one(s, running));
	assert_int_equal(run_cancel_op(running)->run->state, RUN_RUNNING);
	assert_true(run_cancel_op(running)->run->cancel_asked);
	assert_counts_true(s);
}

static void a_new_engine_takes_over_what_its_spawner_has(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *here = NULL;
	AUTO(run) *claimed_only = NULL;
	AUTO(op) *stranger = op_node_open("node-x", "other", "spawner-x");
	AUTO(op) *second = op_node_open("node-two", "one", SPAWNER);
	AUTO(op) *third = op_node_open("node-three", "one", "spawner-new");
	AUTO(op) *fourth = op_node_open("node-four", "one", "spawner-new");
	AUTO(op) *end = NULL;
	AUTO(op) *late = NULL;

	add_job(s, NULL);
	add_job(s, NULL);
	here = claim_one(s, T0);
	claimed_only = claim_one(s, T0);
	start_run(s, here, T0 + 1);
	assert_true(apply_one(s, stranger));
	assert_int_equal(node_open_op(stranger)->same_spawner.n + node_open_op(stranger)->other_spawner.n, 0);

	assert_true(apply_one(s, second));
	assert_int_equal(node_open_op(second)->same_spawner.n, 2);
	assert_int_equal(node_open_op(second)->other_spawner.n, 0);
	assert_int_equal(node_open_op(second)->same_spawner.v[0].run->fence, here->fence);
	assert_string_equal(node_open_op(second)->same_spawner.v[0].run->node, "node-two");
	assert_true(strlen(node_open_op(second)->same_spawner.v[0].spec) > 0);
	late = op_ended(here, ATTEMPT_SUCCEEDED, T0 + 5); /* by the old engine */
	assert_true(apply_one(s, late));
	assert_true(run_ended_op(late)->stale);

	/* A new spawner: the runs of the old one are lost, even if the engine ends before it records that. */
	assert_true(apply_one(s, third));
	assert_int_equal(node_open_op(third)->other_spawner.n, 2);
	assert_true(apply_one(s, fourth));
	assert_int_equal(node_open_op(fourth)->same_spawner.n, 0);
	assert_int_equal(node_open_op(fourth)->other_spawner.n, 2);
	end = op_ended(claimed_only, ATTEMPT_LOST, T0 + 9);
	run_ended_op(end)->node = "node-four";
	assert_true(apply_one(s, end));
	assert_false(run_ended_op(end)->stale);
}

static void an_error_text_that_is_not_utf8_is_kept_readable(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = NULL;
	AUTO(op) *end = NULL;
	AUTO_DONE(attempt_list) attempts = {};
	struct err e = {};

	add_job(s, NULL);
	run = claim_one(s, T0);
	end = op_ended(run, ATTEMPT_NOT_STARTED, T0 + 1);
	run_ended_op(end)->attempt.error = xstrdup("no file '\xff\xfe'");
	assert_true(apply_one(s, end));
	assert_true(store_attempts(s, run->id, &attempts, &e));
	assert_string_equal(attempts.v[0]->error, "no file '\\xff\\xfe'");
}

static void the_store_tells_when_to_wake_up(void **state)
{
	struct store *s = store_of(state);
	struct op *adds[] = {op_add(NULL, NULL, NULL), op_add(NULL, NULL, NULL), op_add(NULL, NULL, NULL)};
	AUTO(op) *nothing = op_claim(0, T0);
	struct batch_wake wake = apply_all(s, &nothing, 1);

	assert_int_equal(wake.next_due, USEC_NEVER);
	assert_int_equal(wake.next_slot, USEC_NEVER);
	job_add_op(adds[0])->job.priority = 9;
	job_add_op(adds[0])->job.run_at = T0 + 77;
	job_add_op(adds[1])->job.run_at = T0 + 33;
	job_add_op(adds[2])->job.run_at = 0;
	job_add_op(adds[2])->job.next_slot = T0 + 55;
	wake = apply_all(s, adds, 3);
	assert_int_equal(wake.next_due, T0 + 33);
	assert_int_equal(wake.next_slot, T0 + 55);
	for (size_t i = 0; i < 3; i++)
		op_free(adds[i]);
}

static void durations_come_from_the_newest_ended_runs(void **state)
{
	struct store *s = store_of(state);
	usec_t end = T0 + USEC_HOUR;
	int64_t id = add_due(s, "steady", T0);
	AUTO(op) *plan = op_plan(every_second, &end, T0 + 5 * USEC_SEC);
	AUTO(job) *job = get_job(s, id);
	struct err e = {};

	assert_false(job->durations.known);
	assert_true(apply_one(s, plan));
	for (int64_t i = 0; i < 4; i++) {
		AUTO(run) *run = claim_one(s, T0 + i * USEC_SEC);

		assert_non_null(run);
		start_run(s, run, T0 + i * USEC_SEC);
		end_run(s, run, i == 3 ? ATTEMPT_FAILED : ATTEMPT_SUCCEEDED,
			T0 + i * USEC_SEC + (i + 1) * 100 * USEC_MSEC);
	}
	assert_true(run_durations_read(s, &job, 1, &e));
	assert_int_equal(job->durations.count, 3);
	assert_int_equal(job->durations.ended, 4); /* the queued runs do not count */
	assert_int_equal(job->durations.p50, 200 * USEC_MSEC);
	assert_int_equal(job->durations.p95, 300 * USEC_MSEC);
	assert_int_equal(job->durations.last, 400 * USEC_MSEC);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_job_for_now_goes_through_its_whole_life),
	STORE_TEST(durations_come_from_the_newest_ended_runs),
	STORE_TEST(claims_go_by_priority_then_by_due_time),
	STORE_TEST(a_claim_takes_no_more_than_there_is_room_for),
	STORE_TEST(a_displaced_engine_claims_nothing),
	STORE_TEST(an_engine_that_left_claims_nothing),
	STORE_TEST(a_lost_attempt_is_queued_again_under_a_new_fence),
	STORE_TEST(a_late_end_of_a_lost_attempt_is_stale),
	STORE_TEST(kept_output_of_a_late_end_is_counted_once),
	STORE_TEST(an_end_told_twice_is_recorded_once),
	STORE_TEST(start_and_end_may_share_a_batch_and_come_twice),
	STORE_TEST(a_start_under_an_old_fence_is_refused),
	STORE_TEST(a_run_that_never_started_goes_back_to_the_queue),
	STORE_TEST(a_cancelled_run_is_not_queued_again),
	STORE_TEST(a_run_is_cancelled_according_to_its_state),
	STORE_TEST(a_new_engine_takes_over_what_its_spawner_has),
	STORE_TEST(an_error_text_that_is_not_utf8_is_kept_readable),
	STORE_TEST(the_store_tells_when_to_wake_up),
};
const struct suite_part store_runs_part = {tests, ELEMENTS(tests)};
