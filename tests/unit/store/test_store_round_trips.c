/* SPDX-License-Identifier: Apache-2.0 */
/* The round trips to the server that a batch of each operation may take. */
#include "base/text.h"
#include "store/backend/postgres.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/runs.h"
#include "store/ops/run/triggers.h"
#include "store/store.h"
#include "unit/store/locks_fixture.h"

/* Budgets may be lowered when an operation gets faster, not raised. */
enum budget {
	BUDGET_ADD = 1,
	BUDGET_ADD_NAMED = 2,
	BUDGET_PLAN = 2,
	BUDGET_CLAIM = 2,
	BUDGET_CLAIM_NONE = 1,
	BUDGET_STARTED = 1,
	BUDGET_ENDED = 2,
	BUDGET_CANCEL = 2,
	BUDGET_CHANGE = 2,
	BUDGET_TRIGGER = 2,
	BUDGET_PAUSE = 2,
	BUDGET_RESUME = 2,
	BUDGET_LEAD = 2,
};

/* Applies the operations as one batch and compares its round trips with the budget. */
static void spend(struct store *s, struct op **ops, size_t n, int budget)
{
	int64_t before, spent;

	for (size_t i = 0; i < n; i++)
		assert_non_null(op_kind_name(ops[i]->kind));
	apply_all(s, NULL, 0); /* BEGIN has a round trip of its own after a pause */
	before = store_round_trips(s);
	apply_all(s, ops, n);
	spent = store_round_trips(s) - before;
	assert_int_equal(((const struct db_postgres *)s->db)->n_prefetched, 0); /* nothing is kept for the next batch */
	print_message("%s: %d round trips of %d\n", op_kind_name(ops[0]->kind), (int)spent, budget);
	if (spent > budget)
		fail_msg("%zu x %s took %d round trips, more than %d", n, op_kind_name(ops[0]->kind), (int)spent, budget);
}

static void spend_one(struct store *s, struct op *op, int budget)
{
	spend(s, &op, 1, budget);
	assert_true(op->ok);
}

static void limit_jobs(struct op *op)
{
	job_add_op(op)->job.limit = 100000;
	job_add_op(op)->job.bytes_limit = INT64_C(1) << 30;
	job_add_op(op)->job.density_max = 100;
	job_add_op(op)->job.next_slot = T0 + USEC_HOUR;
}

static void an_addition_stays_within_its_budget(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[20];

	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < ELEMENTS(ops); i++)
			limit_jobs(ops[i] = op_add(NULL, NULL, NULL));
		/* the first batches reserve numbers and read the counts of the owner */
		spend(s, ops, ELEMENTS(ops), round < 2 ? 6 : BUDGET_ADD);
		for (size_t i = 0; i < ELEMENTS(ops); i++) {
			assert_true(ops[i]->ok);
			op_free(ops[i]);
		}
	}
	assert_counts_true(s);
}

static void an_addition_with_a_name_stays_within_its_budget(void **state)
{
	struct store *s = store_of(state);

	for (int round = 0; round < 4; round++) {
		AUTO_TEXT name = xprintf("job-%d", round);
		AUTO_TEXT key = xprintf("key-%d", round);
		AUTO(op) *op = op_add(name, key, NULL);

		limit_jobs(op);
		spend_one(s, op, round < 2 ? 7 : BUDGET_ADD_NAMED);
	}
	assert_counts_true(s);
}

static void a_plan_stays_within_its_budget(void **state)
{
	struct store *s = store_of(state);
	usec_t end = T0 + 10 * USEC_SEC;

	for (int round = 0; round < 3; round++) {
		AUTO(op) *plan = op_plan(every_second, &end, T0 + round * USEC_SEC);

		for (int i = 0; round == 0 && i < 20; i++)
			add_due(s, NULL, T0);
		spend_one(s, plan, round < 1 ? BUDGET_PLAN + 1 : BUDGET_PLAN); /* the first plan reserves numbers */
		assert_true(plan_op(plan)->runs > 0);
	}
}

static void the_life_of_a_run_stays_within_its_budget(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[10];

	for (int i = 0; i < 10; i++)
		add_job(s, NULL);
	for (int round = 0; round < 2; round++) {
		AUTO(op) *claim = op_claim(5, T0);
		const struct claim_list *got = &claim_op(claim)->claimed;

		spend_one(s, claim, round < 1 ? BUDGET_CLAIM + 1 : BUDGET_CLAIM); /* the first claim learns the lane */
		assert_int_equal(got->n, 5);
		for (size_t i = 0; i < got->n; i++)
			ops[i] = op_started(got->v[i].run, T0 + 1);
		spend(s, ops, got->n, BUDGET_STARTED);
		for (size_t i = 0; i < got->n; i++)
			op_free(ops[i]);
		for (size_t i = 0; i < got->n; i++)
			ops[i] = op_ended(got->v[i].run, ATTEMPT_SUCCEEDED, T0 + 2);
		spend(s, ops, got->n, BUDGET_ENDED);
		for (size_t i = 0; i < got->n; i++) {
			assert_true(ops[i]->ok);
			op_free(ops[i]);
		}
	}
	for (int round = 0; round < 2; round++) {
		AUTO(op) *none = op_claim(5, T0 + 3);

		spend_one(s, none, BUDGET_CLAIM_NONE);
	}
	assert_counts_true(s);
}

static void a_change_stays_within_its_budget(void **state)
{
	struct store *s = store_of(state);

	for (int round = 0; round < 2; round++) {
		int64_t id = add_due(s, round ? "named" : NULL, T0 + USEC_HOUR);
		AUTO(op) *change = op_new(OP_JOB_CHANGE, NULL, NULL);
		AUTO(op) *trigger = op_new(OP_TRIGGER, NULL, NULL);
		AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);

		op_fill(job_change_op(change), .uid = -1, .id = id, .what = "all", .reschedule = true,
			.to = {.spec = "{\"command\":[\"false\"]}", .name = round ? "named" : NULL, .now = T0, .next_slot = T0 + USEC_MIN});
		spend_one(s, change, BUDGET_CHANGE);
		op_fill(trigger_op(trigger), .uid = -1, .job = id, .revision = 2, .now = T0);
		spend_one(s, trigger, BUDGET_TRIGGER);
		spend_one(s, cancel, BUDGET_CANCEL);
	}
	assert_counts_true(s);
}

static void a_pause_and_its_end_stay_within_their_budgets(void **state)
{
	struct store *s = store_of(state);

	for (int round = 0; round < 2; round++) {
		AUTO(run) *running = NULL;
		int64_t id = add_busy(s, &running);
		AUTO(op) *pause = op_new(OP_PAUSE, NULL, NULL);
		AUTO(op) *resume = op_new(OP_RESUME, NULL, NULL);
		AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);

		op_fill(pause_op(pause), .uid = -1, .job = id, .pause = {.by_name = (char *)"eve", .at = T0});
		spend_one(s, pause, BUDGET_PAUSE);
		assert_int_equal(pause_op(pause)->open.n, 1);
		assert_null(claim_one(s, T0 + 2)); /* holds the queued run */
		op_fill(resume_op(resume), .uid = -1, .job = id, .now = T0 + 3);
		spend_one(s, resume, BUDGET_RESUME);
		assert_int_equal(resume_op(resume)->released, 1);
		spend_one(s, cancel, BUDGET_CANCEL);
		assert_int_equal(job_cancel_op(cancel)->open.n, 1);
		end_run(s, running, ATTEMPT_SUCCEEDED, T0 + 4);
		assert_counts_true(s);
	}
}

static void the_cancellation_of_a_run_stays_within_its_budget(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[4];

	for (int i = 0; i < 5; i++)
		add_job(s, NULL);
	for (size_t i = 0; i < ELEMENTS(ops); i++) {
		ops[i] = op_new(OP_RUN_CANCEL, NULL, NULL);
		op_fill(run_cancel_op(ops[i]), .uid = -1, .id = (int64_t)i + 1, .now = T0 + 1);
	}
	spend_one(s, ops[0], BUDGET_CANCEL);
	spend(s, ops + 1, 3, BUDGET_CANCEL); /* several jobs in one batch */
	for (size_t i = 0; i < ELEMENTS(ops); i++) {
		assert_int_equal(run_cancel_op(ops[i])->run->state, RUN_CANCELLED);
		op_free(ops[i]);
	}
	assert_counts_true(s);
}

static void changes_of_several_jobs_share_their_round_trips(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[8];

	for (size_t i = 0; i < ELEMENTS(ops); i += 2) {
		int64_t changed = add_due(s, NULL, T0 + USEC_HOUR), triggered = add_due(s, NULL, T0 + USEC_HOUR);

		ops[i] = op_new(OP_JOB_CHANGE, NULL, NULL);
		op_fill(job_change_op(ops[i]), .uid = -1, .id = changed, .what = "all", .reschedule = true,
			.to = {.spec = "{\"command\":[\"false\"],\"more\":1}", .now = T0, .next_slot = T0 + USEC_MIN, .run_at = T0,
				.bytes_limit = INT64_C(1) << 30});
		ops[i + 1] = op_new(OP_TRIGGER, NULL, NULL);
		op_fill(trigger_op(ops[i + 1]), .uid = -1, .job = triggered, .revision = 1, .now = T0, .bytes_limit = INT64_C(1) << 30);
	}
	spend(s, ops, ELEMENTS(ops), BUDGET_CHANGE);
	for (size_t i = 0; i < ELEMENTS(ops); i++) {
		assert_true(ops[i]->ok);
		op_free(ops[i]);
	}
	assert_counts_true(s);
}

/* ---- reads that are sent together ---- */

static struct db_ops counting;
static size_t prefetched;

static bool prefetch_counted(struct db *db, int query, struct err *e)
{
	prefetched++;
	return db_postgres_ops.prefetch(db, query, e);
}

/* The reads that one batch sends together. Frees the operations. */
static size_t reads_of_batch(struct store *s, struct op **ops, size_t n)
{
	prefetched = 0;
	apply_all(s, ops, n);
	for (size_t i = 0; i < n; i++) {
		assert_true(ops[i]->ok);
		op_free(ops[i]);
	}
	return prefetched;
}

static struct op *op_trigger_at(int64_t job, usec_t now)
{
	struct op *op = op_new(OP_TRIGGER, NULL, NULL);

	op_fill(trigger_op(op), .uid = -1, .job = job, .revision = 1, .now = now);
	return op;
}

static struct op *op_cancel_run(int64_t id)
{
	struct op *op = op_new(OP_RUN_CANCEL, NULL, NULL);

	op_fill(run_cancel_op(op), .uid = -1, .id = id, .now = T0 + USEC_SEC);
	return op;
}

/* Each operation discards the reads of those behind it. */
static void reads_of_many_operations_on_one_job_grow_with_their_number(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[200];
	int64_t job = add_due(s, NULL, T0 + USEC_HOUR);
	size_t one;

	counting = db_postgres_ops;
	counting.prefetch = prefetch_counted;
	s->db->ops = &counting;
	ops[0] = op_trigger_at(job, T0);
	one = reads_of_batch(s, ops, 1);
	assert_true(one > 1);
	for (size_t i = 0; i < ELEMENTS(ops); i++)
		ops[i] = op_trigger_at(job, T0 + (usec_t)i + 1);
	assert_in_range(reads_of_batch(s, ops, ELEMENTS(ops)), 1, one * ELEMENTS(ops));
	ops[0] = op_cancel_run(1);
	one = reads_of_batch(s, ops, 1);
	for (size_t i = 0; i < ELEMENTS(ops); i++)
		ops[i] = op_cancel_run((int64_t)i + 2);
	assert_in_range(reads_of_batch(s, ops, ELEMENTS(ops)), 1, 3 * one * ELEMENTS(ops));
	assert_counts_true(s);
}

static void the_leader_stays_within_its_budget(void **state)
{
	struct store *s = store_of(state);

	for (int round = 0; round < 4; round++) {
		AUTO(op) *lease = op_new(OP_LEASE, NULL, NULL);
		AUTO(op) *lead = op_new(OP_LEAD, NULL, NULL);

		op_fill(lease_op(lease), .node = NODE, .name = "one", .ttl = USEC_MIN, .stands = true, .guarded = true, .at = T0);
		assert_true(apply_one(s, lease));
		if (!lease_op(lease)->leads)
			continue;
		op_fill(leader_op(lead), .node = NODE, .term = lease_op(lease)->term, .now = T0);
		spend_one(s, lead, round < 3 ? 9 : BUDGET_LEAD); /* the first time it assigns the segments */
	}
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(the_leader_stays_within_its_budget),
	STORE_TEST(an_addition_stays_within_its_budget),
	STORE_TEST(an_addition_with_a_name_stays_within_its_budget),
	STORE_TEST(a_plan_stays_within_its_budget),
	STORE_TEST(the_life_of_a_run_stays_within_its_budget),
	STORE_TEST(a_change_stays_within_its_budget),
	STORE_TEST(a_pause_and_its_end_stay_within_their_budgets),
	STORE_TEST(the_cancellation_of_a_run_stays_within_its_budget),
	STORE_TEST(changes_of_several_jobs_share_their_round_trips),
	STORE_TEST(reads_of_many_operations_on_one_job_grow_with_their_number),
};
const struct suite_part store_round_trips_part = {tests, ELEMENTS(tests)};
