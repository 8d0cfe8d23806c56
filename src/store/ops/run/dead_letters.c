/* SPDX-License-Identifier: Apache-2.0 */
/* Retries or purges dead letters, singly or by filter. */
#include "store/ops/run/dead_letters.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/lists.h"
#include "store/ops/op_private.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include <assert.h>

/* A dead letter and its job, locked until the commit. */
struct letter {
	int64_t run, uid, job;
	enum run_state state;
	enum job_state job_state;
	char *queue, *job_name;
};
struct letters {
	struct letter *v;
	size_t n;
};

static void letters_done(struct letters *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].queue);
		free(l->v[i].job_name);
	}
	free(l->v);
}

static bool dead_letters_lock(struct store *s, struct set *ids, struct letters *ret, struct err *e)
{
	AUTO_QUERY q = {};

	if (ids->n == 0)
		return true;
	ret->v = xcalloc(ids->n, sizeof(*ret->v));
	q = query_start(s->db, Q_DEAD_LOCK, e);
	set_bind(&q, ids);
	while (ret->n < ids->n && query_row(&q)) {
		struct letter *l = &ret->v[ret->n++];

		l->run = query_get_int(&q);
		l->uid = query_get_int(&q);
		l->job = query_get_int(&q);
		l->state = (enum run_state)query_get_int(&q);
		l->queue = query_get_copy(&q);
		l->job_state = (enum job_state)query_get_int(&q);
		l->job_name = query_get_copy(&q);
	}
	return !q.failed;
}

/* Reads one step of the index of dead letters; runs that do not match the filter are left out. */
static bool dead_letters_find(struct store *s, struct op_dead *d, struct set *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DEAD_PAGE, e);
	size_t seen = 0;

	query_int(&q, d->since);
	query_int(&q, d->until ? d->until : USEC_NEVER);
	query_int(&q, d->after_at);
	query_int(&q, d->after);
	query_int(&q, (int64_t)d->limit);
	while (query_row(&q)) {
		int64_t run = query_get_int(&q), uid = query_get_int(&q), job = query_get_int(&q);

		d->next_at = query_get_int(&q);
		d->next = run;
		seen++;
		if ((d->uid < 0 || uid == d->uid) && (!d->job || job == d->job))
			set_id(ret, run);
	}
	d->more = seen == d->limit;
	return !q.failed;
}

/* Finds the run that was named. If it is refused, *ret stays empty. */
static bool dead_letter_find(struct store *s, struct op *op, struct set *ret, struct err *e)
{
	AUTO(run) *run = NULL;

	if (!row_run_read(s, dead_letters_op(op)->uid, dead_letters_op(op)->id, &run, e))
		return false;
	if (!run)
		return op_refuse(op, ERR_NOT_FOUND, "no run %lld", (long long)dead_letters_op(op)->id);
	if (!run->dead_at)
		return op_refuse(op, ERR_CONFLICT, "run %lld is no dead letter, it is %s; see 'jobctl dead list'",
			(long long)run->id, run_state_name(run->state));
	set_id(ret, run->id);
	return true;
}

static void dead_letter_refuse(struct op_dead *d, const char *why, const struct letter *l)
{
	if (d->refused++ == 0)
		err_set(&d->why, ERR_CONFLICT, "run %lld is not tried again: its job %lld%s%s%s %s", (long long)l->run,
			(long long)l->job, l->job_name ? " '" : "", l->job_name ? l->job_name : "",
			l->job_name ? "'" : "", why);
}

/* Makes a finished job active until this run has ended, unless another live job has its name. */
static bool finished_job_reopen(struct store *s, struct letter *l, struct map *reopened, usec_t now, struct err *e)
{
	AUTO_QUERY q = {};

	if (map_get(reopened, l->job)) {
		l->job_state = JOB_ACTIVE;
		return true;
	}
	q = query_start(s->db, Q_JOB_REOPEN, e);
	query_int(&q, l->job);
	query_int(&q, now);
	if (query_row(&q)) {
		counter_change(s, COUNT_OWNER, query_get_int(&q), "", 1);
		counter_move(s, COUNT_JOBS, JOB_FINISHED, JOB_ACTIVE, query_get_text(&q));
		map_put(reopened, l->job, reopened);
		l->job_state = JOB_ACTIVE;
	}
	return !q.failed;
}

static void dead_letter_event(struct store *s, const struct op *op, const struct letter *l)
{
	event_add(s, &(struct event_new){.at = dead_letters_op(op)->now, .by = &op->act.by, .object = l->job_name, .job = l->job,
		.run = l->run, .owner = l->uid,
		.what = op->kind == OP_DEAD_RETRY ? EVENT_DEAD_RETRY : EVENT_DEAD_PURGE});
}

/* Selects the runs whose jobs permit a retry. */
static bool dead_letters_retry(struct store *s, struct op *op, struct letters *all, struct set *ret, struct err *e)
{
	struct op_dead *d = dead_letters_op(op);
	AUTO_DONE(map) reopened = {};

	for (size_t i = 0; i < all->n; i++) {
		struct letter *l = &all->v[i];

		if (l->job_state == JOB_FINISHED && !finished_job_reopen(s, l, &reopened, d->now, e))
			return false;
		if (l->job_state == JOB_CANCELLED) {
			dead_letter_refuse(d, "was cancelled", l);
		} else if (l->job_state == JOB_REMOVED) {
			dead_letter_refuse(d, "was removed", l);
		} else if (l->job_state == JOB_FINISHED) {
			dead_letter_refuse(d, "has finished, and another one has its name now", l);
		} else {
			assert(run_revival_allowed(l->state));
			counter_run_moved(s, l->state, RUN_QUEUED, l->uid, l->queue);
			set_id(ret, l->run);
			dead_letter_event(s, op, l);
		}
	}
	return true;
}

static bool dead_letters_queue(struct store *s, struct set *ids, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DEAD_RETRY, e);

	set_bind(&q, ids);
	query_text(&q, "dead letter tried again");
	query_int(&q, now);
	return query_finish(&q);
}

static bool dead_letters_apply_one(struct store *s, struct op *op, struct err *e)
{
	struct op_dead *d = dead_letters_op(op);
	AUTO_DONE(letters) letters = {};
	AUTO_SET ids = {};
	AUTO_SET changed = {};

	if (!(d->id ? dead_letter_find(s, op, &ids, e) : dead_letters_find(s, d, &ids, e)) || !dead_letters_lock(s, &ids, &letters, e))
		return false;
	if (op->kind == OP_DEAD_RETRY && !dead_letters_retry(s, op, &letters, &changed, e))
		return false;
	for (size_t i = 0; op->kind == OP_DEAD_PURGE && i < letters.n; i++) {
		set_id(&changed, letters.v[i].run);
		dead_letter_event(s, op, &letters.v[i]);
	}
	if (changed.n == 0 && d->id && d->refused)
		op_refuse(op, d->why.kind, "%s", d->why.msg);
	if (changed.n == 0)
		return true;
	counter_change(s, COUNT_DEAD, 0, "", -(int64_t)changed.n);
	return (op->kind == OP_DEAD_RETRY ? dead_letters_queue(s, &changed, d->now, e) : set_execute(s, Q_DEAD_PURGE, &changed, e)) &&
	       row_runs_read(s, set_json(&changed), &d->runs, e);
}

bool dead_letters_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!dead_letters_apply_one(s, ops[i], e))
			return false;
	return true;
}

void dead_letters_reset(struct op *op)
{
	struct op_dead *d = dead_letters_op(op);

	run_list_done(&d->runs);
	d->refused = d->next = 0;
	d->why = (struct err){};
	d->more = false;
	d->next_at = 0;
}
