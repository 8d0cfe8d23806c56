/* SPDX-License-Identifier: Apache-2.0 */
/* Operations for the tests of pauses and triggers. */
#include "store/lists.h"
#include "store/read/list/list_runs.h"
#include "unit/store/pause_fixture.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/run/triggers.h"

/* Adds a job with a queued run now and later slots. */
int64_t add_recurring(struct store *s, const char *name, const struct strv *tags)
{
	AUTO(op) *op = op_add(name, NULL, NULL);

	job_add_op(op)->job.next_slot = T0 + HOUR;
	job_add_op(op)->job.tags = tags;
	assert_true(apply_one(s, op));
	return job_add_op(op)->job.id;
}

struct op *op_pause(int64_t job, usec_t at, usec_t until)
{
	struct op *op = op_new(OP_PAUSE, NULL, NULL);

	op_fill(pause_op(op), .uid = -1, .job = job, .pause = {.by_uid = 7, .by_name = (char *)"eve",
		.reason = (char *)"works", .at = at, .until = until});
	return op;
}

struct op *op_scope(enum pause_scope scope, const char *key, int64_t uid, usec_t until)
{
	struct op *op = op_pause(0, T0, until);

	pause_op(op)->pause.scope = scope;
	pause_op(op)->pause.key = (char *)key;
	pause_op(op)->pause.uid = uid;
	return op;
}

struct op *op_resume(int64_t job, usec_t now)
{
	struct op *op = op_new(OP_RESUME, NULL, NULL);

	op_fill(resume_op(op), .uid = -1, .job = job, .now = now);
	return op;
}

struct op *op_unscope(enum pause_scope scope, const char *key, int64_t uid)
{
	struct op *op = op_resume(0, T0); /* so that no slot is inside the pause that ends */

	resume_op(op)->scope = scope;
	resume_op(op)->key = key;
	resume_op(op)->of_uid = uid;
	return op;
}

struct op *op_trigger(int64_t job, usec_t now)
{
	struct op *op = op_new(OP_TRIGGER, NULL, NULL);

	op_fill(trigger_op(op), .uid = -1, .job = job, .revision = 1, .now = now);
	return op;
}

bool pause_job(struct store *s, int64_t job, usec_t at, usec_t until)
{
	AUTO(op) *op = op_pause(job, at, until);

	return apply_one(s, op);
}

void put_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid)
{
	AUTO(op) *op = op_scope(scope, key, uid, 0);

	assert_true(apply_one(s, op));
}

size_t drop_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid)
{
	AUTO(op) *op = op_unscope(scope, key, uid);

	assert_true(apply_one(s, op));
	assert_true(resume_op(op)->found);
	return resume_op(op)->released;
}

enum job_state state_of(struct store *s, int64_t id)
{
	AUTO(job) *j = get_job(s, id);

	return j->state;
}

/* Claims, and checks the state and reason of this run afterwards. */
void assert_claimed(struct store *s, int64_t run, usec_t now, enum run_state state, const char *reason)
{
	AUTO(run) *started = claim_one(s, now);
	AUTO(run) *r = get_run(s, run);

	assert_int_equal(r->state, state);
	if (reason)
		assert_string_equal(r->reason, reason);
	assert_int_equal(started != NULL, state == RUN_CLAIMED);
	assert_counts_true(s);
}

int64_t only_run(struct store *s, int64_t job)
{
	struct run_filter f = {.uid = -1, .job = job, .limit = 10};
	AUTO_DONE(run_list) all = {};
	struct err e = {};

	assert_true(list_runs_page(s, &f, &all, &e));
	assert_int_equal(all.n, 1);
	return all.v[0]->id;
}
