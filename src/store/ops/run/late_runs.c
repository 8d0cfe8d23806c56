/* SPDX-License-Identifier: Apache-2.0 */
/* Decides about planned runs again after downtime or a clock change. */
#include "store/ops/run/late_runs.h"
#include "base/text.h"
#include "core/job/run.h"
#include "core/time/slots.h"
#include "store/counters.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/ops/run/plans.h"
#include "store/outcomes.h"
#include "store/set.h"
#include "store/store_private.h"

#define ROWS_MAX 4000 /* late runs examined in one transaction */

struct late_run {
	int64_t id;
	struct due_job job; /* its texts are owned here */
	char *name, *spec;
	usec_t slot;
};
struct late_list {
	struct late_run *v;
	size_t n;
};

static void late_list_done(struct late_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].name);
		free(l->v[i].spec);
	}
	free(l->v);
}

static bool read_late(struct store *s, const struct op_late *o, struct late_list *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_LATE, e);

	query_int(&q, o->since);
	query_int(&q, o->now);
	query_int(&q, o->after);
	query_int(&q, ROWS_MAX);
	l->v = xcalloc(ROWS_MAX, sizeof(*l->v));
	while (l->n < ROWS_MAX && query_row(&q)) {
		struct late_run *r = &l->v[l->n++];

		r->id = query_get_int(&q);
		r->job.job = query_get_int(&q);
		r->slot = query_get_int(&q);
		r->job.name = r->name = query_get_copy(&q);
		r->job.revision = query_get_int(&q);
		r->job.spec = r->spec = query_get_copy(&q);
		r->job.created_at = query_get_int(&q);
		r->job.slot = query_get_int(&q);
	}
	return !q.failed;
}

/* Returns the index after the last row of the job. */
static size_t same_job(const struct late_list *l, size_t from)
{
	size_t to = from;

	while (to < l->n && l->v[to].job.job == l->v[from].job.job)
		to++;
	return to;
}

struct late_sets {
	struct set missed, jobs; /* runs to be skipped, and their jobs */
	struct set caught_up;    /* runs that wait for each other */
};

static void late_sets_done(struct late_sets *s)
{
	set_done(&s->missed);
	set_done(&s->jobs);
	set_done(&s->caught_up);
}

static void late_job_decide(const struct op_late *o, const struct late_list *l, size_t from, size_t to, struct late_sets *ret)
{
	usec_t slots[ROWS_MAX];
	bool caught_up = false;
	size_t n;

	for (size_t i = from; i < to; i++)
		slots[i - from] = l->v[i].slot;
	n = o->fn(&(struct late_job){l->v[from].job, slots, to - from}, o->now, &caught_up, o->fn_arg);
	for (size_t i = from; i < from + n; i++)
		set_id(&ret->missed, l->v[i].id);
	for (size_t i = from + n; caught_up && i < to; i++)
		set_id(&ret->caught_up, l->v[i].id);
	if (n)
		set_id(&ret->jobs, l->v[from].job.job);
}

static bool skip_missed(struct store *s, struct op_late *o, struct set *missed, struct set *jobs, struct err *e)
{
	AUTO_QUERY q = {};

	if (missed->n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_MISS, e);
	set_bind(&q, missed);
	query_int(&q, o->now);
	while (query_row(&q)) {
		struct outcome m = {.state = RUN_SKIPPED, .reason = "missed", .at = o->now};

		m.run = query_get_int(&q);
		counter_move(s, COUNT_RUNS, RUN_QUEUED, RUN_SKIPPED, query_get_text(&q));
		m.job = query_get_int(&q);
		m.slot = query_get_int(&q);
		m.notifies = query_get_int(&q);
		outcome_note(s, &m);
		counter_slots(s, m.state, m.reason, 1);
		o->missed++;
	}
	return !q.failed && job_finish_idle(s, set_json(jobs), o->now, NULL, e);
}

/* A full page may end within the rows of a job: that job is left to the next page. */
static bool late_runs_decide(struct store *s, struct op_late *o, struct err *e)
{
	AUTO_DONE(late_list) l = {};
	AUTO_DONE(late_sets) sets = {};

	if (!read_late(s, o, &l, e))
		return false;
	for (size_t from = 0, to; from < l.n; from = to) {
		to = same_job(&l, from);
		if (l.n == ROWS_MAX && to == l.n && from > 0)
			break;
		late_job_decide(o, &l, from, to, &sets);
		if (l.n == ROWS_MAX)
			o->more = l.v[from].job.job;
	}
	return skip_missed(s, o, &sets.missed, &sets.jobs, e) && set_execute(s, Q_RUNS_CATCH_UP, &sets.caught_up, e);
}

static bool undo_runs(struct store *s, struct op_late *o, struct set *jobs, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_UNDO, e);

	query_int(&q, o->now + SLOTS_LOOKAHEAD);
	while (query_row(&q)) {
		int64_t uid;

		set_id(jobs, query_get_int(&q));
		counter_change(s, COUNT_RUNS, RUN_QUEUED, query_get_text(&q), -1);
		uid = query_get_int(&q);
		owner_quota_add(s, uid, -query_get_int(&q));
		o->undone++;
	}
	return !q.failed;
}

static bool run_at_once(struct store *s, const struct op_late *o, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_AT_ONCE, e);

	query_int(&q, o->now + SLOTS_LOOKAHEAD);
	query_int(&q, o->now);
	return query_finish(&q);
}

/*
 * Makes the planner look for the next slot of these jobs again. A slot has at most one run, so none
 * runs twice.
 */
static bool due_search_again(struct store *s, const struct op_late *o, struct set *jobs, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_UNDO, e);

	set_bind(&q, jobs);
	query_int(&q, o->now + SLOTS_LOOKAHEAD);
	query_int(&q, USEC_NEVER);
	query_int(&q, slot_search_from(o->now));
	return query_finish(&q);
}

bool late_runs_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_late *o = late_runs_op(ops[i]);
		AUTO_SET jobs = {};

		if (o->set_back && (!undo_runs(s, o, &jobs, e) || !run_at_once(s, o, e) || !due_search_again(s, o, &jobs, e)))
			return false;
		if (!late_runs_decide(s, o, e))
			return false;
	}
	return true;
}

void late_runs_reset(struct op *op)
{
	struct op_late *o = late_runs_op(op);

	o->missed = o->undone = 0;
	o->more = 0;
}
