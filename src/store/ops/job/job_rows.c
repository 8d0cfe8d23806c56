/* SPDX-License-Identifier: Apache-2.0 */
/* Operates on the locked row of a job. */
#include "store/ops/job/job_rows.h"
#include "base/err.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/limits.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void job_row_done(struct job_row *j)
{
	free(j->owner);
	free(j->name);
	free(j->reason);
	free(j->queue);
	free(j->spec);
	*j = (struct job_row){};
}

static struct query job_row_query(struct store *s, int64_t uid, int64_t id, struct err *e)
{
	struct query q = query_start(s->db, Q_JOB_CONTROL, e);

	query_int(&q, id);
	query_int(&q, uid);
	return q;
}

bool job_row_prefetch(struct store *s, int64_t uid, int64_t id, struct err *e)
{
	AUTO_QUERY q = job_row_query(s, uid, id, e);

	return query_prefetch(&q);
}

bool job_row_lock(struct store *s, int64_t uid, int64_t id, struct job_row *ret, struct err *e)
{
	AUTO_QUERY q = job_row_query(s, uid, id, e);

	if (!query_row(&q))
		return !q.failed;
	ret->id = id;
	ret->uid = query_get_int(&q);
	ret->owner = query_get_copy(&q);
	ret->name = query_get_copy(&q);
	ret->state = (enum job_state)query_get_int(&q);
	ret->reason = query_get_copy(&q);
	ret->queue = query_get_copy(&q);
	ret->revision = query_get_int(&q);
	ret->priority = query_get_int(&q);
	ret->created_at = query_get_int(&q);
	ret->spec = query_get_copy(&q);
	ret->sound = (uint64_t)query_get_int(&q) == row_digest(ret->uid, ret->owner, ret->spec);
	return true;
}

void job_row_words(const struct job_row *j, struct buf *out)
{
	buf_printf(out, "%" PRId64, j->id);
	if (j->name)
		buf_printf(out, " '%s'", j->name);
}

bool job_row_is_live(enum job_state s)
{
	return s < JOB_FINISHED;
}

bool job_row_set_state(struct store *s, struct job_row *j, enum job_state to, const char *reason, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_STATE_SET, e);

	query_int(&q, j->id);
	query_int(&q, to);
	query_text(&q, reason);
	query_int(&q, now);
	if (!query_finish(&q))
		return false;
	counter_move(s, COUNT_JOBS, j->state, to, j->queue);
	if (job_row_is_live(j->state) != job_row_is_live(to))
		counter_change(s, COUNT_OWNER, j->uid, "", job_row_is_live(to) ? 1 : -1);
	j->state = to;
	return true;
}

bool job_row_due_prefetch(struct store *s, int64_t job, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_LOCK, e);

	query_int(&q, job);
	return query_prefetch(&q);
}

bool job_row_due_lock(struct store *s, int64_t job, usec_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_LOCK, e);

	query_int(&q, job);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

bool job_row_put_due(struct store *s, int64_t job, usec_t slot, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_PUT, e);

	query_int(&q, job);
	query_int(&q, job_segment((uint64_t)job));
	query_int(&q, slot);
	return query_finish(&q);
}

static bool planned_runs_take(struct store *s, struct query *q, usec_t *ret_first)
{
	*ret_first = USEC_NEVER;
	while (query_row(q)) {
		usec_t slot = query_get_int(q);
		int64_t uid;

		if (slot < *ret_first)
			*ret_first = slot;
		counter_change(s, COUNT_RUNS, RUN_QUEUED, query_get_text(q), -1);
		uid = query_get_int(q);
		owner_quota_add(s, uid, -query_get_int(q));
	}
	return !q->failed;
}

bool job_row_unplan_with(struct store *s, int64_t job, usec_t now, usec_t *ret_first, struct query *next, struct err *e)
{
	AUTO_QUERY due = query_start(s->db, Q_DUE_LOCK, e);
	AUTO_QUERY q = query_start(s->db, Q_RUNS_UNPLAN, e);

	query_int(&due, job);
	query_int(&q, job);
	query_int(&q, now);
	return query_ahead(&due) && query_ahead(&q) && (!next || query_ahead(next)) && query_finish(&due) && planned_runs_take(s, &q, ret_first);
}

bool job_row_unplan(struct store *s, int64_t job, usec_t now, struct err *e)
{
	usec_t first;

	return job_row_unplan_with(s, job, now, &first, NULL, e) && (first == USEC_NEVER || job_row_put_due(s, job, first, e));
}

bool job_row_name_taken(struct store *s, const struct job_row *j, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = {};

	*ret = 0;
	if (!j->name)
		return true;
	q = query_start(s->db, Q_JOB_BY_LIVE_NAME, e);
	query_int(&q, j->uid);
	query_text(&q, j->name);
	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed;
}

bool job_row_check_queue(struct store *s, struct op *op, const struct job_row *j, struct err *e)
{
	struct err why = {};

	if (!limit_queue_check(s, j->queue, &why, e))
		return false;
	if (!why.kind)
		return true;
	op_refuse(op, ERR_CONFLICT, "job %" PRId64 " is %s, and its queue '%s' was removed since; 'jobctl queue add %s' makes it again",
		j->id, job_state_name(j->state), j->queue, j->queue);
	if (j->state == JOB_FINISHED) { /* a cancelled job cannot be changed */
		size_t len = strlen(op->err.msg);

		snprintf(op->err.msg + len, sizeof(op->err.msg) - len, ", 'jobctl set %" PRId64 " queue=default' moves the job", j->id);
	}
	return true;
}

static bool jobs_suspend_from(struct store *s, struct set *set, enum job_state was, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_SUSPEND, e);

	set_bind(&q, set);
	query_int(&q, was);
	query_int(&q, now);
	while (query_row(&q)) {
		struct event_new ev = {.at = now, .what = EVENT_JOB_SUSPEND};

		ev.job = query_get_int(&q);
		ev.owner = query_get_int(&q);
		counter_move(s, COUNT_JOBS, was, JOB_SUSPENDED, query_get_text(&q));
		ev.object = query_get_text(&q);
		ev.detail = query_get_text(&q);
		event_add(s, &ev);
	}
	return !q.failed;
}

/* Paused jobs are suspended too: without a slot they could not simply be resumed. */
bool job_rows_suspend(struct store *s, struct set *set, usec_t now, struct err *e)
{
	return set->n == 0 || (jobs_suspend_from(s, set, JOB_ACTIVE, now, e) && jobs_suspend_from(s, set, JOB_PAUSED, now, e));
}
