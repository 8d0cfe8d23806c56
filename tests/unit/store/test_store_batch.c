/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of batches: order, independence of the operations, durability. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/runs.h"
#include "store/ops/run/triggers.h"
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

static struct op *op_rename(int64_t id, const char *name)
{
	struct op *op = op_new(OP_JOB_CHANGE, NULL, NULL);

	op_fill(job_change_op(op), .uid = -1, .id = id, .what = "name", .to = {.spec = "{\"command\":[\"true\"]}", .name = name, .now = T0});
	return op;
}

static struct op *op_cancel_run(int64_t id)
{
	struct op *op = op_new(OP_RUN_CANCEL, NULL, NULL);

	op_fill(run_cancel_op(op), .uid = -1, .id = id, .now = T0 + 1);
	return op;
}

static struct op *op_run(int64_t job, int64_t revision)
{
	struct op *op = op_new(OP_TRIGGER, NULL, NULL);

	op_fill(trigger_op(op), .uid = -1, .job = job, .revision = revision, .now = T0);
	return op;
}

/* Applies them as one batch and frees them. All must succeed. */
static void apply_and_free(struct store *s, struct op **ops, size_t n)
{
	apply_all(s, ops, n);
	for (size_t i = 0; i < n; i++) {
		if (!ops[i]->ok)
			fail_msg("operation %zu: %s", i, ops[i]->err.msg);
		op_free(ops[i]);
	}
	assert_counts_true(s);
}

static void operations_on_one_job_see_what_the_earlier_ones_of_their_batch_did(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_due(s, "first", T0 + USEC_HOUR);
	struct op *ops[] = {op_rename(id, "second"), op_run(id, 2), op_rename(id, "third"), op_new(OP_PAUSE, NULL, NULL), op_new(OP_RESUME, NULL, NULL),
		op_run(id, 3), op_job_cancel(OP_JOB_CANCEL, id)};
	AUTO(job) *j = NULL;

	op_fill(pause_op(ops[3]), .uid = -1, .job = id, .pause = {.by_name = (char *)"eve", .at = T0});
	op_fill(resume_op(ops[4]), .uid = -1, .job = id, .now = T0);
	apply_all(s, ops, ELEMENTS(ops));
	assert_int_equal(job_cancel_op(ops[6])->queued_cancelled, 2);
	for (size_t i = 0; i < ELEMENTS(ops); i++) {
		assert_true(ops[i]->ok);
		op_free(ops[i]);
	}
	j = get_job(s, id);
	assert_string_equal(j->name, "third");
	assert_int_equal(j->state, JOB_CANCELLED);
	assert_int_equal(j->revision, 3);
	assert_counts_true(s);
}

static void a_job_finishes_when_one_batch_cancels_all_its_runs(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, NULL);
	struct op *more[] = {op_run(id, 1), op_run(id, 1)};
	struct op *cancels[] = {op_cancel_run(1), op_cancel_run(2), op_cancel_run(3)};
	AUTO(job) *j = NULL;

	apply_and_free(s, more, ELEMENTS(more));
	apply_and_free(s, cancels, ELEMENTS(cancels));
	j = get_job(s, id);
	assert_int_equal(j->state, JOB_FINISHED);
}

static void a_run_whose_job_is_cancelled_in_the_same_batch_is_final(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, NULL);
	struct op *ops[] = {op_job_cancel(OP_JOB_CANCEL, id), op_cancel_run(1)};

	apply_all(s, ops, 2);
	assert_true(ops[0]->ok && ops[1]->ok);
	assert_true(run_cancel_op(ops[1])->was_final);
	op_free(ops[0]);
	op_free(ops[1]);
	assert_counts_true(s);
}

static void a_name_that_a_change_frees_can_be_used_by_the_next_change(void **state)
{
	struct store *s = store_of(state);
	int64_t one = add_due(s, "one", T0 + USEC_HOUR), two = add_due(s, "two", T0 + USEC_HOUR);
	struct op *swap[] = {op_rename(one, "three"), op_rename(two, "one"), op_rename(one, "two")};
	struct op *both[] = {op_rename(one, "four"), op_rename(two, "four")};

	apply_and_free(s, swap, ELEMENTS(swap));
	apply_all(s, both, 2);
	assert_true(both[0]->ok);
	assert_false(both[1]->ok);
	assert_int_equal(both[1]->err.kind, ERR_CONFLICT);
	op_free(both[0]);
	op_free(both[1]);
	assert_counts_true(s);
}

/* The result of a trigger and of a cancellation is the row that later reads return. */
static void runs_that_operations_return_are_those_of_the_store(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_due(s, "named", T0 + USEC_HOUR);
	AUTO(op) *trigger = op_run(id, 1);
	AUTO(op) *cancel = NULL;
	const struct run *r;

	trigger_op(trigger)->params = "{\"a\":\"b\"}";
	trigger_op(trigger)->forced = true;
	for (int round = 0; round < 2; round++) {
		AUTO(run) *kept = NULL;

		if (round == 0) {
			assert_true(apply_one(s, trigger));
			r = trigger_op(trigger)->run;
		} else {
			cancel = op_cancel_run(r->id);
			assert_true(apply_one(s, cancel));
			r = run_cancel_op(cancel)->run;
		}
		kept = get_run(s, r->id);
		assert_true(r->job == kept->job && r->uid == kept->uid && r->kind == kept->kind && r->state == kept->state);
		assert_true(r->slot == kept->slot && r->slot_last == kept->slot_last && r->slot_count == kept->slot_count);
		assert_true(r->due_at == kept->due_at && r->revision == kept->revision && r->priority == kept->priority);
		assert_true(r->attempt == kept->attempt && r->lost == kept->lost && r->fence == kept->fence);
		assert_true(r->cancel_asked == kept->cancel_asked && r->created_at == kept->created_at && r->claimed_at == kept->claimed_at);
		assert_true(r->started_at == kept->started_at && r->ended_at == kept->ended_at && r->exit_code == kept->exit_code);
		assert_true(r->term_signal == kept->term_signal && r->dead_at == kept->dead_at && r->failures == kept->failures);
		assert_true(r->first_start == kept->first_start && r->hold == kept->hold && r->forced == kept->forced);
		assert_true(text_equal(r->job_name, kept->job_name) && text_equal(r->owner, kept->owner) && text_equal(r->reason, kept->reason));
		assert_true(text_equal(r->queue, kept->queue) && text_equal(r->node, kept->node) && text_equal(r->params, kept->params));
	}
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
	STORE_TEST(operations_on_one_job_see_what_the_earlier_ones_of_their_batch_did),
	STORE_TEST(a_job_finishes_when_one_batch_cancels_all_its_runs),
	STORE_TEST(a_run_whose_job_is_cancelled_in_the_same_batch_is_final),
	STORE_TEST(a_name_that_a_change_frees_can_be_used_by_the_next_change),
	STORE_TEST(runs_that_operations_return_are_those_of_the_store),
	STORE_TEST(every_refusal_leaves_the_others_alone),
	STORE_TEST(an_empty_batch_is_fine),
	STORE_TEST(a_thousand_lives_leave_true_counts),
	STORE_TEST(events_without_work_are_notified_within_a_second),
	STORE_TEST(ends_soon_after_another_are_told_with_the_next_look),
};
const struct suite_part store_batch_part = {tests, ELEMENTS(tests)};
