/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of queues and the limits of owners. */
#include "base/text.h"
#include "store/limit.h"
#include "store/ops/job/jobs.h"
#include "store/ops/limits.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/read/list/list_limits.h"
#include "unit/store/store_suite.h"
#include <string.h>

static struct op *op_limit(enum op_kind kind, enum limit_scope scope, const char *key)
{
	struct op *op = op_new(kind, NULL, NULL);

	op_fill(limit_op(op), .scope = scope, .key = key);
	return op;
}

static void make_queue(struct store *s, const char *name)
{
	AUTO(op) *op = op_limit(OP_LIMIT_SET, LIMIT_QUEUE, name);

	limit_op(op)->be = LIMIT_BE_NEW;
	assert_true(apply_one(s, op));
	assert_true(limit_op(op)->created);
}

static bool add_to(struct store *s, const char *queue, struct err *ret)
{
	AUTO(op) *op = op_add(NULL, NULL, NULL);

	job_add_op(op)->job.queue = queue;
	if (apply_one(s, op))
		return true;
	*ret = op->err;
	return false;
}

static void the_default_queue_is_there_and_stays(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(limit_list) all = {};
	AUTO(op) *removal = op_limit(OP_LIMIT_RM, LIMIT_QUEUE, "default");
	struct err e = {};

	assert_true(list_limits_read(s, LIMIT_QUEUE, NULL, &all, &e));
	assert_int_equal(all.n, 1);
	assert_string_equal(all.v[0].key, "default");
	assert_int_equal(all.v[0].weight, LIMIT_WEIGHT);
	assert_false(apply_one(s, removal));
	assert_int_equal(removal->err.kind, ERR_CONFLICT);
}

static void limits_that_are_not_given_stay_unchanged(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_limit(OP_LIMIT_SET, LIMIT_QUEUE, "night");
	AUTO(op) *second = op_limit(OP_LIMIT_SET, LIMIT_QUEUE, "night");
	AUTO(op) *third = op_limit(OP_LIMIT_SET, LIMIT_QUEUE, "night");
	AUTO_DONE(limit_list) all = {};
	struct err e = {};

	limit_op(first)->running_given = limit_op(first)->rate_given = true;
	limit_op(first)->running = 2;
	limit_op(first)->rate = (struct rate){.n = 10, .per = USEC_MIN, .burst = 3};
	assert_true(apply_one(s, first));
	assert_true(limit_op(first)->created);
	limit_op(second)->weight_given = true;
	limit_op(second)->weight = 300;
	assert_true(apply_one(s, second));
	assert_false(limit_op(second)->created);
	assert_true(apply_one(s, third));
	assert_true(list_limits_read(s, LIMIT_QUEUE, "night", &all, &e));
	assert_int_equal(all.n, 1);
	assert_int_equal(all.v[0].running, 2);
	assert_int_equal(all.v[0].weight, 300);
	assert_int_equal(all.v[0].rate.n, 10);
	assert_int_equal(all.v[0].rate.per, USEC_MIN);
	assert_int_equal(all.v[0].rate.burst, 3);
}

static void a_queue_is_made_once_and_changed_only_when_there(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *again = op_limit(OP_LIMIT_SET, LIMIT_QUEUE, "night");
	AUTO(op) *other = op_limit(OP_LIMIT_SET, LIMIT_QUEUE, "nihgt");

	make_queue(s, "night");
	limit_op(again)->be = LIMIT_BE_NEW;
	assert_false(apply_one(s, again));
	assert_int_equal(again->err.kind, ERR_CONFLICT);
	limit_op(other)->be = LIMIT_BE_THERE;
	assert_false(apply_one(s, other));
	assert_int_equal(other->err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(other->err.msg, "did you mean 'night'"));
}

static void a_job_for_a_missing_queue_is_refused(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *bulk = op_new(OP_JOB_BULK, NULL, NULL);
	AUTO(op) *model = op_add(NULL, NULL, NULL);
	struct job_new trial = job_add_op(model)->job;
	struct err e = {};

	make_queue(s, "night");
	assert_true(add_to(s, "night", &e));
	assert_true(add_to(s, "default", &e));
	assert_false(add_to(s, "nihgt", &e));
	assert_int_equal(e.kind, ERR_INVALID);
	assert_string_equal(e.field, "queue");
	assert_non_null(strstr(e.msg, "did you mean 'night'"));
	assert_non_null(strstr(e.msg, "jobctl queue add nihgt"));
	trial.queue = "nihgt";
	assert_false(job_dry_run(s, &trial, &e));
	assert_string_equal(e.field, "queue");
	job_bulk_op(bulk)->v = xcalloc(3, sizeof(*job_bulk_op(bulk)->v));
	job_bulk_op(bulk)->n = 3;
	for (size_t i = 0; i < 3; i++)
		job_bulk_op(bulk)->v[i] = job_add_op(model)->job;
	job_bulk_op(bulk)->v[0].queue = job_bulk_op(bulk)->v[1].queue = "night";
	job_bulk_op(bulk)->v[2].queue = "day";
	assert_false(apply_one(s, bulk));
	assert_int_equal(job_bulk_op(bulk)->failed, 2);
	assert_int_equal(bulk->err.kind, ERR_INVALID);
	assert_counts_true(s);
}

static void a_submission_known_by_its_key_outlives_its_queue(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add(NULL, "k", NULL);
	AUTO(op) *again = op_add(NULL, "k", NULL);
	AUTO(op) *removal = op_limit(OP_LIMIT_RM, LIMIT_QUEUE, "night");
	AUTO(run) *run = NULL;

	make_queue(s, "night");
	job_add_op(first)->job.queue = job_add_op(again)->job.queue = "night";
	assert_true(apply_one(s, first));
	run = claim_one(s, T0);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 9);
	assert_true(apply_one(s, removal));
	assert_true(apply_one(s, again));
	assert_true(job_add_op(again)->job.existed);
	assert_int_equal(job_add_op(again)->job.id, job_add_op(first)->job.id);
}

static void a_queue_in_use_is_not_removed(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *early = op_limit(OP_LIMIT_RM, LIMIT_QUEUE, "night");
	AUTO(op) *late = op_limit(OP_LIMIT_RM, LIMIT_QUEUE, "night");
	AUTO(op) *gone = op_limit(OP_LIMIT_RM, LIMIT_QUEUE, "night");
	AUTO(op) *adding = op_add(NULL, NULL, NULL);
	AUTO(op) *idle = op_add(NULL, NULL, NULL);
	AUTO(op) *meanwhile = op_limit(OP_LIMIT_RM, LIMIT_QUEUE, "quiet");
	struct op *together[] = {adding, early};
	AUTO(run) *run = NULL;
	struct err e = {};

	make_queue(s, "quiet");
	job_add_op(idle)->job.queue = "quiet";
	job_add_op(idle)->job.run_at = 0;
	job_add_op(idle)->job.next_slot = T0 + USEC_DAY;
	assert_true(apply_one(s, idle));
	assert_false(apply_one(s, meanwhile)); /* no run waits yet */
	make_queue(s, "night");
	job_add_op(adding)->job.queue = "night";
	apply_all(s, together, 2); /* the job was added first; its counter is not written yet */
	assert_true(adding->ok);
	assert_false(early->ok);
	assert_int_equal(early->err.kind, ERR_CONFLICT);
	assert_non_null(strstr(early->err.msg, "1 job, 1 run "));
	run = claim_one(s, T0);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 9);
	assert_true(apply_one(s, late));
	assert_false(apply_one(s, gone));
	assert_int_equal(gone->err.kind, ERR_NOT_FOUND);
	assert_false(add_to(s, "night", &e));
}

static void queues_are_shown_with_what_they_hold(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(limit_list) one = {};
	AUTO(op) *claim = op_claim(1, T0);
	struct err e = {};

	make_queue(s, "night");
	for (int i = 0; i < 3; i++)
		assert_true(add_to(s, "night", &e));
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	assert_true(list_limits_read(s, LIMIT_QUEUE, "night", &one, &e));
	assert_int_equal(one.v[0].weight, LIMIT_WEIGHT);
	assert_int_equal(one.v[0].jobs, 3);
	assert_int_equal(one.v[0].queued, 2);
	assert_int_equal(one.v[0].active, 1);
}

static void an_owner_has_limits_until_they_are_removed(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *set = op_limit(OP_LIMIT_SET, LIMIT_OWNER, "1000");
	AUTO(op) *removal = op_limit(OP_LIMIT_RM, LIMIT_OWNER, "1000");
	AUTO(op) *gone = op_limit(OP_LIMIT_RM, LIMIT_OWNER, "1000");
	AUTO_DONE(limit_list) all = {};
	AUTO_DONE(limit_list) none = {};
	struct err e = {};

	add_job(s, "a");
	limit_op(set)->running_given = true;
	limit_op(set)->running = 4;
	assert_true(apply_one(s, set));
	assert_true(list_limits_read(s, LIMIT_OWNER, NULL, &all, &e));
	assert_int_equal(all.n, 1);
	assert_string_equal(all.v[0].key, "1000");
	assert_int_equal(all.v[0].running, 4);
	assert_int_equal(all.v[0].jobs, 1);
	assert_int_equal(all.v[0].queued, 1);
	assert_true(apply_one(s, removal));
	assert_false(apply_one(s, gone));
	assert_int_equal(gone->err.kind, ERR_NOT_FOUND);
	assert_true(list_limits_read(s, LIMIT_OWNER, NULL, &none, &e));
	assert_int_equal(none.n, 0);
	assert_false(list_limits_read(s, LIMIT_OWNER, "1000", &none, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(the_default_queue_is_there_and_stays),
	STORE_TEST(limits_that_are_not_given_stay_unchanged),
	STORE_TEST(a_queue_is_made_once_and_changed_only_when_there),
	STORE_TEST(a_job_for_a_missing_queue_is_refused),
	STORE_TEST(a_submission_known_by_its_key_outlives_its_queue),
	STORE_TEST(a_queue_in_use_is_not_removed),
	STORE_TEST(queues_are_shown_with_what_they_hold),
	STORE_TEST(an_owner_has_limits_until_they_are_removed),
};
const struct suite_part store_limits_part = {tests, ELEMENTS(tests)};
