/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on one job beside others that move its runs between the snapshot and the lock of the batch. */
#include "base/text.h"
#include "store/limit.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/limits.h"
#include "store/ops/node/nodes.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/triggers.h"
#include "store/store.h"
#include "unit/store/locks_fixture.h"
#include <stdlib.h>

#define JOB 1
#define TRIPS_MAX 3 /* BEGIN may have its own; a batch that is repeated takes more */

static struct op *op_on_job(enum op_kind kind)
{
	struct op *op = op_new(kind, NULL, NULL);

	switch (kind) {
	case OP_JOB_CHANGE:
		op_fill(job_change_op(op), .uid = -1, .id = JOB, .what = "all", .reschedule = true,
			.to = {.spec = "{\"command\":[\"false\"]}", .now = T0 + 2, .next_slot = T0 + USEC_HOUR});
		return op;
	case OP_JOB_CANCEL:
		op_fill(job_cancel_op(op), .uid = -1, .id = JOB, .running = true, .now = T0 + 2);
		return op;
	case OP_PAUSE:
		op_fill(pause_op(op), .uid = -1, .job = JOB, .pause = {.by_name = (char *)"eve", .at = T0 + 2});
		return op;
	case OP_RESUME:
		op_fill(resume_op(op), .uid = -1, .job = JOB, .now = T0 + 2);
		return op;
	case OP_TRIGGER:
		op_fill(trigger_op(op), .uid = -1, .job = JOB, .revision = 1, .now = T0 + 2);
		return op;
	default:
		op_fill(run_cancel_op(op), .uid = -1, .id = 3, .now = T0 + 2);
		return op;
	}
}

static void other_claims(struct store *other)
{
	AUTO(run) *r = claim_one(other, T0 + 1);

	assert_non_null(r);
	assert_int_equal(r->id, 3);
}

static void other_ends(struct store *other)
{
	AUTO(run) *running = get_run(other, 1);

	end_run(other, running, ATTEMPT_SUCCEEDED, T0 + 2);
}

static void other_plans(struct store *other)
{
	AUTO(op) *plan = op_plan(every_second, &busy_end, T0 + 2 * USEC_MIN);

	assert_true(apply_one(other, plan));
	assert_int_equal(plan_op(plan)->runs, 1);
}

static void other_removes(struct store *other)
{
	AUTO(op) *op = op_job_cancel(OP_JOB_REMOVE, JOB);

	assert_true(apply_one(other, op));
}

static void other_changes(struct store *other)
{
	AUTO(op) *op = op_on_job(OP_JOB_CHANGE);

	assert_true(apply_one(other, op));
}

/* "1 running, 3 cancelled:job removed": all runs that there are. */
static void runs_are(void **state, const char *all)
{
	AUTO_DONE(buf) found = {};
	AUTO_TEXT ids = ask(state, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM runs");

	for (char *at = ids, *end; strtoll(at, &end, 10) > 0; at = end) {
		AUTO(run) *r = get_run(store_of(state), strtoll(at, NULL, 10));

		buf_printf(&found, "%s%lld %s%s%s", found.len ? ", " : "", (long long)r->id, run_state_name(r->state),
			r->reason ? ":" : "", r->reason ? r->reason : "");
	}
	assert_string_equal(found.data, all);
}

/* The session of the only store that is open. */
static int session_of_store(void **state)
{
	AUTO_TEXT pid = ask(state, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
		"AND backend_type = 'client backend'");

	return atoi(pid);
}

/* Of the test in progress. */
static struct {
	struct waiter waiter;
	struct store *other;
	bool waits;
} now;

/* A test may have failed while its batch waited. */
static int beside_teardown(void **state)
{
	if (now.waits) {
		gate_open(state);
		pthread_join(now.waiter.thread, NULL);
	}
	store_free(now.other);
	now.other = NULL;
	now.waits = false;
	return fixture_teardown(state);
}

/*
 * Applies the operation. The statement that locks its job has its snapshot before another engine does something, and gets the
 * lock after that.
 */
static void beside(void **state, struct op *op, void (*meanwhile)(struct store *))
{
	struct fixture *f = *state;
	AUTO(op) *open = op_node_open("node-two-engine", "two", "spawner-two");
	AUTO(run) *running = NULL;
	int64_t trips;
	int session = session_of_store(state);

	assert_int_equal(add_busy(f->store, &running), JOB);
	if (op->kind == OP_RESUME) {
		AUTO(op) *pause = op_on_job(OP_PAUSE);

		assert_true(apply_one(f->store, pause));
	}
	now.other = open_or_fail(f->where, false);
	assert_true(apply_one(now.other, open));
	add_gate(state, "UNION SELECT job FROM mine", session);
	trips = store_round_trips(f->store);
	waiter_start(&now.waiter, f->store, op);
	now.waits = true;
	wait_for_waiters(state, 1);
	meanwhile(now.other);
	gate_open(state);
	now.waits = false;
	waiter_end(&now.waiter);
	trips = store_round_trips(f->store) - trips;
	if (trips > TRIPS_MAX)
		fail_msg("the batch took %d round trips", (int)trips);
	kept_is_true(state);
}

/* The run keeps its queue, which decides about the counters. */
static void a_change_leaves_a_run_that_was_claimed_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_JOB_CHANGE);
	AUTO(op) *queue = op_new(OP_LIMIT_SET, NULL, NULL);

	op_fill(limit_op(queue), .scope = LIMIT_QUEUE, .key = "spare");
	assert_true(apply_one(store_of(state), queue));
	job_change_op(op)->to.queue = "spare";
	beside(state, op, other_claims);
	assert_int_equal(job_change_op(op)->unplanned, 1);
	runs_are(state, "1 running, 3 claimed");
}

static void a_change_deletes_what_was_planned_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_JOB_CHANGE);

	beside(state, op, other_plans);
	assert_true(op->ok);
	assert_int_equal(job_change_op(op)->unplanned, 2);
	runs_are(state, "1 running, 3 queued");
}

static void a_change_of_a_job_that_was_removed_meanwhile_is_refused(void **state)
{
	AUTO(op) *op = op_on_job(OP_JOB_CHANGE);

	beside(state, op, other_removes);
	assert_false(op->ok);
	assert_int_equal(op->err.kind, ERR_NOT_FOUND);
	runs_are(state, "1 running, 3 cancelled:job removed");
}

static void a_change_follows_one_that_was_made_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_JOB_CHANGE);

	beside(state, op, other_changes);
	assert_true(op->ok);
	assert_int_equal(job_change_op(op)->revision, 3);
	assert_int_equal(job_change_op(op)->unplanned, 0);
}

static void a_cancellation_leaves_a_run_that_was_claimed_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_JOB_CANCEL);

	beside(state, op, other_claims);
	assert_int_equal(job_cancel_op(op)->queued_cancelled, 0);
	assert_int_equal(job_cancel_op(op)->open.n, 2);
	assert_true(job_cancel_op(op)->open.v[1]->cancel_asked);
	runs_are(state, "1 running, 3 claimed");
}

static void a_cancellation_does_not_return_a_run_that_ended_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_JOB_CANCEL);

	beside(state, op, other_ends);
	assert_int_equal(job_cancel_op(op)->queued_cancelled, 1);
	assert_int_equal(job_cancel_op(op)->open.n, 0);
	runs_are(state, "1 succeeded, 3 cancelled:job cancelled");
}

static void a_pause_deletes_what_was_planned_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_PAUSE);

	beside(state, op, other_plans);
	assert_true(op->ok);
	runs_are(state, "1 running, 3 queued");
}

static void a_pause_returns_a_run_that_was_claimed_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_PAUSE);

	beside(state, op, other_claims);
	assert_int_equal(pause_op(op)->open.n, 2);
	runs_are(state, "1 running, 3 claimed");
}

/* The run that was queued is held by the pause now. */
static void other_claims_none(struct store *other)
{
	AUTO(run) *r = claim_one(other, T0 + 1);

	assert_null(r);
}

static void a_resumption_releases_a_run_that_was_held_meanwhile(void **state)
{
	AUTO(op) *op = op_on_job(OP_RESUME);

	beside(state, op, other_claims_none);
	assert_int_equal(resume_op(op)->released, 1);
	runs_are(state, "1 running, 3 queued");
}

static void a_trigger_of_a_job_that_was_changed_meanwhile_is_refused(void **state)
{
	AUTO(op) *op = op_on_job(OP_TRIGGER);

	beside(state, op, other_changes);
	assert_false(op->ok);
	assert_int_equal(op->err.kind, ERR_BUSY);
}

static void a_cancelled_run_that_was_claimed_meanwhile_is_asked_to_end(void **state)
{
	AUTO(op) *op = op_on_job(OP_RUN_CANCEL);

	beside(state, op, other_claims);
	assert_int_equal(run_cancel_op(op)->run->state, RUN_CLAIMED);
	assert_true(run_cancel_op(op)->run->cancel_asked);
}

static void a_run_of_a_job_that_was_removed_meanwhile_is_final(void **state)
{
	AUTO(op) *op = op_on_job(OP_RUN_CANCEL);

	beside(state, op, other_removes);
	assert_true(run_cancel_op(op)->was_final);
	runs_are(state, "1 running, 3 cancelled:job removed");
}

/* ---- lost connections ---- */

/* A change of one job and a trigger of another one, whose reads are sent together. */
struct pair {
	struct op *change, *trigger;
	int session;
};

static void pair_begin(void **state, struct pair *p)
{
	struct store *s = store_of(state);

	p->session = session_of_store(state);
	p->change = op_on_job(OP_JOB_CHANGE);
	p->trigger = op_on_job(OP_TRIGGER);
	assert_int_equal(add_due(s, NULL, T0 + USEC_MIN), JOB);
	trigger_op(p->trigger)->job = add_due(s, NULL, T0 + USEC_MIN);
}

/* Each was applied once, in another session. */
static void pair_end(void **state, struct pair *p)
{
	AUTO_TEXT queued = NULL;

	assert_true(p->change->ok && p->trigger->ok);
	assert_int_equal(job_change_op(p->change)->revision, 2);
	queued = xprintf("%lld queued", (long long)trigger_op(p->trigger)->run->id);
	runs_are(state, queued);
	assert_int_not_equal(session_of_store(state), p->session);
	kept_is_true(state);
	op_free(p->change);
	op_free(p->trigger);
}

static void a_session_that_ends_while_a_batch_reads_is_made_again(void **state)
{
	struct pair p;

	pair_begin(state, &p);
	sql(state, "BEGIN; SELECT FROM jobs WHERE id = %d FOR NO KEY UPDATE", JOB);
	waiter_start_both(&now.waiter, store_of(state), p.change, p.trigger);
	wait_for_waiters(state, 1);
	sql(state, "SELECT pg_terminate_backend(%d)", p.session);
	sql(state, "COMMIT");
	waiter_join(&now.waiter);
	pair_end(state, &p);
}

static void a_session_that_ends_during_the_commit_of_such_a_batch_is_made_again(void **state)
{
	struct op *ops[2];
	struct pair p;

	pair_begin(state, &p);
	sql(state, "CREATE SEQUENCE commits");
	sql(state, "CREATE FUNCTION die_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('commits') = 1 THEN "
		"PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END $$");
	sql(state, "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die_once()");
	ops[0] = p.change;
	ops[1] = p.trigger;
	apply_all(store_of(state), ops, 2);
	pair_end(state, &p);
}

/* Each batch locks both jobs in ascending order, whatever the order of its operations is. */
static void swapped_jobs(void **state, enum op_kind kind)
{
	struct fixture *f = *state;
	AUTO(op) *open = op_node_open("node-two-engine", "two", "spawner-two");
	AUTO(op) *first = op_on_job(kind);
	AUTO(op) *second = op_on_job(OP_TRIGGER);
	AUTO(op) *third = op_on_job(OP_TRIGGER);
	AUTO(op) *fourth = op_on_job(OP_PAUSE);
	struct store *other = open_or_fail(f->where, false);
	AUTO_TEXT deadlocks = NULL;
	struct waiter up, down;

	assert_true(apply_one(other, open));
	assert_int_equal(add_due(f->store, NULL, T0 + USEC_MIN), JOB);
	trigger_op(second)->job = trigger_op(third)->job = add_due(f->store, NULL, T0 + USEC_MIN);
	trigger_op(third)->now++;
	sql(state, "BEGIN; SELECT FROM jobs WHERE id = %d FOR NO KEY UPDATE", JOB);
	waiter_start_both(&up, f->store, first, second);
	wait_for_waiters(state, 1);
	waiter_start_both(&down, other, third, fourth);
	wait_for_waiters(state, 2);
	sql(state, "COMMIT");
	waiter_join(&up);
	waiter_end(&down);
	assert_true(third->ok);
	assert_true(fourth->ok || kind == OP_JOB_CANCEL);
	store_free(other);
	deadlocks = ask(state, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
	assert_string_equal(deadlocks, "0|\n");
	kept_is_true(state);
}

static void batches_with_a_change_of_swapped_jobs_do_not_wait_in_a_circle(void **state)
{
	swapped_jobs(state, OP_JOB_CHANGE);
}

static void batches_with_a_cancellation_of_swapped_jobs_do_not_wait_in_a_circle(void **state)
{
	swapped_jobs(state, OP_JOB_CANCEL);
}

#define BESIDE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, beside_teardown)

static const struct CMUnitTest tests[] = {
	BESIDE_TEST(a_change_leaves_a_run_that_was_claimed_meanwhile),
	BESIDE_TEST(a_change_deletes_what_was_planned_meanwhile),
	BESIDE_TEST(a_change_of_a_job_that_was_removed_meanwhile_is_refused),
	BESIDE_TEST(a_change_follows_one_that_was_made_meanwhile),
	BESIDE_TEST(a_cancellation_leaves_a_run_that_was_claimed_meanwhile),
	BESIDE_TEST(a_cancellation_does_not_return_a_run_that_ended_meanwhile),
	BESIDE_TEST(a_pause_deletes_what_was_planned_meanwhile),
	BESIDE_TEST(a_pause_returns_a_run_that_was_claimed_meanwhile),
	BESIDE_TEST(a_resumption_releases_a_run_that_was_held_meanwhile),
	BESIDE_TEST(a_trigger_of_a_job_that_was_changed_meanwhile_is_refused),
	BESIDE_TEST(a_cancelled_run_that_was_claimed_meanwhile_is_asked_to_end),
	BESIDE_TEST(a_run_of_a_job_that_was_removed_meanwhile_is_final),
	STORE_TEST(a_session_that_ends_while_a_batch_reads_is_made_again),
	STORE_TEST(a_session_that_ends_during_the_commit_of_such_a_batch_is_made_again),
	STORE_TEST(batches_with_a_change_of_swapped_jobs_do_not_wait_in_a_circle),
	STORE_TEST(batches_with_a_cancellation_of_swapped_jobs_do_not_wait_in_a_circle),
};
const struct suite_part store_beside_part = {tests, ELEMENTS(tests)};
