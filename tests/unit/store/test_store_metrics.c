/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the counts that metrics show. */
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/slot_outcome.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/run/dead_letters.h"
#include "store/ops/run/runs.h"
#include "store/read/metric_counts.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <stdio.h>

static void read_counts(struct store *s, enum metric_job_choice jobs, size_t max, struct metric_counts *ret)
{
	struct err e = {};

	if (!metric_counts_read(s, &(struct metric_counts_ask){.jobs = jobs, .jobs_max = max}, ret, &e))
		fail_msg("%s", e.msg);
}

static int64_t slots_of(struct store *s, enum run_state state, const char *reason)
{
	struct metric_counts c = {};
	int64_t n;

	read_counts(s, METRIC_JOBS_NONE, 0, &c);
	n = c.slots[slot_outcome_index(state, reason)];
	metric_counts_done(&c);
	return n;
}

static int64_t dead_of(struct store *s)
{
	struct metric_counts c = {};
	int64_t n;

	read_counts(s, METRIC_JOBS_NONE, 0, &c);
	n = c.dead;
	metric_counts_done(&c);
	return n;
}

static void run_once(struct store *s, const char *name, enum attempt_outcome outcome, bool dead)
{
	AUTO(op) *end = NULL;
	AUTO(run) *r = NULL;

	add_job(s, name);
	r = claim_one(s, T0);
	assert_non_null(r);
	end = op_ended(r, outcome, T0 + USEC_SEC);
	run_ended_op(end)->dead = dead;
	assert_true(apply_one(s, end));
}

static void a_new_store_has_no_slots_and_the_default_queue(void **state)
{
	struct store *s = store_of(state);
	struct metric_counts c = {};

	read_counts(s, METRIC_JOBS_ALL, 10, &c);
	for (size_t i = 0; i < slot_outcomes_count; i++)
		assert_int_equal(c.slots[i], 0);
	assert_int_equal(c.dead, 0);
	assert_int_equal(c.oldest_due, USEC_NEVER);
	assert_int_equal(c.n_jobs, 0);
	assert_int_equal(c.n_queues, 1);
	assert_string_equal(c.queues[0].name, JOB_QUEUE_DEFAULT);
	metric_counts_done(&c);
}

static void each_outcome_is_counted_once_with_its_reason(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *cancel = NULL;
	int64_t job;

	run_once(s, "good", ATTEMPT_SUCCEEDED, false);
	run_once(s, "bad", ATTEMPT_FAILED, false);
	run_once(s, "slow", ATTEMPT_TIMED_OUT, false);
	job = add_job(s, "never");
	cancel = op_job_cancel(OP_JOB_CANCEL, job);
	assert_true(apply_one(s, cancel));
	assert_int_equal(slots_of(s, RUN_SUCCEEDED, "none"), 1);
	assert_int_equal(slots_of(s, RUN_FAILED, "exit"), 1);
	assert_int_equal(slots_of(s, RUN_TIMED_OUT, "timeout"), 1);
	assert_int_equal(slots_of(s, RUN_CANCELLED, "job_cancelled"), 1);
	assert_counts_true(s);
}

static void a_run_that_is_queued_again_has_no_outcome_yet(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *end = NULL;
	AUTO(run) *r = NULL;

	add_job(s, "again");
	r = claim_one(s, T0);
	end = op_ended(r, ATTEMPT_FAILED, T0 + 1);
	run_ended_op(end)->state = RUN_QUEUED;
	run_ended_op(end)->due_at = T0 + USEC_HOUR;
	assert_true(apply_one(s, end));
	assert_int_equal(slots_of(s, RUN_FAILED, "exit"), 0);
}

static void dead_letters_are_counted_until_they_are_retried_or_purged(void **state)
{
	struct store *s = store_of(state);
	struct {
		enum op_kind kind;
		int64_t left;
	} steps[] = {{OP_DEAD_RETRY, 1}, {OP_DEAD_PURGE, 0}};

	run_once(s, "one", ATTEMPT_FAILED, true);
	run_once(s, "two", ATTEMPT_FAILED, true);
	assert_int_equal(dead_of(s), 2);
	for (size_t i = 0; i < ELEMENTS(steps); i++) {
		AUTO(op) *op = op_new(steps[i].kind, NULL, NULL);

		op_fill(dead_letters_op(op), .uid = -1, .id = (int64_t)i + 1, .limit = 100, .now = T0 + USEC_MIN);
		assert_true(apply_one(s, op));
		assert_int_equal(dead_of(s), steps[i].left);
		assert_counts_true(s);
	}
}

static void the_oldest_due_run_is_found(void **state)
{
	struct store *s = store_of(state);
	struct metric_counts c = {};

	add_job(s, "first");
	add_job(s, "second");
	read_counts(s, METRIC_JOBS_NONE, 0, &c);
	assert_true(c.oldest_due <= T0);
	assert_int_equal(c.queues[0].queued, 2);
	metric_counts_done(&c);
}

/* Adds a job with the tag of metrics whose results are kept. */
static void add_tagged(struct store *s, const char *name, int64_t uid)
{
	AUTO(op) *op = op_add(name, NULL, NULL);
	struct strv tags = {};

	strv_add(&tags, JOB_TAG_METRICS "=yes");
	job_add_op(op)->job.tags = &tags;
	job_add_op(op)->job.uid = uid;
	job_add_op(op)->job.policy.notifies = true;
	assert_true(apply_one(s, op));
	strv_done(&tags);
}

static void the_last_results_of_tagged_jobs_are_kept(void **state)
{
	struct store *s = store_of(state);
	struct metric_counts c = {};
	AUTO(run) *r = NULL;
	AUTO(op) *end = NULL;

	add_tagged(s, "tagged", 1);
	add_job(s, "plain");
	r = claim_one(s, T0);
	assert_string_equal(r->job_name, "tagged");
	start_run(s, r, T0 + USEC_SEC);
	end = op_ended(r, ATTEMPT_FAILED, T0 + 3 * USEC_SEC);
	run_ended_op(end)->attempt.started_at = T0 + USEC_SEC;
	run_ended_op(end)->state = RUN_FAILED;
	assert_true(apply_one(s, end));
	place_query(where_of(state), "UPDATE jobs SET state = 0 WHERE name = 'tagged'", NULL); /* it has finished */
	read_counts(s, METRIC_JOBS_TAGGED, 10, &c);
	assert_int_equal(c.n_jobs, 1);
	assert_string_equal(c.jobs[0].name, "tagged");
	assert_int_equal(c.jobs[0].failure_at, T0 + 3 * USEC_SEC);
	assert_int_equal(c.jobs[0].success_at, 0);
	assert_int_equal(c.jobs[0].took, 2 * USEC_SEC);
	metric_counts_done(&c);
	read_counts(s, METRIC_JOBS_NONE, 10, &c);
	assert_int_equal(c.n_jobs, 0);
	metric_counts_done(&c);
	read_counts(s, METRIC_JOBS_ALL, 10, &c);
	assert_int_equal(c.n_jobs, 2);
	metric_counts_done(&c);
}

static void one_owner_has_a_quarter_of_the_job_series(void **state)
{
	struct store *s = store_of(state);
	struct metric_counts c = {};
	char name[16];

	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "greedy-%d", i);
		add_tagged(s, name, 1);
	}
	add_tagged(s, "modest", 2);
	read_counts(s, METRIC_JOBS_TAGGED, 8, &c);
	assert_int_equal(c.n_jobs, 3);
	assert_string_equal(c.jobs[2].name, "modest");
	metric_counts_done(&c);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_new_store_has_no_slots_and_the_default_queue),
	STORE_TEST(each_outcome_is_counted_once_with_its_reason),
	STORE_TEST(a_run_that_is_queued_again_has_no_outcome_yet),
	STORE_TEST(dead_letters_are_counted_until_they_are_retried_or_purged),
	STORE_TEST(the_oldest_due_run_is_found),
	STORE_TEST(the_last_results_of_tagged_jobs_are_kept),
	STORE_TEST(one_owner_has_a_quarter_of_the_job_series),
};
const struct suite_part store_metrics_part = {tests, ELEMENTS(tests)};
