/* SPDX-License-Identifier: Apache-2.0 */
/* The open runs of a locked job, for batches that write without waiting for replies. */
#include "store/ops/job/open_runs.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/time/slots.h"
#include "store/counters.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/owner_quota.h"
#include "store/set.h"
#include "store/store_private.h"

void open_runs_done(struct open_runs *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].queue);
	free(l->v);
	*l = (struct open_runs){};
}

static struct query open_runs_query(struct store *s, int64_t job, usec_t now, struct err *e)
{
	struct query q = query_start(s->db, Q_JOB_OPEN_RUNS, e);

	query_int(&q, job);
	query_int(&q, now);
	return q;
}

bool open_runs_prefetch(struct store *s, int64_t job, usec_t now, struct err *e)
{
	AUTO_QUERY q = open_runs_query(s, job, now, e);

	return query_prefetch(&q);
}

bool open_runs_read(struct store *s, int64_t job, usec_t now, struct open_runs *ret, struct err *e)
{
	AUTO_QUERY q = open_runs_query(s, job, now, e);

	ret->job = job;
	while (query_row(&q)) {
		struct open_run *r;

		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		r = &ret->v[ret->n++];
		*r = (struct open_run){.id = query_get_int(&q)};
		r->uid = query_get_int(&q);
		r->state = (enum run_state)query_get_int(&q);
		r->hold = (enum run_hold)query_get_int(&q);
		r->slot = query_get_int(&q);
		r->queue = query_get_copy(&q);
		r->planned = query_get_int(&q);
		r->size = query_get_int(&q);
	}
	return !q.failed;
}

size_t open_runs_count(const struct open_runs *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += !l->v[i].ended;
	return n;
}

bool open_runs_unplan(struct store *s, struct open_runs *l, usec_t now, usec_t *ret_first, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = {};

	*ret_first = USEC_NEVER;
	*ret_n = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct open_run *r = &l->v[i];

		if (!r->planned)
			continue;
		if (r->slot < *ret_first)
			*ret_first = r->slot;
		counter_change(s, COUNT_RUNS, RUN_QUEUED, r->queue, -1);
		owner_quota_add(s, r->uid, -r->size);
		r->ended = true;
		++*ret_n;
	}
	if (*ret_n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_UNPLAN_ALL, e);
	query_int(&q, l->job);
	query_int(&q, now);
	query_int(&q, (int64_t)*ret_n);
	return query_finish(&q);
}

bool open_runs_cancel(struct store *s, struct open_runs *l, const char *reason, usec_t now, int64_t *ret_n, struct set *ret_active,
	struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET queued = {};

	for (size_t i = 0; i < l->n; i++) {
		struct open_run *r = &l->v[i];

		if (r->ended)
			continue;
		if (r->state != RUN_QUEUED) {
			set_id(ret_active, r->id);
			continue;
		}
		set_id(&queued, r->id);
		counter_move(s, COUNT_RUNS, RUN_QUEUED, RUN_CANCELLED, r->queue);
		counter_slots(s, RUN_CANCELLED, reason, 1);
		r->ended = true;
	}
	*ret_n = (int64_t)queued.n;
	if (queued.n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_CANCEL_ALL, e);
	query_text(&q, set_json(&queued));
	query_text(&q, reason);
	query_int(&q, now);
	query_int(&q, *ret_n);
	return query_finish(&q);
}

bool open_runs_release(struct store *s, struct open_runs *l, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET held = {};

	for (size_t i = 0; i < l->n; i++)
		if (!l->v[i].ended && l->v[i].state == RUN_QUEUED && l->v[i].hold == HOLD_PAUSED) {
			set_id(&held, l->v[i].id);
			l->v[i].hold = HOLD_NONE;
		}
	*ret_n += held.n;
	if (held.n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_UNHOLD_ALL, e);
	query_text(&q, set_json(&held));
	query_int(&q, HOLD_PAUSED);
	query_int(&q, (int64_t)held.n);
	return query_finish(&q);
}

bool open_runs_finish(struct store *s, const struct open_runs *l, bool more, usec_t due, int64_t uid, const char *queue, usec_t now, bool *ret,
	struct err *e)
{
	struct job_end end = {.job = l->job, .uid = uid, .queue = queue, .due = due, .open = more || open_runs_count(l) > 0};

	for (size_t i = 0; i < l->n; i++)
		end.waits = end.waits || (!l->v[i].ended && l->v[i].hold == HOLD_PERMIT);
	return job_finish_one(s, &end, now, ret, e);
}
