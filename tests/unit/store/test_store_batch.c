/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of batches: order, independence of the operations, durability. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_moves.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <time.h>
#include <string.h>

static void applied_operations_are_there_after_reopening(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f->store, "kept");
	AUTO_TEXT identity = xstrdup(store_id(f->store));
	AUTO(job) *job = NULL;

	reopen(f);
	assert_string_equal(store_id(f->store), identity);
	job = get_job(f->store, id);
	assert_string_equal(job->name, "kept");
	assert_int_not_equal(add_job(f->store, "next"), id);
	assert_counts_true(f->store);
}

static void a_claim_sees_the_jobs_of_its_own_batch(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[] = {op_claim(5, T0), op_add(NULL, NULL, NULL), op_add(NULL, NULL, NULL)};

	apply_all(s, ops, 3);
	assert_int_equal(claim_op(ops[0])->claimed.n, 2);
	assert_counts_true(s);
	for (size_t i = 0; i < 3; i++)
		op_free(ops[i]);
}

static void cancel_and_end_of_one_run_keep_their_order(void **state)
{
	struct store *s = store_of(state);

	for (int order = 0; order < 2; order++) {
		int64_t id = add_job(s, NULL);
		AUTO(run) *run = claim_one(s, T0);
		AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
		AUTO(op) *end = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 1);
		struct op *ops[] = {order ? cancel : end, order ? end : cancel};
		AUTO(job) *job = NULL;

		apply_all(s, ops, 2);
		assert_int_equal(job_cancel_op(cancel)->was, order ? JOB_ACTIVE : JOB_FINISHED);
		job = get_job(s, id);
		assert_int_equal(job->state, order ? JOB_CANCELLED : JOB_FINISHED);
	}
	assert_counts_true(s);
}

static void a_name_freed_earlier_in_the_batch_can_be_used(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[] = {op_job_cancel(OP_JOB_REMOVE, add_job(s, "n")), op_add("n", NULL, NULL)};

	apply_all(s, ops, 2);
	assert_true(ops[0]->ok && ops[1]->ok);
	for (size_t i = 0; i < 2; i++)
		op_free(ops[i]);
}

static void every_refusal_leaves_the_others_alone(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = NULL;
	struct run unknown = {.id = 777777, .fence = 1};
	struct op *ops[9];

	add_job(s, "taken");
	run = claim_one(s, T0);
	ops[0] = op_add("taken", NULL, NULL);
	ops[1] = op_add("good", NULL, NULL);
	ops[2] = op_started(&unknown, T0);
	ops[3] = op_started(run, T0 + 1);
	ops[4] = op_ended(&unknown, ATTEMPT_SUCCEEDED, T0 + 2);
	ops[5] = op_job_cancel(OP_JOB_CANCEL, 888888);
	ops[6] = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 2);
	ops[7] = op_claim(4, T0);
	claim_op(ops[7])->node = "who";
	ops[8] = op_claim(4, T0);
	apply_all(s, ops, 9);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(ops[i]->ok, i == 1 || i == 3 || i == 6 || i == 8);
	assert_int_equal(claim_op(ops[8])->claimed.n, 1);
	assert_counts_true(s);
	for (size_t i = 0; i < 9; i++)
		op_free(ops[i]);
}

static void an_empty_batch_is_fine(void **state)
{
	struct batch_wake wake = apply_all(store_of(state), NULL, 0);

	assert_int_equal(wake.next_due, USEC_NEVER);
}

static void a_thousand_lives_leave_true_counts(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[1000];
	AUTO(op) *claim = op_claim(1000, T0);

	for (int i = 0; i < 1000; i++)
		ops[i] = op_add(NULL, NULL, NULL);
	apply_all(s, ops, 1000);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1000);
	for (int i = 0; i < 1000; i++) {
		op_free(ops[i]);
		ops[i] = op_started(claim_op(claim)->claimed.v[i].run, T0 + 1);
	}
	apply_all(s, ops, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_true(ops[i]->ok);
		op_free(ops[i]);
		ops[i] = op_ended(claim_op(claim)->claimed.v[i].run, i % 2 ? ATTEMPT_SUCCEEDED : ATTEMPT_LOST, T0 + 2);
	}
	apply_all(s, ops, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_true(ops[i]->ok);
		assert_int_equal(run_ended_op(ops[i])->job_finished, i % 2);
		op_free(ops[i]);
	}
	assert_counts_true(s);
}

static struct batch_wake end_one(struct store *s, const struct run *r)
{
	struct op *op = op_ended(r, ATTEMPT_SUCCEEDED, T0 + USEC_SEC);
	struct batch_wake wake = apply_all(s, &op, 1);

	assert_true(op->ok);
	op_free(op);
	return wake;
}

static struct batch_wake add_for_later(struct store *s)
{
	struct op *op = op_due(NULL, T0 + 36500 * USEC_DAY);
	struct batch_wake wake = apply_all(s, &op, 1);

	assert_true(op->ok);
	op_free(op);
	return wake;
}

/*
 * Jobs that are due much later make no work for the other nodes, but their clients may follow the events: the first is
 * notified at once, the second after a second. SQLite peers watch the file.
 */
static void events_without_work_are_notified_within_a_second(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *two = op_node_open("node-two-engine", "two", "spawner-of-it");
	AUTO(op) *look = op_new(OP_NODE_POLL, NULL, NULL);
	bool added, looked;
	usec_t began;

	node_poll_op(look)->node = NODE;
	assert_true(apply_one(s, two));
	do { /* again if this machine stalled for a second in between */
		nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 10000000}, NULL);
		began = clock_boot(&clock_system);
		assert_false(add_for_later(s).notify_pending);
		added = add_for_later(s).notify_pending;
		looked = apply_all(s, &look, 1).notify_pending;
	} while (clock_boot(&clock_system) - began > USEC_SEC);
	assert_int_equal(added, fixture_ops->reconnects);
	assert_int_equal(looked, fixture_ops->reconnects);
	nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 10000000}, NULL);
	assert_false(apply_all(s, &look, 1).notify_pending);
}

/* SQLite peers watch the file. On PostgreSQL peers are notified at most ten times a second, and also of the last end. */
static void ends_soon_after_another_are_told_with_the_next_look(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *company = op_node_open("node-two-engine", "two", "spawner-of-it");
	struct op *look = op_new(OP_NODE_POLL, NULL, NULL);
	AUTO(run) *first = NULL, *second = NULL;
	AUTO_DONE(run_list) none = {};
	AUTO_DONE(run_list) both = {};
	struct move_place place = {};
	bool missed;

	add_job(s, "first");
	add_job(s, "second");
	first = claim_one(s, T0);
	second = claim_one(s, T0);
	assert_true(apply_one(s, company));
	assert_true(list_moves_read(s, "one", &place, NULL, 0, &none, &missed, NULL));
	end_one(s, first);
	assert_true(end_one(s, second).notify_pending);
	nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
	node_poll_op(look)->node = NODE;
	assert_false(apply_all(s, &look, 1).notify_pending);
	op_free(look);
	/* the other node learns which runs have ended, each once */
	assert_true(list_moves_read(s, "one", &place, NULL, 0, &both, &missed, NULL));
	assert_int_equal(none.n, 0);
	assert_int_equal(both.n, 2);
	assert_int_equal(both.v[0]->id + both.v[1]->id, first->id + second->id);
	assert_true(run_state_final(both.v[0]->state) && !missed);
	run_list_done(&both);
	both = (struct run_list){};
	assert_true(list_moves_read(s, "one", &place, NULL, 0, &both, &missed, NULL));
	assert_int_equal(both.n, 0);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(applied_operations_are_there_after_reopening),
	STORE_TEST(a_claim_sees_the_jobs_of_its_own_batch),
	STORE_TEST(cancel_and_end_of_one_run_keep_their_order),
	STORE_TEST(a_name_freed_earlier_in_the_batch_can_be_used),
	STORE_TEST(every_refusal_leaves_the_others_alone),
	STORE_TEST(an_empty_batch_is_fine),
	STORE_TEST(a_thousand_lives_leave_true_counts),
	STORE_TEST(events_without_work_are_notified_within_a_second),
	STORE_TEST(ends_soon_after_another_are_told_with_the_next_look),
};
const struct suite_part store_batch_part = {tests, ELEMENTS(tests)};
