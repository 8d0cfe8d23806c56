/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of retries, dead letters and jobs paused by an exit code. */
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/ops/run/dead_letters.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_runs.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <stdio.h>
#include <string.h>

/* The end of a failed attempt, with the decision about the run. */
static struct op *op_failed(const struct run *r, enum run_state becomes, usec_t due_at, usec_t at)
{
	struct op *op = op_ended(r, ATTEMPT_FAILED, at);

	run_ended_op(op)->state = becomes;
	run_ended_op(op)->due_at = due_at;
	run_ended_op(op)->failure = true;
	snprintf(run_ended_op(op)->reason, sizeof(run_ended_op(op)->reason), "retry 1 of 4 after exit code 1");
	return op;
}

/* A job whose only run is a dead letter since 'at'; returns the run. */
static int64_t bury(struct store *s, const char *name, uint32_t uid, usec_t at, int64_t *ret_job)
{
	AUTO(op) *add = op_add(name, NULL, NULL), *end = NULL;
	AUTO(run) *r = NULL;

	job_add_op(add)->job.uid = uid;
	assert_true(apply_one(s, add));
	r = claim_one(s, T0);
	assert_non_null(r);
	end = op_failed(r, RUN_FAILED, 0, at);
	run_ended_op(end)->dead = true;
	assert_true(apply_one(s, end));
	if (ret_job)
		*ret_job = job_add_op(add)->job.id;
	return r->id;
}

static struct op *op_dead(enum op_kind kind, int64_t id)
{
	struct op *op = op_new(kind, NULL, NULL);

	op_fill(dead_letters_op(op), .uid = -1, .id = id, .limit = 100, .now = T0 + 500);
	return op;
}

static size_t dead_count(struct store *s, int64_t uid, int64_t job)
{
	struct run_filter f = {.uid = uid, .job = job, .dead = true, .limit = 3};
	size_t n = 0;
	usec_t last = USEC_NEVER;

	do {
		AUTO_DONE(run_list) page = {};
		struct err e = {};

		if (!list_runs_page(s, &f, &page, &e))
			fail_msg("%s", e.msg);
		for (size_t i = 0; i < page.n; i++, n++) {
			assert_true(page.v[i]->dead_at != 0 && page.v[i]->dead_at <= last);
			last = page.v[i]->dead_at;
		}
		f.before = page.next;
	} while (f.before);
	return n;
}

static void a_failed_attempt_waits_for_its_retry_and_is_counted(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_job(s, "a");
	AUTO(run) *first = claim_one(s, T0), *waiting = NULL, *second = NULL, *done = NULL;
	AUTO(job) *j = NULL;
	AUTO(op) *end = op_failed(first, RUN_QUEUED, T0 + USEC_MIN, T0 + 100);

	start_run(s, first, T0 + 20);
	assert_true(apply_one(s, end));
	waiting = get_run(s, first->id);
	assert_int_equal(waiting->state, RUN_QUEUED);
	assert_int_equal(waiting->attempt, 1);
	assert_int_equal(waiting->failures, 1);
	assert_int_equal(waiting->lost, 0);
	assert_true(waiting->due_at == T0 + USEC_MIN);
	assert_true(waiting->first_start == T0 + 20);
	assert_true(waiting->dead_at == 0);
	assert_string_equal(waiting->reason, "retry 1 of 4 after exit code 1");
	j = get_job(s, job);
	assert_true(j->next_slot == T0 + USEC_MIN);
	assert_null(claim_one(s, T0 + USEC_MIN - 1));
	second = claim_one(s, T0 + USEC_MIN);
	assert_non_null(second);
	assert_int_equal(second->id, first->id);
	end_run(s, second, ATTEMPT_SUCCEEDED, T0 + USEC_MIN + 50);
	done = get_run(s, first->id);
	assert_int_equal(done->state, RUN_SUCCEEDED);
	assert_int_equal(done->attempt, 2);
	assert_int_equal(done->failures, 1);
	assert_true(done->first_start == T0 + 20);
	assert_counts_true(s);
}

static void the_first_start_is_known_from_the_end_alone(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *r = NULL, *first = NULL, *again = NULL, *second = NULL;
	AUTO(op) *never = NULL, *end = NULL;

	add_job(s, "a");
	r = claim_one(s, T0);
	never = op_failed(r, RUN_QUEUED, T0, T0 + 5);
	run_ended_op(never)->attempt.outcome = ATTEMPT_NOT_STARTED;
	assert_true(apply_one(s, never));
	again = claim_one(s, T0 + 10);
	assert_true(again->first_start == 0);
	end = op_failed(again, RUN_QUEUED, T0 + 20, T0 + 100);
	assert_true(apply_one(s, end));
	first = get_run(s, r->id);
	assert_true(first->first_start == T0 + 90);
	second = claim_one(s, T0 + 200);
	start_run(s, second, T0 + 210);
	run_free(first);
	first = get_run(s, r->id);
	assert_true(first->first_start == T0 + 90);
}

static void a_dead_letter_is_listed_until_it_is_purged(void **state)
{
	struct fixture *f = *state;
	int64_t run = bury(f->store, "a", 1000, T0 + 50, NULL);
	AUTO(op) *purge = op_dead(OP_DEAD_PURGE, run), *again = op_dead(OP_DEAD_PURGE, run);
	AUTO(run) *r = NULL;

	reopen(f);
	assert_int_equal(dead_count(f->store, -1, 0), 1);
	assert_true(apply_one(f->store, purge));
	assert_int_equal(dead_letters_op(purge)->runs.n, 1);
	assert_int_equal(dead_count(f->store, -1, 0), 0);
	r = get_run(f->store, run);
	assert_int_equal(r->state, RUN_FAILED);
	assert_true(r->dead_at == 0);
	assert_int_equal(r->failures, 1);
	assert_false(apply_one(f->store, again));
	assert_int_equal(again->err.kind, ERR_CONFLICT);
	assert_counts_true(f->store);
}

static void a_dead_letter_tried_again_is_the_same_run_and_opens_its_finished_job(void **state)
{
	struct store *s = store_of(state);
	int64_t job, run = bury(s, "a", 1000, T0 + 50, &job);
	AUTO(op) *retry = op_dead(OP_DEAD_RETRY, run);
	AUTO(run) *r = NULL;
	AUTO(job) *before = get_job(s, job), *open = NULL, *after = NULL;

	assert_int_equal(before->state, JOB_FINISHED);
	assert_true(apply_one(s, retry));
	assert_int_equal(dead_letters_op(retry)->runs.n, 1);
	open = get_job(s, job);
	assert_int_equal(open->state, JOB_ACTIVE);
	assert_int_equal(dead_count(s, -1, 0), 0);
	assert_counts_true(s);
	r = claim_one(s, T0 + 500);
	assert_non_null(r);
	assert_int_equal(r->id, run);
	assert_int_equal(r->attempt, 1);
	assert_int_equal(r->failures, 0);
	assert_true(r->first_start == 0);
	assert_int_equal(r->exit_code, -1);
	end_run(s, r, ATTEMPT_SUCCEEDED, T0 + 600);
	after = get_job(s, job);
	assert_int_equal(after->state, JOB_FINISHED);
	assert_counts_true(s);
}

static void a_dead_letter_of_a_job_that_was_ended_is_not_tried_again(void **state)
{
	static const struct {
		enum op_kind end;
		const char *word;
	} cases[] = {{OP_JOB_CANCEL, "cancelled"}, {OP_JOB_REMOVE, "removed"}};
	struct store *s = store_of(state);

	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		AUTO(op) *add = op_add(NULL, NULL, NULL), *end = NULL, *gone = NULL, *retry = NULL, *many = NULL;
		AUTO(run) *r = NULL, *still = NULL;

		job_add_op(add)->job.next_slot = T0 + USEC_DAY; /* so that the job does not finish */
		assert_true(apply_one(s, add));
		r = claim_one(s, T0);
		end = op_failed(r, RUN_FAILED, 0, T0 + 50);
		run_ended_op(end)->dead = true;
		assert_true(apply_one(s, end));
		gone = op_job_cancel(cases[i].end, job_add_op(add)->job.id);
		assert_true(apply_one(s, gone));
		retry = op_dead(OP_DEAD_RETRY, r->id);
		assert_false(apply_one(s, retry));
		assert_int_equal(retry->err.kind, ERR_CONFLICT);
		assert_non_null(strstr(retry->err.msg, cases[i].word));
		still = get_run(s, r->id);
		assert_int_equal(still->state, RUN_FAILED);
		assert_true(still->dead_at != 0);
		many = op_dead(OP_DEAD_RETRY, 0);
		dead_letters_op(many)->job = job_add_op(add)->job.id;
		assert_true(apply_one(s, many));
		assert_int_equal(dead_letters_op(many)->runs.n, 0);
		assert_int_equal(dead_letters_op(many)->refused, 1);
	}
	assert_counts_true(s);
}

static void a_name_that_went_to_another_job_keeps_a_dead_letter_where_it_is(void **state)
{
	struct store *s = store_of(state);
	int64_t run = bury(s, "a", 1000, T0 + 50, NULL);
	AUTO(op) *retry = op_dead(OP_DEAD_RETRY, run), *both = NULL;
	int64_t newer = bury(s, "a", 1000, T0 + 60, NULL);

	/* both jobs have finished: the first takes the name, the other one cannot */
	both = op_dead(OP_DEAD_RETRY, 0);
	assert_true(apply_one(s, both));
	assert_int_equal(dead_letters_op(both)->runs.n, 1);
	assert_int_equal(dead_letters_op(both)->runs.v[0]->id, run);
	assert_int_equal(dead_letters_op(both)->refused, 1);
	dead_letters_op(retry)->id = newer;
	assert_false(apply_one(s, retry));
	assert_non_null(strstr(retry->err.msg, "has its name now"));
	assert_counts_true(s);
}

static void many_are_tried_again_in_steps_by_what_they_are(void **state)
{
	struct store *s = store_of(state);
	enum { N = 23 };
	int64_t runs[N], job = 0, changed = 0;
	char name[16];
	int steps = 0;
	AUTO(op) *purge = op_dead(OP_DEAD_PURGE, 0), *late = op_dead(OP_DEAD_PURGE, 0);
	struct op_dead d = {.uid = 1000, .limit = 5, .now = T0 + 500};

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "j%d", i);
		runs[i] = bury(s, name, 1000 + (uint32_t)i % 2, T0 + 50 + i / 2 * 10, i == 7 ? &job : NULL);
	}
	assert_int_equal(dead_count(s, -1, 0), N);
	assert_int_equal(dead_count(s, 1001, 0), N / 2);
	assert_int_equal(dead_count(s, -1, job), 1);
	/* one job */
	dead_letters_op(purge)->job = job;
	assert_true(apply_one(s, purge));
	assert_int_equal(dead_letters_op(purge)->runs.n, 1);
	assert_int_equal(dead_letters_op(purge)->runs.v[0]->id, runs[7]);
	/* a range of time: the letters from T0 + 150 to before T0 + 160 are numbers 20 and 21 */
	dead_letters_op(late)->since = T0 + 150;
	dead_letters_op(late)->until = T0 + 160;
	assert_true(apply_one(s, late));
	assert_int_equal(dead_letters_op(late)->runs.n, 2);
	assert_int_equal(dead_letters_op(late)->runs.v[0]->id, runs[20]);
	/* one owner, in steps; runs of others are left out */
	do {
		AUTO(op) *op = op_new(OP_DEAD_RETRY, NULL, NULL);

		op_copy(dead_letters_op(op), d);
		assert_true(++steps < 20);
		assert_true(apply_one(s, op));
		for (size_t i = 0; i < dead_letters_op(op)->runs.n; i++)
			assert_int_equal(dead_letters_op(op)->runs.v[i]->uid, 1000);
		changed += (int64_t)dead_letters_op(op)->runs.n;
		d.after_at = dead_letters_op(op)->next_at;
		d.after = dead_letters_op(op)->next;
		if (!dead_letters_op(op)->more)
			break;
	} while (true);
	assert_true(steps > 2);
	assert_int_equal(changed, (N + 1) / 2 - 1);
	assert_int_equal(dead_count(s, 1000, 0), 0);
	assert_int_equal(dead_count(s, 1001, 0), N / 2 - 2);
	assert_counts_true(s);
}

static void a_foreign_dead_letter_is_no_run(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *retry = op_dead(OP_DEAD_RETRY, bury(s, "a", 1000, T0 + 50, NULL));

	dead_letters_op(retry)->uid = 1001;
	assert_false(apply_one(s, retry));
	assert_int_equal(retry->err.kind, ERR_NOT_FOUND);
	assert_int_equal(dead_count(s, -1, 0), 1);
}

static void an_exit_code_pauses_the_job_with_its_end(void **state)
{
	struct fixture *f = *state;
	AUTO(op) *add = op_add("a", NULL, NULL), *end = NULL;
	AUTO(run) *r = NULL;
	AUTO(job) *j = NULL;
	AUTO_DONE(buf) rows = {};

	job_add_op(add)->job.next_slot = T0 + USEC_DAY;
	assert_true(apply_one(f->store, add));
	r = claim_one(f->store, T0);
	end = op_failed(r, RUN_FAILED, 0, T0 + 50);
	run_ended_op(end)->pause = true;
	run_ended_op(end)->attempt.exit_code = 100;
	assert_true(apply_one(f->store, end));
	assert_true(run_ended_op(end)->job_paused);
	j = get_job(f->store, job_add_op(add)->job.id);
	assert_int_equal(j->state, JOB_PAUSED);
	assert_string_equal(j->reason, "exit code 100");
	assert_counts_true(f->store);
	store_free(STEAL(f->store));
	place_query(f->where, "SELECT by_uid, by_name, until FROM job_pauses", &rows);
	assert_non_null(strstr(rows.data, "-1"));
	assert_non_null(strstr(rows.data, "jobsched"));
	f->store = open_or_fail(f->where, false);
}

static void a_job_that_finished_with_its_run_is_not_paused(void **state)
{
	struct store *s = store_of(state);
	int64_t job = add_job(s, "a");
	AUTO(run) *r = claim_one(s, T0);
	AUTO(op) *end = op_failed(r, RUN_FAILED, 0, T0 + 50);
	AUTO(job) *j = NULL;

	run_ended_op(end)->pause = true;
	assert_true(apply_one(s, end));
	assert_false(run_ended_op(end)->job_paused);
	j = get_job(s, job);
	assert_int_equal(j->state, JOB_FINISHED);
	assert_counts_true(s);
}

static void a_job_whose_owner_is_gone_is_suspended_with_the_end_of_its_run(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add("a", NULL, NULL), *end = NULL, *resume = op_new(OP_RESUME, NULL, NULL);
	AUTO(run) *r = NULL;
	AUTO(job) *j = NULL, *again = NULL;

	job_add_op(add)->job.next_slot = T0 + USEC_DAY;
	assert_true(apply_one(s, add));
	r = claim_one(s, T0);
	end = op_failed(r, RUN_FAILED, 0, T0 + 50);
	run_ended_op(end)->attempt.outcome = ATTEMPT_DENIED;
	run_ended_op(end)->suspend = "no_such_user";
	assert_true(apply_one(s, end));
	j = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(j->state, JOB_SUSPENDED);
	assert_string_equal(j->reason, "no_such_user");
	assert_int_equal(j->next_slot, 0);
	assert_counts_true(s);
	op_fill(resume_op(resume), .uid = 1000, .job = j->id, .now = T0 + 60);
	assert_true(apply_one(s, resume));
	again = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(again->state, JOB_ACTIVE);
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_failed_attempt_waits_for_its_retry_and_is_counted),
	STORE_TEST(the_first_start_is_known_from_the_end_alone),
	STORE_TEST(a_dead_letter_is_listed_until_it_is_purged),
	STORE_TEST(a_dead_letter_tried_again_is_the_same_run_and_opens_its_finished_job),
	STORE_TEST(a_dead_letter_of_a_job_that_was_ended_is_not_tried_again),
	STORE_TEST(a_name_that_went_to_another_job_keeps_a_dead_letter_where_it_is),
	STORE_TEST(many_are_tried_again_in_steps_by_what_they_are),
	STORE_TEST(a_foreign_dead_letter_is_no_run),
	STORE_TEST(an_exit_code_pauses_the_job_with_its_end),
	STORE_TEST(a_job_that_finished_with_its_run_is_not_paused),
	STORE_TEST(a_job_whose_owner_is_gone_is_suspended_with_the_end_of_its_run),
};
const struct suite_part store_dead_part = {tests, ELEMENTS(tests)};
