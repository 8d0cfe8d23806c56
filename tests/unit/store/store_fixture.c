/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for all store tests. */
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/jobs.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/runs.h"
#include "store/read/check.h"
#include "store/read/list/list_jobs.h"
#include "store/read/list/list_runs.h"
#include "store/read/single.h"
#include "store/store.h"
#include "unit/store/store_fixture.h"
#include <stdio.h>
#include <string.h>

struct store *open_or_fail(const char *where, bool read_only)
{
	struct db_options o = {.where = where, .read_only = read_only};
	struct store *s = NULL;
	struct err e = {};

	if (!store_open_with(fixture_ops, &o, &s, &e))
		fail_msg("open '%s': %s", where, e.msg);
	return s;
}

int fixture_setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	AUTO(op) *open = op_node_open(NODE, "one", SPAWNER);

	f->where = place_new();
	f->store = open_or_fail(f->where, false);
	assert_true(apply_one(f->store, open));
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	store_free(f->store);
	place_drop(f->where);
	free(f->where);
	free(f);
	return 0;
}

struct store *store_of(void **state)
{
	return ((struct fixture *)*state)->store;
}

const char *where_of(void **state)
{
	return ((struct fixture *)*state)->where;
}

void reopen(struct fixture *f)
{
	store_free(f->store);
	f->store = open_or_fail(f->where, false);
}

struct batch_wake apply_all(struct store *s, struct op **ops, size_t n)
{
	struct batch_wake wake = {};
	struct err e = {};

	if (!batch_apply(s, ops, n, &wake, &e))
		fail_msg("batch of %zu: %s", n, e.msg);
	return wake;
}

bool apply_one(struct store *s, struct op *op)
{
	apply_all(s, &op, 1);
	return op->ok;
}

struct op *op_add(const char *name, const char *key, const char *spec)
{
	struct op *op = op_new(OP_JOB_ADD, NULL, NULL);

	job_add_op(op)->job = (struct job_new){.uid = 1000, .owner = "ann", .name = name, .key = key,
		.spec = spec ? spec : "{\"command\":[\"true\"]}", .now = T0, .run_at = T0};
	return op;
}

struct op *op_due(const char *name, usec_t slot)
{
	struct op *op = op_add(name, NULL, NULL);

	job_add_op(op)->job.run_at = 0;
	job_add_op(op)->job.next_slot = slot;
	return op;
}

struct op *op_plan(plan_fn *fn, void *arg, usec_t horizon)
{
	struct op *op = op_new(OP_PLAN, NULL, NULL);

	op_fill(plan_op(op), .now = T0, .horizon = horizon, .limit = 100, .fn = fn, .fn_arg = arg);
	return op;
}

struct op *op_claim(size_t room, usec_t now)
{
	struct op *op = op_new(OP_CLAIM, NULL, NULL);

	op_fill(claim_op(op), .node = NODE, .now = now, .room = room);
	return op;
}

struct op *op_started(const struct run *r, usec_t at)
{
	struct op *op = op_new(OP_STARTED, NULL, NULL);

	op_fill(run_started_op(op), .node = NODE, .spawner = SPAWNER, .run = r->id, .fence = r->fence,
		.attempt = r->attempt + 1, .pid = 4711, .started_at = at, .queue = xstrdup(r->queue));
	return op;
}

struct op *op_ended(const struct run *r, enum attempt_outcome outcome, usec_t at)
{
	struct op *op = op_new(OP_ENDED, NULL, NULL);
	const struct judge_case c = {.outcome = outcome, .exit_code = outcome == ATTEMPT_SUCCEEDED ? 0 : 1,
		.cancel_asked = r->cancel_asked, .failures = r->failures, .lost = r->lost, .first_start = at - 10, .now = at};
	const struct retry_policy p = {.rerun_lost = true, .on_exit.action = {[0] = EXIT_OK, [1] = EXIT_RETRY}};
	struct judge_verdict v = judge_attempt(&p, &c);

	op_fill(run_ended_op(op), .node = NODE, .state = v.state, .due_at = v.due_at, .failure = v.failure,
		.lost = v.lost, .dead = v.dead, .pause = v.pause);
	memcpy(run_ended_op(op)->reason, v.reason, sizeof(v.reason));
	run_ended_op(op)->attempt = (struct attempt){.run = r->id, .number = r->attempt + 1, .fence = r->fence,
		.spawner = xstrdup(SPAWNER), .pid = 4711, .started_at = at - 10, .ended_at = at,
		.outcome = outcome, .exit_code = outcome == ATTEMPT_SUCCEEDED ? 0 : 1,
		.cpu_user = 5, .cpu_system = 6, .max_rss = 4096, .output_bytes = 12};
	return op;
}

struct op *op_job_cancel(enum op_kind kind, int64_t id)
{
	struct op *op = op_new(kind, NULL, NULL);

	op_fill(job_cancel_op(op), .uid = -1, .id = id, .now = T0 + 5);
	return op;
}

struct op *op_node_open(const char *node, const char *name, const char *spawner)
{
	struct op *op = op_new(OP_NODE_OPEN, NULL, NULL);

	op_fill(node_open_op(op), .node = node, .name = name, .spawner = spawner, .host = "here",
		.now = T0);
	return op;
}

int64_t add_job(struct store *s, const char *name)
{
	AUTO(op) *op = op_add(name, NULL, NULL);

	assert_true(apply_one(s, op));
	return job_add_op(op)->job.id;
}

int64_t add_due(struct store *s, const char *name, usec_t slot)
{
	AUTO(op) *op = op_due(name, slot);

	assert_true(apply_one(s, op));
	return job_add_op(op)->job.id;
}

void every_second(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	usec_t slot = due->slot, end = *(usec_t *)arg;

	(void)now;
	for (; slot <= horizon && slot <= end; slot += USEC_SEC)
		plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = slot, .slot_last = slot,
			.slot_count = 1, .due_at = slot});
	ret->next_slot = slot <= end ? slot : 0;
}

struct run *claim_one(struct store *s, usec_t now)
{
	AUTO(op) *op = op_claim(1, now);

	assert_true(apply_one(s, op));
	return claim_op(op)->claimed.n ? STEAL(claim_op(op)->claimed.v[0].run) : NULL;
}

struct run *get_run(struct store *s, int64_t id)
{
	struct run *r = NULL;
	struct err e = {};

	if (!store_run_get(s, -1, id, &r, &e))
		fail_msg("run %lld: %s", (long long)id, e.msg);
	return r;
}

struct job *get_job(struct store *s, int64_t id)
{
	struct job *j = NULL;
	struct err e = {};

	if (!store_job_get(s, -1, id, &j, &e))
		fail_msg("job %lld: %s", (long long)id, e.msg);
	return j;
}

void start_run(struct store *s, const struct run *r, usec_t at)
{
	AUTO(op) *op = op_started(r, at);

	assert_true(apply_one(s, op));
}

void end_run(struct store *s, const struct run *r, enum attempt_outcome outcome, usec_t at)
{
	AUTO(op) *op = op_ended(r, outcome, at);

	assert_true(apply_one(s, op));
	assert_false(run_ended_op(op)->stale);
}

static void count_jobs(struct store *s, struct store_counts *c)
{
	struct job_filter f = {.uid = -1, .states = ~0u, .limit = 100};

	do {
		AUTO_DONE(job_list) page = {};
		struct err e = {};

		if (!list_jobs_page(s, &f, &page, &e))
			fail_msg("%s", e.msg);
		for (size_t i = 0; i < page.n; i++)
			c->jobs[page.v[i]->state]++;
		f.after = page.next;
	} while (f.after);
}

static void count_runs(struct store *s, struct store_counts *c)
{
	struct run_filter f = {.uid = -1, .limit = 100};

	do {
		AUTO_DONE(run_list) page = {};
		struct err e = {};

		if (!list_runs_page(s, &f, &page, &e))
			fail_msg("%s", e.msg);
		for (size_t i = 0; i < page.n; i++)
			c->runs[page.v[i]->state]++;
		f.before = page.next;
	} while (f.before);
}

/* Uses the store's own check, which also compares the counters of owners and the bytes of output. */
static void assert_sound(struct store *s)
{
	AUTO_DONE(strv) problems = {};
	struct err e = {};

	if (!check_store(s, &problems, &e))
		fail_msg("%s", e.msg);
	if (problems.n > 0)
		fail_msg("%s", problems.v[0]);
}

void assert_counts_true(struct store *s)
{
	struct store_counts kept = {}, counted = {};
	struct err e = {};

	assert_true(store_counts(s, &kept, &e));
	count_jobs(s, &counted);
	count_runs(s, &counted);
	for (int i = 0; i < JOB_STATE_MAX; i++)
		assert_int_equal(kept.jobs[i], counted.jobs[i]);
	for (int i = 0; i < RUN_STATE_MAX; i++)
		assert_int_equal(kept.runs[i], counted.runs[i]);
	assert_sound(s);
}
