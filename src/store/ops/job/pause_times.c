/* SPDX-License-Identifier: Apache-2.0 */
/* Starts or ends pauses at their times. */
#include "store/ops/job/pause_times.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/pause.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op_private.h"
#include "store/set.h"
#include "store/store_private.h"

#define PAUSE_ENDED "its time has ended"
#define STEP 500 /* jobs per transaction; the next transaction follows at once */

static bool keep_over(struct store *s, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSES_KEEP_OVER, e);

	query_int(&q, now);
	return query_finish(&q);
}

static bool scopes_over(struct store *s, usec_t now, struct pause_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSES_OVER, e);

	query_int(&q, now);
	while (query_row(&q)) {
		enum pause_scope scope;
		struct pause_order *p;

		if (!pause_scope_parse(query_get_text(&q), &scope))
			continue;
		p = pause_list_add(ret);
		p->scope = scope;
		p->key = query_get_copy(&q);
		p->uid = query_get_int(&q);
		p->by_name = query_get_copy(&q);
	}
	return !q.failed;
}

static bool end_scopes(struct store *s, struct op_pauses_end *o, struct err *e)
{
	AUTO_DONE(pause_list) over = {};

	if (!keep_over(s, o->now, e) || !scopes_over(s, o->now, &over, e))
		return false;
	for (size_t i = 0; i < over.n; i++) {
		const struct pause_order *p = &over.v[i];

		pause_event(s, NULL, p->scope == PAUSE_FREEZE ? EVENT_THAW : EVENT_RESUME, p, o->now, PAUSE_ENDED);
		if (!resume_release_scope(s, p->scope, p->key, p->uid, &o->released, e))
			return false;
	}
	o->scopes = over.n;
	return true;
}

/*
 * Collects the ids of a result. The jobs are locked in ascending order before their rows are read.
 */
static bool ids_read(struct query *q, struct set *ret)
{
	while (query_row(q))
		set_id(ret, query_get_int(q));
	return !q->failed;
}

static bool jobs_over(struct store *s, usec_t now, struct set *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSES_OVER, e);

	query_int(&q, now);
	query_int(&q, STEP);
	return ids_read(&q, ret);
}

static bool lock_jobs(struct store *s, const char *ids, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_LOCK, e);

	query_text(&q, ids);
	return query_finish(&q);
}

static bool unpause(struct store *s, const char *ids, usec_t now, struct set *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_UNPAUSE, e);

	query_text(&q, ids);
	query_int(&q, now);
	while (query_row(&q)) {
		struct event_new ev = {.at = now, .what = EVENT_JOB_RESUME, .detail = PAUSE_ENDED};

		set_id(ret, ev.job = query_get_int(&q));
		counter_move(s, COUNT_JOBS, JOB_PAUSED, JOB_ACTIVE, query_get_text(&q));
		ev.owner = query_get_int(&q);
		ev.object = query_get_text(&q);
		event_add(s, &ev);
	}
	return !q.failed;
}

static bool forget_pauses(struct store *s, const char *ids, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSES_END, e);

	query_text(&q, ids);
	query_int(&q, now);
	return query_finish(&q);
}

static bool end_jobs(struct store *s, struct op_pauses_end *o, struct err *e)
{
	AUTO_SET over = {};
	AUTO_SET ended = {};

	if (!jobs_over(s, o->now, &over, e))
		return false;
	if (over.n == 0)
		return true;
	if (!lock_jobs(s, set_json(&over), e) || !unpause(s, set_json(&over), o->now, &ended, e) ||
	    !pause_keep_jobs(s, set_json(&over), o->now, e) || !forget_pauses(s, set_json(&over), o->now, e))
		return false;
	o->jobs = ended.n;
	return ended.n == 0 || (resume_release_jobs(s, set_json(&ended), &o->released, e) &&
		job_finish_idle(s, set_json(&ended), o->now, NULL, e));
}

static bool jobs_due(struct store *s, usec_t now, struct set *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSES_DUE, e);

	query_int(&q, now);
	query_int(&q, STEP);
	return ids_read(&q, ret);
}

static bool pause_due(struct store *s, const char *ids, struct op_pauses_end *o, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_PAUSE_DUE, e);

	query_text(&q, ids);
	query_int(&q, o->now);
	while (query_row(&q)) {
		struct event_new ev = {.at = o->now, .what = EVENT_JOB_PAUSE};

		ev.job = query_get_int(&q);
		counter_move(s, COUNT_JOBS, JOB_ACTIVE, JOB_PAUSED, query_get_text(&q));
		ev.owner = query_get_int(&q);
		ev.object = query_get_text(&q);
		ev.detail = query_get_text(&q);
		event_add(s, &ev);
		o->begun++;
	}
	return !q.failed;
}

/*
 * Sets the state of jobs whose pause begins. Claims use the times of the pause; the state is for
 * lists and for 'jobctl show'.
 */
static bool begin_jobs(struct store *s, struct op_pauses_end *o, struct err *e)
{
	AUTO_SET due = {};
	AUTO_QUERY q = {};

	if (!jobs_due(s, o->now, &due, e))
		return false;
	if (due.n == 0)
		return true;
	if (!lock_jobs(s, set_json(&due), e) || !pause_due(s, set_json(&due), o, e))
		return false;
	q = query_start(s->db, Q_JOB_PAUSES_BEGIN, e);
	set_bind(&q, &due);
	query_int(&q, o->now);
	return query_finish(&q);
}

bool pause_times_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!end_scopes(s, pause_times_op(ops[i]), e) || !end_jobs(s, pause_times_op(ops[i]), e) ||
		    !begin_jobs(s, pause_times_op(ops[i]), e))
			return false;
	return true;
}

void pause_times_reset(struct op *op)
{
	struct op_pauses_end *o = pause_times_op(op);

	o->jobs = o->scopes = o->released = o->begun = 0;
}
