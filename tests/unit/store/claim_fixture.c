/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests of claims. */
#include "base/text.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/runs.h"
#include "unit/store/claim_fixture.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sql(void **state, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	assert_true(vsnprintf(text, sizeof(text), fmt, ap) < (int)sizeof(text));
	va_end(ap);
	place_query(where_of(state), text, NULL);
}

char *ask(void **state, const char *text)
{
	AUTO_DONE(buf) rows = {};

	buf_str(&rows, "");
	place_query(where_of(state), text, &rows);
	return xstrdup(rows.data ? rows.data : "");
}

static void plan_slots(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	const struct slots *w = arg;
	usec_t first = w->first ? w->first : T0, step = w->step ? w->step : USEC_SEC;

	(void)due;
	(void)now;
	(void)horizon;
	for (size_t i = 0; i < w->n; i++) {
		usec_t slot = first + (usec_t)i * step;

		plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = slot, .slot_last = slot,
			.slot_count = 1, .due_at = slot});
	}
	ret->policy = w->policy;
	ret->next_slot = w->next;
}

int64_t add_slots(struct store *s, const struct slots *w)
{
	AUTO(op) *add = op_add(NULL, NULL, w->spec);
	AUTO(op) *plan = op_new(OP_PLAN, NULL, NULL);

	job_add_op(add)->job.run_at = 0;
	job_add_op(add)->job.next_slot = 1; /* before any other job's */
	job_add_op(add)->job.queue = w->queue;
	job_add_op(add)->job.priority = w->priority;
	if (w->uid)
		job_add_op(add)->job.uid = w->uid;
	op_fill(plan_op(plan), .now = T0, .horizon = USEC_SEC, .limit = 1, .fn = plan_slots, .fn_arg = (void *)w);
	assert_true(apply_one(s, add));
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, w->n);
	return job_add_op(add)->job.id;
}

void claim_is(void **state, size_t room, usec_t now, const char *runs)
{
	AUTO(op) *op = op_claim(room, now);
	AUTO_DONE(buf) got = {};

	buf_str(&got, "");
	assert_true(apply_one(store_of(state), op));
	for (size_t i = 0; i < claim_op(op)->claimed.n; i++)
		buf_printf(&got, "%s%lld", i ? " " : "", (long long)claim_op(op)->claimed.v[i].run->id);
	assert_string_equal(got.data ? got.data : "", runs);
}

static void describe(struct buf *b, const struct run *r)
{
	bool held = r->state == RUN_QUEUED && r->hold != HOLD_NONE;

	buf_str(b, held ? "held" : run_state_name(r->state));
	if (r->reason && !(held && r->hold == HOLD_PERMIT))
		buf_printf(b, ":%s", r->reason);
}

void run_is(const struct run *r, const char *what)
{
	AUTO_DONE(buf) got = {};

	describe(&got, r);
	assert_string_equal(got.data, what);
}

void states_are(void **state, const char *all)
{
	AUTO_TEXT last = ask(state, "SELECT max(id) FROM runs");
	AUTO_DONE(buf) got = {};
	int64_t n = atoll(last);

	for (int64_t id = 1; id <= n; id++) {
		AUTO(run) *r = get_run(store_of(state), id);

		buf_str(&got, id > 1 ? " " : "");
		describe(&got, r);
	}
	assert_string_equal(got.data, all);
}

void end_by_number(struct store *s, int64_t run, enum attempt_outcome outcome, usec_t at)
{
	AUTO(run) *r = get_run(s, run);

	end_run(s, r, outcome, at);
}

void end_both(struct store *s, int64_t one, int64_t other, usec_t at)
{
	AUTO(run) *first = get_run(s, one);
	AUTO(run) *second = get_run(s, other);
	AUTO(op) *first_end = op_ended(first, ATTEMPT_SUCCEEDED, at);
	AUTO(op) *second_end = op_ended(second, ATTEMPT_SUCCEEDED, at);
	struct op *ops[] = {first_end, second_end};

	apply_all(s, ops, 2);
	assert_true(first_end->ok && second_end->ok);
}

void requeue(struct store *s, int64_t run, usec_t due_at)
{
	AUTO(run) *r = get_run(s, run);
	AUTO(op) *end = op_ended(r, ATTEMPT_FAILED, due_at - 1);

	run_ended_op(end)->state = RUN_QUEUED;
	run_ended_op(end)->due_at = due_at;
	snprintf(run_ended_op(end)->reason, sizeof(run_ended_op(end)->reason), "again");
	assert_true(apply_one(s, end));
	assert_int_equal(run_ended_op(end)->became, RUN_QUEUED);
}

void give_back(struct store *s, int64_t run, usec_t due_at)
{
	AUTO(run) *r = get_run(s, run);
	AUTO(op) *op = op_new(OP_GIVE_BACK, NULL, NULL);

	op_fill(run_give_back_op(op), .node = r->node, .run = run, .fence = r->fence, .due_at = due_at, .now = due_at);
	assert_true(apply_one(s, op));
}

void kept_is_true(void **state)
{
	AUTO_TEXT counted = ask(state, "SELECT uid, queue, count(*) FROM runs WHERE state IN (1, 2) "
		"GROUP BY uid, queue ORDER BY uid, queue");
	AUTO_TEXT kept = ask(state, "SELECT state, queue, sum(n) FROM counters WHERE what = 3 "
		"GROUP BY state, queue HAVING sum(n) <> 0 ORDER BY state, queue");
	AUTO_TEXT left = ask(state, "SELECT job, place, run FROM running_jobs WHERE NOT EXISTS "
		"(SELECT 1 FROM runs WHERE runs.id = running_jobs.run AND runs.ended_at = 0)");
	AUTO_TEXT stuck = ask(state, "SELECT id FROM runs WHERE state = 0 AND hold = 1 AND places > "
		"(SELECT count(*) FROM running_jobs WHERE running_jobs.job = runs.job) AND NOT EXISTS "
		"(SELECT 1 FROM runs AS free WHERE free.job = runs.job AND free.state = 0 AND free.hold = 0)");

	assert_string_equal(kept, counted);
	assert_string_equal(left, "");  /* no ended run has a permit */
	assert_string_equal(stuck, ""); /* no run waits for a free permit */
	assert_counts_true(store_of(state));
}
