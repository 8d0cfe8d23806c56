/* SPDX-License-Identifier: Apache-2.0 */
/* The store suite: jobs that run after other jobs. */
#include "base/text.h"
#include "core/job/chain.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/lists.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_runs.h"
#include "unit/store/store_suite.h"

/* Adds a job that runs after up to two others; *ret is its number. */
static bool add_child(struct store *s, const char *name, const char *first, const char *second, enum chain_mode mode, int64_t *ret)
{
	AUTO(op) *add = op_add(name, NULL, NULL);
	AUTO_DONE(strv) after = {};
	bool ok;

	strv_add(&after, first);
	if (second)
		strv_add(&after, second);
	job_add_op(add)->job.after = &after;
	job_add_op(add)->job.after_mode = mode;
	job_add_op(add)->job.run_at = 0;
	job_add_op(add)->job.next_slot = USEC_NEVER;
	ok = apply_one(s, add);
	*ret = ok ? job_add_op(add)->job.id : 0;
	return ok;
}

static size_t runs_of(struct store *s, int64_t job, usec_t *ret_slot)
{
	AUTO_DONE(run_list) found = {};
	struct err e = {};

	assert_true(list_runs_page(s, &(struct run_filter){.uid = -1, .job = job, .limit = 9}, &found, &e));
	for (size_t i = 0; i < found.n; i++) {
		assert_int_equal(found.v[i]->kind, RUN_KIND_CHAIN);
		*ret_slot = found.v[i]->slot;
	}
	return found.n;
}

static void the_end_of_a_run_queues_one_run_of_each_child(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *r = NULL;
	AUTO(op) *retry = NULL, *again = NULL, *end = NULL, *repeated = NULL;
	int64_t good, bad;
	usec_t slot = 0;

	add_job(s, "a");
	assert_true(add_child(s, "good", "a", NULL, CHAIN_ALL_OF, &good));
	assert_true(add_child(s, "bad", "a:failure", NULL, CHAIN_ALL_OF, &bad));
	r = claim_one(s, T0);
	retry = op_ended(r, ATTEMPT_FAILED, T0 + 5);
	run_ended_op(retry)->state = RUN_QUEUED;
	run_ended_op(retry)->due_at = T0 + 6;
	assert_true(apply_one(s, retry));
	assert_int_equal(runs_of(s, good, &slot) + runs_of(s, bad, &slot), 0);
	run_free(r);
	r = claim_one(s, T0 + 10);
	end = op_ended(r, ATTEMPT_SUCCEEDED, T0 + 20);
	repeated = op_ended(r, ATTEMPT_SUCCEEDED, T0 + 20);
	assert_true(apply_one(s, end));
	assert_true(apply_one(s, repeated));
	assert_int_equal(runs_of(s, good, &slot), 1);
	assert_true(slot == r->slot);
	assert_int_equal(runs_of(s, bad, &slot), 0);
	assert_counts_true(s);
}

static void links_are_joined_by_slot(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *top = NULL, *first = NULL, *second = NULL;
	AUTO(op) *one = NULL, *two = NULL, *three = NULL;
	int64_t left, right, bottom, any;
	usec_t slot = 0;

	add_job(s, "top");
	assert_true(add_child(s, "left", "top", NULL, CHAIN_ALL_OF, &left));
	assert_true(add_child(s, "right", "top", NULL, CHAIN_ALL_OF, &right));
	assert_true(add_child(s, "bottom", "left", "right:any", CHAIN_ALL_OF, &bottom));
	assert_true(add_child(s, "any", "left", "right:any", CHAIN_ANY_OF, &any));
	top = claim_one(s, T0);
	one = op_ended(top, ATTEMPT_SUCCEEDED, T0 + 5);
	assert_true(apply_one(s, one));
	first = claim_one(s, T0 + 10);
	second = claim_one(s, T0 + 10);
	two = op_ended(first, ATTEMPT_SUCCEEDED, T0 + 20);
	assert_true(apply_one(s, two));
	assert_int_equal(runs_of(s, bottom, &slot), 0);
	assert_int_equal(runs_of(s, any, &slot), 1);
	three = op_ended(second, ATTEMPT_SUCCEEDED, T0 + 30);
	assert_true(apply_one(s, three));
	assert_int_equal(runs_of(s, bottom, &slot), 1);
	assert_true(slot == top->slot);
	assert_int_equal(runs_of(s, any, &slot), 1);
	assert_counts_true(s);
}

static void unknown_parents_and_cycles_are_refused(void **state)
{
	struct store *s = store_of(state);
	int64_t id;

	assert_false(add_child(s, "x", "nobody", NULL, CHAIN_ALL_OF, &id));
	assert_false(add_child(s, "x", "x", NULL, CHAIN_ALL_OF, &id));
	add_job(s, "a");
	assert_true(add_child(s, "b", "a", NULL, CHAIN_ALL_OF, &id));
	assert_true(add_child(s, "c", "b", NULL, CHAIN_ALL_OF, &id));
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(the_end_of_a_run_queues_one_run_of_each_child),
	STORE_TEST(links_are_joined_by_slot),
	STORE_TEST(unknown_parents_and_cycles_are_refused),
};
const struct suite_part store_chains_part = {tests, ELEMENTS(tests)};
