/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of retention: small steps delete the same rows as one complete scan. */
#include "base/text.h"
#include "store/counters.h"
#include "store/lists.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/retention.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_runs.h"
#include "store/read/prune_candidates.h"
#include "store/read/single.h"
#include "store/row_ids.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/tx.h"
#include "unit/store/store_suite.h"
#include <string.h>

#define DAY USEC_DAY
static const struct prune_rule rule = {.age = 30 * DAY, .runs = 5, .dead_age = 90 * DAY};

/* 'n' ended runs of a job, 'step' apart, the first at 'first'. */
static void make_runs_of(struct store *s, int64_t uid, int64_t job, size_t n, usec_t first, usec_t step)
{
	int64_t ids[2000];
	AUTO_SET set = {};
	AUTO_TX tx = {};
	struct err e = {};

	assert_true(n <= ELEMENTS(ids) && tx_begin(&tx, s, true, &e) && row_ids_take(s, Q_RUN_IDS, n, ids, &e));
	for (size_t i = 0; i < n; i++)
		runs_describe(&set, &(struct run_new){.id = ids[i], .job = job, .uid = uid, .state = RUN_SKIPPED,
			.reason = "missed", .queue = QUEUE_DEFAULT, .slot = first + (usec_t)i * step, .due_at = first, .now = first,
			.revision = 1});
	if (!runs_insert(s, &set, NULL, &e) || !counters_write(s, &e) || !tx_commit(&tx, &e))
		fail_msg("%s", e.msg);
}

static void make_runs(struct store *s, int64_t job, size_t n, usec_t first, usec_t step)
{
	make_runs_of(s, 1000, job, n, first, step);
}

static int64_t add_recurring(struct store *s, const char *name)
{
	AUTO(op) *add = op_add(name, NULL, NULL);

	job_add_op(add)->job.run_at = 0;
	job_add_op(add)->job.next_slot = T0 + DAY;
	assert_true(apply_one(s, add));
	return job_add_op(add)->job.id;
}

struct total {
	int64_t runs, jobs, steps;
	size_t outputs;
};

static struct total prune_all(struct store *s, usec_t now)
{
	struct prune_pass pass = {};
	struct total t = {};
	struct err e = {};

	while (!pass.done) {
		AUTO_DONE(prune_candidates) list = {};
		AUTO(op) *op = op_new(OP_PRUNE, NULL, NULL);

		if (!prune_candidates_find(s, &rule, now, &pass, &list, &e))
			fail_msg("%s", e.msg);
		retention_prune_op(op)->list = &list;
		assert_true(apply_one(s, op));
		assert_int_equal(retention_prune_op(op)->runs, list.n_runs);
		t.runs += retention_prune_op(op)->runs;
		t.jobs += retention_prune_op(op)->jobs;
		t.outputs += retention_prune_op(op)->n_outputs;
		assert_true(++t.steps < 1000);
	}
	return t;
}

static int64_t runs_left(struct store *s, int64_t job)
{
	struct run_filter f = {.uid = -1, .job = job, .limit = 1000};
	struct run_list l = {};
	struct err e = {};
	int64_t n = 0;

	do {
		assert_true(list_runs_page(s, &f, &l, &e));
		n += (int64_t)l.n;
		f.before = l.next;
		run_list_done(&l);
	} while (f.before);
	return n;
}

static void a_live_job_keeps_thirty_days_or_so_many_whichever_is_more(void **state)
{
	struct store *s = store_of(state);
	int64_t dense = add_recurring(s, "dense"), sparse = add_recurring(s, "sparse"), young = add_recurring(s, "young");

	make_runs(s, dense, 50, T0 - 50 * DAY, DAY);       /* thirty of them younger than the limit */
	make_runs(s, sparse, 20, T0 - 2000 * DAY, 90 * DAY); /* all old: the newest five stay */
	make_runs(s, young, 40, T0 - DAY, USEC_MIN);
	assert_int_equal(prune_all(s, T0).runs, 20 + 15);
	assert_int_equal(runs_left(s, dense), 30);
	assert_int_equal(runs_left(s, sparse), 5);
	assert_int_equal(runs_left(s, young), 40);
	assert_counts_true(s);
	assert_int_equal(prune_all(s, T0).runs, 0);
}

static void small_steps_come_to_the_end(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_recurring(s, "busy"), other = add_recurring(s, "other");
	struct total t;

	make_runs(s, job, 2000, T0 - 300 * DAY, USEC_HOUR);
	make_runs(s, other, 700, T0 - 300 * DAY, USEC_HOUR);
	t = prune_all(s, T0);
	assert_int_equal(t.runs, 1995 + 695);
	assert_true(t.steps > 4);
	assert_counts_true(s);
}

/* A pass continues where the last one ended: runs that were kept because newer ones were missing are deleted with the next old run. */
static void kept_runs_are_deleted_when_newer_runs_exist(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_recurring(s, "slow");
	struct prune_pass pass = {};
	AUTO_DONE(prune_candidates) none = {};
	AUTO_DONE(prune_candidates) some = {};
	struct err e = {};

	make_runs(s, job, 5, T0 - 1000 * DAY, DAY);
	assert_true(prune_candidates_find(s, &rule, T0, &pass, &none, &e));
	assert_true(pass.done);
	assert_int_equal(none.n_runs, 0);
	make_runs(s, job, 6, T0 + DAY, DAY);
	pass.done = false;
	assert_true(prune_candidates_find(s, &rule, T0 + 100 * DAY, &pass, &some, &e));
	assert_int_equal(some.n_runs, 6);
}

static void an_ended_job_goes_with_all_that_belongs_to_it(void **state)
{
	struct fixture *f = *state;
	struct store *s = f->store;
	int64_t id = add_job(s, "once");
	AUTO(run) *r = claim_one(s, T0);
	AUTO(op) *end = op_ended(r, ATTEMPT_SUCCEEDED, T0 + 2);
	AUTO(job) *job = NULL;
	AUTO_DONE(buf) rows = {};
	struct store_sizes sizes;
	struct total t;

	run_ended_op(end)->attempt.output_bytes = 100;
	run_ended_op(end)->attempt.output_dropped = 30;
	assert_true(apply_one(s, end));
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_FINISHED);
	assert_true(store_sizes(s, &sizes, NULL));
	assert_int_equal(sizes.outputs, 70);
	place_query(f->where, "INSERT INTO buckets (scope, key, full_at) VALUES ('job', '1', 5), ('queue', '1', 5)", NULL);
	assert_int_equal(prune_all(s, T0 + 29 * DAY).jobs, 0);
	t = prune_all(s, T0 + 31 * DAY);
	assert_int_equal(t.jobs, 1);
	assert_int_equal(t.runs, 1);
	assert_int_equal(t.outputs, 1);
	assert_true(store_sizes(s, &sizes, NULL));
	assert_int_equal(sizes.outputs, 0);
	place_query(f->where, "SELECT count(*) FROM jobs", &rows);
	place_query(f->where, "SELECT count(*) FROM runs", &rows);
	place_query(f->where, "SELECT count(*) FROM attempts", &rows);
	place_query(f->where, "SELECT count(*) FROM job_tags", &rows);
	place_query(f->where, "SELECT scope FROM buckets", &rows);
	assert_string_equal(rows.data, "0|\n0|\n0|\n0|\nqueue|\n");
	assert_counts_true(s);
}

static void an_open_run_and_a_dead_letter_keep_their_job(void **state)
{
	struct fixture *f = *state;
	struct store *s = f->store;
	int64_t open = add_job(s, "open"), dead = add_job(s, "dead");
	AUTO(run) *first = claim_one(s, T0);
	AUTO(run) *second = claim_one(s, T0);
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, open);

	assert_int_equal(first->job, open);
	assert_true(apply_one(s, cancel));
	end_run(s, second, ATTEMPT_FAILED, T0 + 1);
	place_query(f->where, "UPDATE runs SET dead_at = 1800000000000001 WHERE ended_at <> 0", NULL);
	place_query(f->where, "INSERT INTO counters (node, what, state, queue, n) VALUES ('', 8, 0, '', 1)", NULL);
	assert_int_equal(prune_all(s, T0 + 60 * DAY).jobs, 0);
	end_run(s, first, ATTEMPT_SUCCEEDED, T0 + 5);
	assert_int_equal(prune_all(s, T0 + 60 * DAY).jobs, 1);
	assert_int_equal(runs_left(s, dead), 1);
	assert_int_equal(prune_all(s, T0 + 91 * DAY).jobs, 1);
	assert_counts_true(s);
}

/* Runs passes until no owner has history to delete; returns the last state of the pass. */
static struct prune_pass keep_budget(struct store *s, const struct owner_budget *b)
{
	struct prune_pass pass = {};
	struct err e = {};

	for (int steps = 0;; steps++) {
		AUTO_DONE(prune_candidates) list = {};
		AUTO(op) *op = op_new(OP_PRUNE, NULL, NULL);

		assert_true(steps < 100);
		assert_true(prune_candidates_next_owner(s, b, &pass, &e));
		if (!pass.has_owner)
			return pass;
		assert_true(prune_candidates_of_owner(s, &pass, &list, &e));
		retention_prune_op(op)->list = &list;
		assert_true(apply_one(s, op));
	}
}

static int64_t add_of(struct store *s, int64_t uid, const char *name, usec_t next_slot)
{
	AUTO(op) *op = op_due(name, next_slot);

	job_add_op(op)->job.uid = uid;
	assert_true(apply_one(s, op));
	return job_add_op(op)->job.id;
}

static void beyond_its_limit_an_owner_loses_its_oldest_runs_but_the_last_of_each_job(void **state)
{
	struct store *s = store_of(state);
	int64_t a = add_recurring(s, "a"), b = add_recurring(s, "b"), other = add_of(s, 1001, "c", T0 + DAY);

	make_runs(s, a, 300, T0 - DAY, USEC_MIN);
	make_runs(s, b, 1, T0 - 2 * DAY, USEC_MIN);
	make_runs_of(s, 1001, other, 3, T0 - 3 * DAY, USEC_MIN);
	assert_int_equal(keep_budget(s, &(struct owner_budget){.per_owner = 1000000}).n_spent, 0);
	assert_int_equal(runs_left(s, a), 300);
	assert_int_equal(keep_budget(s, &(struct owner_budget){.per_owner = 1000}).n_spent, 2);
	assert_int_equal(runs_left(s, a), 1);
	assert_int_equal(runs_left(s, b), 1);
	assert_int_equal(runs_left(s, other), 1);
	assert_counts_true(s);
}

static bool job_is_there(struct store *s, int64_t id)
{
	AUTO(job) *j = NULL;
	struct err e = {};

	return store_job_get(s, -1, id, &j, &e);
}

static void ended_and_removed_jobs_of_an_owner_beyond_its_limit_go(void **state)
{
	struct store *s = store_of(state);
	int64_t gone = add_of(s, 1000, "gone", T0 + DAY), once = add_job(s, "once"), keyed, live = add_of(s, 1000, "live", T0 + DAY);
	AUTO(op) *key = op_add("keyed", "k", NULL);
	AUTO(op) *rm = op_job_cancel(OP_JOB_REMOVE, gone);
	AUTO(op) *rm_keyed = NULL;
	AUTO(run) *r = NULL;

	job_add_op(key)->job.run_at = 0;
	job_add_op(key)->job.next_slot = T0 + DAY;
	assert_true(apply_one(s, key));
	keyed = job_add_op(key)->job.id;
	rm_keyed = op_job_cancel(OP_JOB_REMOVE, keyed);
	assert_true(apply_one(s, rm));
	assert_true(apply_one(s, rm_keyed));
	r = claim_one(s, T0);
	end_run(s, r, ATTEMPT_SUCCEEDED, T0 + 5);
	keep_budget(s, &(struct owner_budget){.per_owner = 1});
	assert_false(job_is_there(s, gone));
	assert_false(job_is_there(s, once));
	assert_true(job_is_there(s, keyed)); /* its key refers to this job for a while */
	assert_true(job_is_there(s, live));
	assert_counts_true(s);
}

static void over_the_budget_only_owners_beyond_an_equal_share_give(void **state)
{
	struct store *s = store_of(state);
	AUTO_TEXT large = xprintf("{\"command\":[\"true\"],\"stdin\":\"%0900000d\"}", 0);
	struct store_sizes sizes;
	int64_t mine, loud;
	struct err e = {};

	mine = add_of(s, 1001, "mine", T0 + DAY);
	make_runs_of(s, 1001, mine, 50, T0 - DAY, USEC_MIN);
	loud = add_of(s, 1002, "loud", T0 + DAY);
	make_runs_of(s, 1002, loud, 20, T0 - DAY, USEC_MIN);
	for (int i = 0; i < 5; i++) {
		AUTO(op) *op = op_add(NULL, NULL, large);

		job_add_op(op)->job.uid = 1002;
		job_add_op(op)->job.run_at = 0;
		job_add_op(op)->job.next_slot = T0 + DAY;
		assert_true(apply_one(s, op));
	}
	assert_true(store_sizes(s, &sizes, &e));
	if (!sizes.bytes)
		return; /* PostgreSQL has no budget */
	keep_budget(s, &(struct owner_budget){.store = 1 << 20});
	assert_int_equal(runs_left(s, mine), 50);
	assert_int_equal(runs_left(s, loud), 1);
	assert_counts_true(s);
}

static void output_can_go_before_its_run(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "loud");
	AUTO(run) *r = claim_one(s, T0);
	AUTO(op) *end = op_ended(r, ATTEMPT_SUCCEEDED, T0 + 2);
	AUTO(op) *forget = op_new(OP_FORGET, NULL, NULL);
	struct kept_output kept[4];
	struct store_sizes sizes;
	struct attempt_list attempts = {};
	size_t n;

	(void)id;
	run_ended_op(end)->attempt.output_bytes = 5000;
	assert_true(apply_one(s, end));
	assert_true(prune_candidates_outputs(s, 1000, 4, kept, &n, NULL));
	assert_int_equal(n, 1);
	assert_int_equal(kept[0].bytes, 5000);
	op_fill(retention_forget_op(forget), kept, n);
	assert_true(apply_one(s, forget));
	assert_true(prune_candidates_outputs(s, 1000, 4, kept, &n, NULL));
	assert_int_equal(n, 0);
	assert_true(store_sizes(s, &sizes, NULL));
	assert_int_equal(sizes.outputs, 0);
	assert_true(store_attempts(s, r->id, &attempts, NULL));
	assert_int_equal(attempts.v[0]->output_bytes, 5000);
	assert_int_equal(attempts.v[0]->output_dropped, 5000);
	attempt_list_done(&attempts);
}

/* Adds a run of this owner with this much output. */
static void write_as(struct store *s, int64_t uid, int64_t bytes, usec_t at)
{
	AUTO(op) *add = op_add(NULL, NULL, NULL), *end = NULL;
	AUTO(run) *r = NULL;

	job_add_op(add)->job.uid = uid;
	job_add_op(add)->job.owner = "somebody";
	job_add_op(add)->job.run_at = at;
	assert_true(apply_one(s, add));
	r = claim_one(s, at);
	assert_non_null(r);
	end = op_ended(r, ATTEMPT_SUCCEEDED, at + 2);
	run_ended_op(end)->attempt.output_bytes = bytes;
	assert_true(apply_one(s, end));
}

static void output_is_counted_by_owner_and_the_largest_owner_is_known(void **state)
{
	struct store *s = store_of(state);
	struct kept_output kept[4];
	struct store_sizes sizes;
	size_t n;

	write_as(s, 2001, 100, T0);
	write_as(s, 2002, 5000, T0 + 10);
	write_as(s, 2001, 200, T0 + 20);
	write_as(s, 2002, 6000, T0 + 30);
	assert_true(store_sizes(s, &sizes, NULL));
	assert_int_equal(sizes.outputs, 11300);
	assert_int_equal(sizes.most_uid, 2002);
	assert_int_equal(sizes.most, 11000);
	assert_int_equal(sizes.second, 300);
	assert_true(prune_candidates_outputs(s, 2002, 4, kept, &n, NULL));
	assert_int_equal(n, 2);
	assert_int_equal(kept[0].bytes, 5000);
	assert_int_equal(kept[0].uid, 2002);
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_live_job_keeps_thirty_days_or_so_many_whichever_is_more),
	STORE_TEST(small_steps_come_to_the_end),
	STORE_TEST(kept_runs_are_deleted_when_newer_runs_exist),
	STORE_TEST(an_ended_job_goes_with_all_that_belongs_to_it),
	STORE_TEST(an_open_run_and_a_dead_letter_keep_their_job),
	STORE_TEST(beyond_its_limit_an_owner_loses_its_oldest_runs_but_the_last_of_each_job),
	STORE_TEST(ended_and_removed_jobs_of_an_owner_beyond_its_limit_go),
	STORE_TEST(over_the_budget_only_owners_beyond_an_equal_share_give),
	STORE_TEST(output_is_counted_by_owner_and_the_largest_owner_is_known),
	STORE_TEST(output_can_go_before_its_run),
};
const struct suite_part store_prune_part = {tests, ELEMENTS(tests)};
