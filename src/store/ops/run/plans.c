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
	query_text(&q, set_json(&jobs));
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

/* Takes current slots first, so that many overdue jobs do not delay the others. */
static bool take_due(struct store *s, const struct op_plan *p, int64_t segments, struct round *r, struct err *e)
{
	usec_t behind = p->now - OVERDUE_AGE < p->horizon ? p->now - OVERDUE_AGE : p->horizon;

	return take_rows(s, behind, p->horizon, p->limit - p->limit / 4, segments, r, e) &&
	       take_rows(s, 0, behind, p->limit - r->n, segments, r, e) && due_jobs_read(s, r, e);
}

/* Reads the segments of this engine and locks them until the commit. */
static bool hold_segments(struct store *s, const char *node, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_SEGMENTS_HOLD, e);
	uint64_t mask = 0;

	query_text(&q, node);
	while (query_row(&q))
		mask |= UINT64_C(1) << (query_get_int(&q) & (SEGMENTS - 1));
	*ret = (int64_t)mask;
	return !q.failed;
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

static void planned_run_describe(struct set *set, const struct due_row *row, const struct planned_run *run, int64_t id,
	usec_t now)
{
	runs_describe(set, &(struct run_new){
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
	});
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

static bool plan_round(struct store *s, struct op_plan *p, int64_t segments, struct round *r, struct err *e)
{
	int64_t *ids, *next;
	bool ok;

	if (!take_due(s, p, segments, r, e))
		return false;
	due_rows_decide(p, r);
	ids = next = xcalloc(r->n_runs ? r->n_runs : 1, sizeof(*ids));
	ok = row_ids_take(s, Q_RUN_IDS, r->n_runs, ids, e);
	for (size_t i = 0; ok && i < r->n; i++) {
		for (size_t k = 0; k < r->rows[i].planned.n; k++)
			planned_run_describe(&r->runs, &r->rows[i], &r->rows[i].planned.runs[k], *next++, p->now);
		due_change_describe(r, &r->rows[i]);
	}
	free(ids);
	ok = ok && runs_insert(s, &r->runs, &p->runs, e) && set_execute(s, Q_DUE_MOVE, &r->moves, e) &&
	     set_execute(s, Q_DUE_DROP, &r->drops, e) && job_rows_suspend(s, &r->suspensions, p->now, e) &&
	     (r->ended.n == 0 || job_finish_idle(s, set_json(&r->ended), p->now, NULL, e));
	p->jobs = r->jobs;
	return ok;
}

bool plan_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_plan *p = plan_op(ops[i]);
		AUTO_DONE(round) r = {};
		AUTO_TEXT spawner = NULL;
		int64_t segments = -1;
		bool draining;

		if (p->node && !node_hold(s, p->node, &spawner, &draining, e))
			return false;
		if (p->node && !spawner) {
			op_refuse(ops[i], ERR_FENCED, "node '%s' may not plan: its lease is over", p->node);
			continue;
		}
		if (p->node && !hold_segments(s, p->node, &segments, e))
			return false;
		if (p->node)
			s->segments = segments;
		if (segments && !plan_round(s, p, segments, &r, e))
			return false;
	}
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
