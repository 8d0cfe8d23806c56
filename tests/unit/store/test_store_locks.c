/* SPDX-License-Identifier: Apache-2.0 */
/* How batches of several engines exclude each other on a server: the lock of all writers, jobs, limits. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/limits.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/nodes.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/run_cancel.h"
#include "store/store.h"
#include "store/store_private.h"
#include "unit/store/locks_fixture.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_AGAIN_MAX (20 * USEC_MSEC)

/* Claims one more run than there is, and returns how many it got. */
static size_t claim_all(struct store *s, struct batch_wake *ret)
{
	AUTO(op) *op = op_claim(10, T0 + 1);
	struct err e = {};

	assert_true(batch_apply(s, &op, 1, ret, &e));
	assert_true(op->ok);
	return claim_op(op)->claimed.n;
}

static void waits_soon_for_a_run(const struct batch_wake *w)
{
	assert_true(w->next_due > T0 + 1);
	assert_true(w->next_due <= T0 + 1 + LOOK_AGAIN_MAX);
}

static void a_claim_passes_over_a_job_that_is_locked_and_looks_again(void **state)
{
	struct store *s = store_of(state);
	struct batch_wake wake;
	int64_t locked = add_job(s, NULL);

	add_job(s, NULL);
	sql(state, "BEGIN; SELECT FROM jobs WHERE id = %lld FOR NO KEY UPDATE", (long long)locked);
	assert_int_equal(claim_all(s, &wake), 1);
	waits_soon_for_a_run(&wake);
	assert_int_equal(claim_all(s, &wake), 0);
	waits_soon_for_a_run(&wake);
	sql(state, "COMMIT");
	assert_int_equal(claim_all(s, &wake), 1);
	assert_int_equal(wake.next_due, USEC_NEVER);
	kept_is_true(state);
}

static void a_claim_passes_over_a_limit_that_another_claim_has_locked(void **state)
{
	struct store *s = store_of(state);
	struct batch_wake wake;
	AUTO(op) *limit = op_new(OP_LIMIT_SET, NULL, NULL);

	op_fill(limit_op(limit), .scope = LIMIT_QUEUE, .key = "few", .running_given = true, .running = 1, .now = T0);
	assert_true(apply_one(s, limit));
	add_slots(s, &(struct slots){.n = 1, .queue = "few"});
	add_slots(s, &(struct slots){.n = 1, .queue = "few"});
	add_job(s, NULL);
	sql(state, "BEGIN; SELECT FROM limits WHERE key = 'few' FOR NO KEY UPDATE");
	assert_int_equal(claim_all(s, &wake), 1);
	waits_soon_for_a_run(&wake);
	sql(state, "COMMIT");
	assert_int_equal(claim_all(s, &wake), 1);
	assert_int_equal(claim_all(s, &wake), 0);
	kept_is_true(state);
}

static void a_plan_passes_over_a_job_that_is_locked(void **state)
{
	struct store *s = store_of(state);
	usec_t end = T0 + 1;
	int64_t locked = add_due(s, NULL, T0);

	add_due(s, NULL, T0);
	sql(state, "BEGIN; SELECT FROM jobs WHERE id = %lld FOR NO KEY UPDATE", (long long)locked);
	for (size_t n = 1; n <= 2; n++) {
		AUTO(op) *plan = op_plan(every_second, &end, T0);

		assert_true(apply_one(s, plan));
		assert_int_equal(plan_op(plan)->runs, 1);
		if (n == 1)
			sql(state, "COMMIT");
	}
	kept_is_true(state);
}

/* ---- the lock of all writers ---- */

static void starts_and_ends_of_different_jobs_do_not_wait_for_each_other(void **state)
{
	struct store *s = store_of(state);
	struct batch_wake wake;

	add_job(s, NULL);
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR KEY SHARE"); /* as a claim of another node holds it */
	assert_int_equal(claim_all(s, &wake), 1);
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 2);
	sql(state, "COMMIT");
	kept_is_true(state);
}

/* Applies the operation while a batch of another node holds the lock of all writers as claims do. */
static void applies_beside_others(void **state, struct op *op)
{
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR KEY SHARE");
	assert_true(apply_one(store_of(state), op));
	assert_true(op->ok);
	sql(state, "COMMIT");
}

static void changes_and_pauses_of_one_job_do_not_exclude_other_writers(void **state)
{
	int64_t id = add_due(store_of(state), NULL, T0 + USEC_HOUR);
	AUTO(op) *change = op_new(OP_JOB_CHANGE, NULL, NULL);
	AUTO(op) *pause = op_new(OP_PAUSE, NULL, NULL);
	AUTO(op) *resume = op_new(OP_RESUME, NULL, NULL);

	op_fill(job_change_op(change), .uid = -1, .id = id, .what = "all",
		.to = {.spec = "{\"command\":[\"false\"]}", .name = "other", .now = T0});
	applies_beside_others(state, change);
	op_fill(pause_op(pause), .uid = -1, .job = id, .pause = {.by_name = (char *)"eve", .at = T0});
	applies_beside_others(state, pause);
	op_fill(resume_op(resume), .uid = -1, .job = id, .now = T0);
	applies_beside_others(state, resume);
	kept_is_true(state);
}

static void the_leader_without_dead_nodes_waits_for_no_writer(void **state)
{
	AUTO(op) *lease = op_new(OP_LEASE, NULL, NULL);
	AUTO(op) *again = op_new(OP_LEASE, NULL, NULL);
	AUTO(op) *spread = op_new(OP_LEAD, NULL, NULL);
	AUTO(op) *lead = op_new(OP_LEAD, NULL, NULL);

	op_fill(lease_op(lease), .node = NODE, .name = "one", .ttl = USEC_MIN, .stands = true, .guarded = true, .at = T0);
	op_copy(lease_op(again), *lease_op(lease));
	assert_true(apply_one(store_of(state), lease));
	if (!lease_op(lease)->leads)
		assert_true(apply_one(store_of(state), again));
	op_fill(leader_op(spread), .node = NODE, .term = 1, .now = T0);
	op_copy(leader_op(lead), *leader_op(spread));
	assert_true(apply_one(store_of(state), spread)); /* assigns the segments */
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR UPDATE");
	assert_true(apply_one(store_of(state), lead));
	sql(state, "COMMIT");
}

static void an_expiry_passes_over_a_job_that_is_locked(void **state)
{
	struct start_policy policy = {.expires = USEC_SEC};
	int64_t locked;

	add_slots(store_of(state), &(struct slots){.n = 1, .policy = policy});
	add_slots(store_of(state), &(struct slots){.n = 1, .policy = policy});
	locked = 1;
	sql(state, "BEGIN; SELECT FROM jobs WHERE id = %lld FOR NO KEY UPDATE", (long long)locked);
	for (size_t n = 1; n <= 3; n++) {
		AUTO(op) *expire = op_new(OP_EXPIRE, NULL, NULL);
		struct batch_wake wake;

		expired_runs_op(expire)->now = T0 + USEC_MIN;
		wake = apply_all(store_of(state), &expire, 1);
		assert_true(expire->ok);
		assert_int_equal(expired_runs_op(expire)->expired.n, n == 2 ? 0 : 1);
		assert_int_equal(wake.expiry, n == 1 ? T0 + USEC_SEC : n == 2 ? T0 + USEC_MIN + 10 * USEC_MSEC : USEC_NEVER);
		if (n == 2)
			sql(state, "COMMIT");
	}
	kept_is_true(state);
}

/* Of a common backlog each node takes the runs of its own segments, and others when there are none. */
static void a_claim_takes_jobs_of_its_segments_first(void **state)
{
	struct store *s = store_of(state);
	size_t own = 0;

	for (int i = 0; i < 40; i++)
		add_job(s, NULL);
	s->segments = (int64_t)0xaaaaaaaaaaaaaaaa;
	for (int round = 0; round < 2; round++) {
		AUTO(op) *claim = op_claim(round ? 40 : 10, T0 + 1);
		const struct claim_list *got = &claim_op(claim)->claimed;

		assert_true(apply_one(s, claim));
		assert_int_equal(got->n, round ? 30 : 10);
		for (size_t i = 0; round == 0 && i < got->n; i++)
			own += job_segment((uint64_t)got->v[i].run->job) % 2;
	}
	assert_int_equal(own, 10);
	kept_is_true(state);
}

/* ---- what changes between the snapshot of a claim and its locks ---- */

struct slow_claim {
	struct store *other; /* an engine that changes something meanwhile */
	struct op *op;
	struct waiter w;
};

static void slow_claim_begin(void **state, struct slow_claim *c, size_t room, usec_t now)
{
	struct fixture *f = *state;
	AUTO(op) *open = op_node_open("node-two-engine", "two", "spawner-two");

	c->other = open_or_fail(f->where, false);
	assert_true(apply_one(c->other, open));
	c->op = op_claim(room, now);
	add_gate(state, "set_config('jobsched.held'", 0);
	waiter_start(&c->w, f->store, c->op);
	wait_for_waiters(state, 1);
}

/* It claims that many runs. */
static void slow_claim_finds(void **state, struct slow_claim *c, size_t n)
{
	gate_open(state);
	waiter_join(&c->w);
	assert_int_equal(claim_op(c->op)->claimed.n, n);
	op_free(c->op);
	store_free(c->other);
	kept_is_true(state);
}

static void a_claim_leaves_out_a_run_that_moves_to_a_full_queue(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *limit = op_new(OP_LIMIT_SET, NULL, NULL);
	AUTO(op) *change = op_new(OP_JOB_CHANGE, NULL, NULL);
	struct slow_claim c;
	int64_t job;

	op_fill(limit_op(limit), .scope = LIMIT_QUEUE, .key = "few", .running_given = true, .running = 1, .now = T0);
	assert_true(apply_one(s, limit));
	add_slots(s, &(struct slots){.n = 1, .queue = "few"});
	claim_is(state, 10, T0 + 1, "1");
	job = add_job(s, NULL);
	slow_claim_begin(state, &c, 10, T0 + 1);
	op_fill(job_change_op(change), .uid = -1, .id = job, .what = "queue",
		.to = {.spec = "{\"command\":[\"true\"]}", .queue = "few", .now = T0});
	assert_true(apply_one(c.other, change));
	slow_claim_finds(state, &c, 0);
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 2);
	claim_is(state, 10, T0 + 3, "2");
}

static void a_claim_leaves_out_a_run_that_gets_a_label(void **state)
{
	AUTO(op) *change = op_new(OP_JOB_CHANGE, NULL, NULL);
	int64_t job = add_job(store_of(state), NULL);
	struct slow_claim c;

	slow_claim_begin(state, &c, 10, T0 + 1);
	op_fill(job_change_op(change), .uid = -1, .id = job, .what = "node",
		.to = {.spec = "{\"command\":[\"true\"],\"node_labels\":[\"ssd\"]}", .now = T0, .policy = {.gated = GATED_LABELS}});
	assert_true(apply_one(c.other, change));
	slow_claim_finds(state, &c, 0);
}

/* The first run was claimed by another node and queued again meanwhile. */
static void a_claim_takes_the_run_after_one_that_is_due_later_now(void **state)
{
	struct slow_claim c;

	add_job(store_of(state), NULL);
	add_job(store_of(state), NULL);
	slow_claim_begin(state, &c, 10, T0 + 1);
	sql(state, "UPDATE runs SET due_at = due_at + 3600000000, attempt = 1, fence = 1 WHERE id = 1");
	slow_claim_finds(state, &c, 1);
	claim_is(state, 10, T0 + 2, "");
	claim_is(state, 10, T0 + 2 * USEC_HOUR, "1");
}

/* The eight runs that are read first are paused. The last of them moves behind the ninth. */
static void a_claim_passes_over_no_run_because_another_has_moved(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_slots(s, &(struct slots){.n = 8, .step = 1});
	AUTO(op) *pause = op_new(OP_PAUSE, NULL, NULL);
	struct slow_claim c;

	add_slots(s, &(struct slots){.n = 1, .first = T0 + 50});
	op_fill(pause_op(pause), .uid = -1, .job = job, .pause = {.by_name = (char *)"eve", .at = T0 + 100});
	assert_true(apply_one(s, pause));
	slow_claim_begin(state, &c, 5, T0 + USEC_SEC);
	sql(state, "UPDATE runs SET due_at = %lld WHERE id = 8", (long long)(T0 + 500));
	slow_claim_finds(state, &c, 1);
}

/* The slot is inside the pause, which is over when the job is locked. */
static void a_claim_skips_a_slot_of_a_pause_that_has_just_ended(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_due(s, NULL, T0);
	AUTO(op) *pause = op_new(OP_PAUSE, NULL, NULL);
	AUTO(op) *resume = op_new(OP_RESUME, NULL, NULL);
	usec_t end = T0 + USEC_MIN;
	AUTO(op) *plan = op_plan(every_second, &end, T0);
	struct slow_claim c;

	op_fill(pause_op(pause), .uid = -1, .job = job, .pause = {.by_name = (char *)"eve", .at = T0 - USEC_SEC});
	assert_true(apply_one(s, pause));
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, 1);
	slow_claim_begin(state, &c, 10, T0 + 1);
	op_fill(resume_op(resume), .uid = -1, .job = job, .now = T0 + 1);
	assert_true(apply_one(c.other, resume));
	slow_claim_finds(state, &c, 0);
	states_are(state, "skipped:paused");
}

static struct op *op_run_cancel(int64_t run)
{
	struct op *op = op_new(OP_RUN_CANCEL, NULL, NULL);

	op_fill(run_cancel_op(op), .uid = -1, .id = run, .now = T0 + 1);
	return op;
}

/* Jobs are locked before their runs. So a run whose job the batch has not locked is not locked either. */
static void a_cancel_of_a_run_that_has_just_appeared_waits_for_its_job(void **state)
{
	struct fixture *f = *state;
	struct store *other = open_or_fail(f->where, false);
	AUTO_TEXT last = NULL;
	AUTO_TEXT free_run = NULL;
	AUTO_TEXT select = NULL;
	AUTO_TEXT row = NULL;
	AUTO(op) *cancel = NULL;
	AUTO(op) *second = NULL;
	struct waiter w;
	int64_t run, job;

	add_job(f->store, NULL);
	add_job(other, NULL); /* reserves the numbers of the next one */
	last = ask(state, "SELECT max(id) FROM runs");
	run = atoll(last) + 1;
	cancel = op_run_cancel(1);
	second = op_run_cancel(run);
	add_gate(state, "UNION SELECT job FROM mine", 0);
	waiter_start_both(&w, f->store, cancel, second);
	wait_for_waiters(state, 1);
	job = add_job(other, NULL);
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR KEY SHARE; "
		"SELECT FROM all_jobs WHERE id = %lld FOR NO KEY UPDATE", (long long)job); /* as a claim of another node */
	gate_open(state);
	wait_for_waiters(state, 1);
	select = xprintf("SELECT id FROM runs WHERE id = %lld FOR UPDATE SKIP LOCKED", (long long)run);
	free_run = ask(state, select);
	row = xprintf("%lld|\n", (long long)run);
	sql(state, "COMMIT");
	waiter_join(&w);
	assert_string_equal(free_run, row);
	store_free(other);
	kept_is_true(state);
}

/* The run that it had claimed is queued again by the rollback, and others claim it. */
static void a_claim_that_fails_has_no_runs(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *limit = op_new(OP_LIMIT_SET, NULL, NULL);
	AUTO(op) *claim = op_claim(10, T0 + 1);
	struct op *ops[] = {claim};

	op_fill(limit_op(limit), .scope = LIMIT_QUEUE, .key = "slow", .rate_given = true,
		.rate = {.n = 1, .per = USEC_SEC, .burst = 1}, .now = T0);
	assert_true(apply_one(s, limit));
	add_slots(s, &(struct slots){.n = 1, .queue = "slow"});
	sql(state, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$; "
		"CREATE TRIGGER refuse BEFORE INSERT ON buckets FOR EACH ROW EXECUTE FUNCTION refuse()");
	apply_all(s, ops, 1);
	assert_false(claim->ok);
	assert_int_equal(claim_op(claim)->claimed.n, 0);
	sql(state, "DROP TRIGGER refuse ON buckets");
	claim_is(state, 10, T0 + 2, "1");
	kept_is_true(state);
}

/* Earlier versions lock this row exclusively and then jobs, runs and permits in any order. */
static void a_claim_waits_for_a_batch_of_an_earlier_version(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(10, T0 + 1);
	struct waiter w;

	add_job(s, NULL);
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR UPDATE");
	waiter_start(&w, s, claim);
	wait_for_waiters(state, 1);
	sql(state, "UPDATE runs SET due_at = due_at + 1000000");
	sql(state, "COMMIT");
	waiter_join(&w);
	assert_int_equal(claim_op(claim)->claimed.n, 0);
}

/* Earlier versions do not queue for this row, so shared batches would keep them waiting for ever. */
static void batches_take_turns_with_an_earlier_version(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *poll = op_new(OP_NODE_POLL, NULL, NULL);
	AUTO(op) *later = op_new(OP_NODE_POLL, NULL, NULL);
	AUTO(op) *claim = op_claim(10, T0 + 1);
	struct waiter w;

	op_fill(node_poll_op(poll), .node = NODE);
	op_fill(node_poll_op(later), .node = NODE);
	sql(state, "INSERT INTO writers (id, batch, at) VALUES ('0123456789abcdef', 1, %lld)", (long long)clock_now(s->clock));
	assert_true(apply_one(s, poll));
	add_job(s, NULL);
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR KEY SHARE"); /* as a shared batch holds it */
	waiter_start(&w, s, claim);
	wait_for_waiters(state, 1);
	sql(state, "COMMIT");
	waiter_join(&w);
	assert_int_equal(claim_op(claim)->claimed.n, 1);

	sql(state, "UPDATE writers SET at = at - 120000000 WHERE id = '0123456789abcdef'"); /* it was upgraded */
	assert_true(apply_one(s, later));
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR KEY SHARE");
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 2);
	sql(state, "COMMIT");
}

/* Without a queue between them, claims that follow each other would keep the pause waiting for ever. */
static void a_batch_that_needs_all_writers_is_not_overtaken_by_claims(void **state)
{
	struct fixture *f = *state;
	struct store *second = open_or_fail(f->where, false);
	AUTO(op) *open = op_node_open("node-two-engine", "two", "spawner-two");
	AUTO(op) *pause = op_new(OP_PAUSE, NULL, NULL);
	AUTO(op) *claim = op_claim(10, T0 + 1);
	struct waiter pausing, claiming;

	assert_true(apply_one(second, open));
	add_job(f->store, NULL);
	op_fill(pause_op(pause), .uid = -1,
		.pause = {.scope = PAUSE_ALL, .key = (char *)"", .uid = -1, .by_uid = -1, .by_name = (char *)"eve", .at = T0});
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'store_id' FOR KEY SHARE"); /* a claim under way */
	waiter_start(&pausing, second, pause);
	wait_for_waiters(state, 1);
	waiter_start(&claiming, f->store, claim);
	wait_for_waiters(state, 2);
	sql(state, "COMMIT");
	waiter_join(&pausing);
	waiter_join(&claiming);
	assert_int_equal(claim_op(claim)->claimed.n, 0);
	store_free(second);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_claim_passes_over_a_job_that_is_locked_and_looks_again),
	STORE_TEST(a_claim_passes_over_a_limit_that_another_claim_has_locked),
	STORE_TEST(a_plan_passes_over_a_job_that_is_locked),
	STORE_TEST(starts_and_ends_of_different_jobs_do_not_wait_for_each_other),
	STORE_TEST(changes_and_pauses_of_one_job_do_not_exclude_other_writers),
	STORE_TEST(the_leader_without_dead_nodes_waits_for_no_writer),
	STORE_TEST(an_expiry_passes_over_a_job_that_is_locked),
	STORE_TEST(a_claim_takes_jobs_of_its_segments_first),
	STORE_TEST(a_claim_leaves_out_a_run_that_moves_to_a_full_queue),
	STORE_TEST(a_claim_leaves_out_a_run_that_gets_a_label),
	STORE_TEST(a_claim_takes_the_run_after_one_that_is_due_later_now),
	STORE_TEST(a_claim_passes_over_no_run_because_another_has_moved),
	STORE_TEST(a_claim_skips_a_slot_of_a_pause_that_has_just_ended),
	STORE_TEST(a_cancel_of_a_run_that_has_just_appeared_waits_for_its_job),
	STORE_TEST(a_claim_that_fails_has_no_runs),
	STORE_TEST(a_claim_waits_for_a_batch_of_an_earlier_version),
	STORE_TEST(batches_take_turns_with_an_earlier_version),
	STORE_TEST(a_batch_that_needs_all_writers_is_not_overtaken_by_claims),
};
const struct suite_part store_locks_part = {tests, ELEMENTS(tests)};
