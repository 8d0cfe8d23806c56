/* SPDX-License-Identifier: Apache-2.0 */
/* Turns due slots into queued runs. */
#include "store/ops/run/plans.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/job/job_rows.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op_private.h"
#include "store/ops/run/runs.h"
#include "store/row_ids.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"

#define OVERDUE_AGE (10 * USEC_SEC) /* a job with an older slot is overdue */
#define RUNS_MAX 5000          /* runs per transaction, exceeded by at most the runs of one job */

/* The rows that one round of planning writes. */
struct round {
	struct set runs, moves, drops, suspensions, ended;
	size_t jobs;
	size_t n_runs;
	struct due_row *rows; /* owned; n of them */
	size_t n;
};

/* A row of 'due', with the values that its runs inherit from the job. */
struct due_row {
	struct due_job due; /* its texts are owned here */
	char *name, *spec, *queue;
	int64_t uid;
	int64_t priority;
	bool sound;
	struct planned planned;
};

static void due_row_done(struct due_row *row)
{
	free(row->name);
	free(row->spec);
	free(row->queue);
	free(row->planned.runs);
}

static void round_done(struct round *r)
{
	for (size_t i = 0; i < r->n; i++)
		due_row_done(&r->rows[i]);
	free(r->rows);
	set_done(&r->runs);
	set_done(&r->moves);
	set_done(&r->drops);
	set_done(&r->suspensions);
	set_done(&r->ended);
}

/* False: the slot has changed. */
static bool due_row_read(struct query *q, struct due_row *row)
{
	struct due_job *due = &row->due;
	AUTO_TEXT owner = NULL;
	usec_t slot;

	row->uid = query_get_int(q);
	due->revision = query_get_int(q);
	row->priority = query_get_int(q);
	row->queue = query_get_copy(q);
	due->name = row->name = query_get_copy(q);
	owner = query_get_copy(q);
	due->spec = row->spec = query_get_copy(q);
	row->sound = (uint64_t)query_get_int(q) == row_digest(row->uid, owner, row->spec);
	due->created_at = query_get_int(q);
	slot = query_get_int(q);
	if (slot == 0 || slot == due->slot)
		return true;
	due_row_done(row);
	return false;
}

static bool take_rows(struct store *s, usec_t since, usec_t until, size_t limit, int64_t segments, struct round *r,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_TAKE, e);

	query_int(&q, since);
	query_int(&q, until);
	query_int(&q, (int64_t)limit);
	query_int(&q, segments);
	while (query_row(&q)) {
		struct due_row *row;

		r->rows = xgrow(r->rows, r->n, sizeof(*r->rows));
		row = &r->rows[r->n++];
		*row = (struct due_row){};
		row->due.job = query_get_int(&q);
		row->due.slot = query_get_int(&q);
	}
	return !q.failed;
}

/*
 * A row without a job is ignored. So is a row that another node has changed before this one locked
 * the job; it comes with a later round.
 */
static bool due_jobs_read(struct store *s, struct round *r, struct err *e)
{
	AUTO_SET jobs = {};
	AUTO_QUERY q = {};
	size_t kept = 0, i = 0;

	if (r->n == 0)
		return true;
	for (size_t k = 0; k < r->n; k++)
		set_id(&jobs, r->rows[k].due.job);
	q = query_start(s->db, Q_DUE_JOBS, e);
	set_bind(&q, &jobs);
	while (query_row(&q)) {
		int64_t job = query_get_int(&q);

		while (i < r->n && r->rows[i].due.job != job)
			i++;
		if (i == r->n)
			break;
		r->rows[kept] = r->rows[i++];
		kept += due_row_read(&q, &r->rows[kept]);
	}
	r->n = kept;
	return !q.failed;
}

/* Before this time a slot is overdue. Current slots come first, so that many overdue jobs do not delay them. */
static usec_t overdue_since(const struct op_plan *p)
{
	return p->now - OVERDUE_AGE < p->horizon ? p->now - OVERDUE_AGE : p->horizon;
}

static bool take_due(struct store *s, const struct op_plan *p, int64_t segments, struct round *r, struct err *e)
{
	usec_t behind = overdue_since(p);

	return take_rows(s, behind, p->horizon, p->limit - p->limit / 4, segments, r, e) &&
	       take_rows(s, 0, behind, p->limit - r->n, segments, r, e) && due_jobs_read(s, r, e);
}

/* ---- due jobs on a server, locked in one round trip with the node and its segments ---- */

/* The queries that a plan sends at once. */
struct plan_reads {
	struct query node, segments, hold, held;
	int64_t mask; /* for which 'hold' was sent */
};

static void plan_reads_done(struct plan_reads *q)
{
	query_done(&q->node);
	query_done(&q->segments);
	query_done(&q->hold);
	query_done(&q->held);
}

static bool due_hold_send(struct store *s, const struct op_plan *p, int64_t mask, struct plan_reads *q, struct err *e)
{
	query_done(&q->hold);
	query_done(&q->held);
	q->mask = mask;
	if (!s->db->defer || mask == 0)
		return true;
	q->hold = query_start(s->db, Q_DUE_HOLD, e);
	query_int(&q->hold, overdue_since(p));
	query_int(&q->hold, p->horizon);
	query_int(&q->hold, (int64_t)p->limit);
	query_int(&q->hold, (int64_t)(p->limit - p->limit / 4));
	query_int(&q->hold, mask);
	q->held = query_start(s->db, Q_DUE_HELD, e);
	query_int(&q->held, p->horizon); /* a slot that has moved since the lock is left out */
	return query_send(&q->hold) && query_send(&q->held);
}

static bool plan_reads_send(struct store *s, const struct op_plan *p, struct plan_reads *q, struct err *e)
{
	if (p->node) {
		q->node = query_start(s->db, Q_NODE_OPEN, e);
		query_text(&q->node, p->node);
		q->segments = query_start(s->db, Q_SEGMENTS_HOLD, e);
		query_text(&q->segments, p->node);
		if (!query_ahead(&q->node) || !query_ahead(&q->segments))
			return false;
	}
	return due_hold_send(s, p, p->node ? s->segments : -1, q, e); /* the segments of the last time, checked below */
}

/* The segments of this engine, locked until the commit; 0: it may not plan. */
static bool segments_take(struct plan_reads *q, int64_t *ret)
{
	uint64_t mask = 0;

	while (query_row(&q->segments))
		mask |= UINT64_C(1) << (query_get_int(&q->segments) & (SEGMENTS - 1));
	*ret = (int64_t)mask;
	return !q->segments.failed;
}

static bool held_rows_take(struct query *q, struct round *r)
{
	while (query_row(q)) {
		struct due_row *row;

		r->rows = xgrow(r->rows, r->n, sizeof(*r->rows));
		row = &r->rows[r->n];
		*row = (struct due_row){};
		row->due.job = query_get_int(q);
		row->due.slot = query_get_int(q);
		r->n += due_row_read(q, row);
	}
	return !q->failed;
}

/* Rows that are left when the round has used up its steps, or is full, come with the next round. */
static void due_rows_decide(const struct op_plan *p, struct round *r)
{
	int64_t steps = p->steps ? p->steps : INT64_MAX;

	for (size_t i = 0; i < r->n; i++) {
		struct due_row *row = &r->rows[i];

		row->planned.steps = steps;
		if (steps <= 0 || r->n_runs >= RUNS_MAX)
			row->planned.later = true;
		else if (row->sound)
			p->fn(&row->due, p->now, p->horizon, &row->planned, p->fn_arg);
		else
			row->planned.suspend = "its row in the store is damaged";
		steps = row->planned.steps;
		r->n_runs += row->planned.n;
	}
}

static void planned_run_describe(struct store *s, struct set *set, const struct due_row *row, const struct planned_run *run, int64_t id,
	usec_t now)
{
	const struct run_new r = {
		.id = id,
		.job = row->due.job,
		.uid = row->uid,
		.kind = RUN_KIND_SCHEDULE,
		.state = run->state,
		.reason = run->reason,
		.slot = run->slot,
		.slot_last = run->slot_last,
		.slot_count = run->slot_count,
		.due_at = run->due_at,
		.revision = row->due.revision,
		.priority = row->priority,
		.queue = row->queue,
		.policy = row->planned.policy,
		.caught_up = run->caught_up,
		.now = now,
	};

	runs_describe(set, &r);
	if (s->db->defer)
		run_new_account(s, &r);
}

/* On a server no reply is needed: the locks of the jobs keep other batches from adding runs of these slots. */
static bool planned_runs_insert(struct store *s, struct op_plan *p, struct round *r, struct err *e)
{
	if (!s->db->defer)
		return runs_insert(s, &r->runs, &p->runs, e);
	p->runs += r->n_runs;
	return set_execute(s, Q_RUNS_INSERT_NEW, &r->runs, e);
}

static void due_change_describe(struct round *r, const struct due_row *row)
{
	r->jobs += !row->planned.later;
	if (row->planned.later) {
		return;
	}
	if (row->planned.suspend) {
		set_item(&r->suspensions);
		set_int(&r->suspensions, "job", row->due.job);
		set_text(&r->suspensions, "reason", row->planned.suspend);
		set_id(&r->drops, row->due.job);
	} else if (row->planned.next_slot) {
		set_item(&r->moves);
		set_int(&r->moves, "job", row->due.job);
		set_int(&r->moves, "slot", row->planned.next_slot);
	} else {
		set_id(&r->drops, row->due.job);
		set_id(&r->ended, row->due.job);
	}
}

static bool plan_round(struct store *s, struct op_plan *p, int64_t segments, struct plan_reads *q, struct round *r, struct err *e)
{
	int64_t *ids, *next;
	bool ok;

	if (!(q->held.db ? held_rows_take(&q->held, r) : take_due(s, p, segments, r, e)))
		return false;
	due_rows_decide(p, r);
	ids = next = xcalloc(r->n_runs ? r->n_runs : 1, sizeof(*ids));
	ok = row_ids_take(s, Q_RUN_IDS, r->n_runs, ids, e);
	for (size_t i = 0; ok && i < r->n; i++) {
		for (size_t k = 0; k < r->rows[i].planned.n; k++)
			planned_run_describe(s, &r->runs, &r->rows[i], &r->rows[i].planned.runs[k], *next++, p->now);
		due_change_describe(r, &r->rows[i]);
	}
	free(ids);
	ok = ok && planned_runs_insert(s, p, r, e) && set_execute(s, Q_DUE_MOVE, &r->moves, e) &&
	     set_execute(s, Q_DUE_DROP, &r->drops, e) && job_rows_suspend(s, &r->suspensions, p->now, e) &&
	     (r->ended.n == 0 || job_finish_idle(s, set_json(&r->ended), p->now, NULL, e));
	p->jobs = r->jobs;
	return ok;
}

static bool plan_one(struct store *s, struct op *op, struct err *e)
{
	struct op_plan *p = plan_op(op);
	AUTO_DONE(plan_reads) q = {};
	AUTO_DONE(round) r = {};
	int64_t segments = -1;

	if (!plan_reads_send(s, p, &q, e))
		return false;
	if (p->node) {
		if (!query_row(&q.node))
			return !q.node.failed && op_refuse(op, ERR_FENCED, "node '%s' may not plan: its lease is over", p->node);
		if (!segments_take(&q, &segments))
			return false;
		s->segments = segments;
		if (q.mask != segments && !due_hold_send(s, p, segments, &q, e))
			return false;
	}
	return !segments || plan_round(s, p, segments, &q, &r, e);
}

bool plan_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!plan_one(s, ops[i], e))
			return false;
	return true;
}

void plan_run_add(struct planned *p, const struct planned_run *run)
{
	p->runs = xgrow(p->runs, p->n, sizeof(*p->runs));
	p->runs[p->n++] = *run;
}

void plan_reset(struct op *op)
{
	plan_op(op)->jobs = plan_op(op)->runs = 0;
}
