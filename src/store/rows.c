/* SPDX-License-Identifier: Apache-2.0 */
/* Converts result rows to jobs and runs. */
#include "store/rows.h"
#include "base/err.h"
#include "base/text.h"
#include "core/time/slots.h"
#include "store/lists.h"
#include "store/store_private.h"

struct run *row_run(struct query *q)
{
	struct run *r = xcalloc(1, sizeof(*r));

	r->id = query_get_int(q);
	r->job = query_get_int(q);
	r->job_name = query_get_copy(q);
	r->uid = query_get_int(q);
	r->owner = query_get_copy(q);
	r->kind = (enum run_kind)query_get_int(q);
	r->state = (enum run_state)query_get_int(q);
	r->reason = query_get_copy(q);
	r->slot = query_get_int(q);
	r->slot_last = query_get_int(q);
	r->slot_count = query_get_int(q);
	r->due_at = query_get_int(q);
	r->revision = query_get_int(q);
	r->priority = query_get_int(q);
	r->queue = query_get_copy(q);
	r->node = query_get_copy(q);
	r->attempt = query_get_int(q);
	r->lost = query_get_int(q);
	r->fence = query_get_int(q);
	r->cancel_asked = query_get_int(q);
	r->created_at = query_get_int(q);
	r->claimed_at = query_get_int(q);
	r->started_at = query_get_int(q);
	r->ended_at = query_get_int(q);
	r->exit_code = query_get_int(q);
	r->term_signal = query_get_int(q);
	r->dead_at = query_get_int(q);
	r->failures = query_get_int(q);
	r->first_start = query_get_int(q);
	r->hold = (enum run_hold)query_get_int(q);
	r->forced = query_get_int(q);
	r->params = query_get_copy(q);
	return r;
}

static struct run *row_run_named(struct query *q)
{
	struct run *r = row_run(q);

	r->node_name = query_get_copy(q);
	return r;
}

/* FNV-1a. Detects damaged rows, so that no damaged command is run. */
static uint64_t digest_add(uint64_t digest, const char *s)
{
	if (!s)
		return ~digest;
	do {
		digest = (digest ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	} while (*s++);
	return digest;
}

uint64_t row_digest(int64_t uid, const char *owner, const char *spec)
{
	return digest_add(digest_add(UINT64_C(0xcbf29ce484222325) ^ (uint64_t)uid, owner), spec);
}

struct job *row_job(struct query *q, struct err *e)
{
	AUTO(job) *j = xcalloc(1, sizeof(*j));
	usec_t queued, due;
	uint64_t digest;

	j->id = query_get_int(q);
	j->uid = query_get_int(q);
	j->owner = query_get_copy(q);
	j->name = query_get_copy(q);
	j->state = (enum job_state)query_get_int(q);
	j->reason = query_get_copy(q);
	j->revision = query_get_int(q);
	j->segment = query_get_int(q);
	j->queue = query_get_copy(q);
	j->priority = query_get_int(q);
	j->spec = query_get_copy(q);
	digest = (uint64_t)query_get_int(q);
	j->created_at = query_get_int(q);
	j->updated_at = query_get_int(q);
	queued = query_get_int(q);
	due = query_get_int(q);
	if (queued)
		j->next_slot = queued;
	else if (slot_known(due))
		j->next_slot = due; /* otherwise it depends on the end of a run or on a boot */
	j->last_run.id = query_get_int(q);
	j->last_run.state = (int)query_get_int(q);
	j->last_run.slot = query_get_int(q);
	j->last_run.ended_at = query_get_int(q);
	j->last_run.exit_code = query_get_int(q);
	j->last_run.term_signal = query_get_int(q);
	j->pause.by_uid = query_get_int(q);
	j->pause.by_name = query_get_copy(q);
	j->pause.at = query_get_int(q);
	j->pause.until = query_get_int(q);
	j->pause.reason = query_get_copy(q);
	j->pause.later = query_get_int(q);
	if (digest != row_digest(j->uid, j->owner, j->spec)) {
		err_set(e, ERR_REFUSED, "job %lld is damaged in the store; "
			"restore a backup with 'jobctl db restore FILE'", (long long)j->id);
		return NULL;
	}
	return STEAL(j);
}

void run_list_add(struct run_list *l, struct run *r)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = r;
}

bool row_runs_read(struct store *s, const char *ids, struct run_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_GET, e);

	query_text(&q, ids);
	while (query_row(&q))
		run_list_add(ret, row_run_named(&q));
	return !q.failed;
}

bool row_active_runs_prefetch(struct store *s, int64_t job, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_ACTIVE_RUNS, e);

	query_int(&q, job);
	return query_prefetch(&q);
}

bool row_active_runs_read(struct store *s, int64_t job, struct run_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_ACTIVE_RUNS, e);

	query_int(&q, job);
	while (query_row(&q))
		run_list_add(ret, row_run_named(&q));
	return !q.failed;
}

bool row_run_prefetch(struct store *s, int64_t uid, int64_t id, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_GET, e);

	query_int(&q, id);
	query_int(&q, uid);
	return query_prefetch(&q);
}

bool row_run_read(struct store *s, int64_t uid, int64_t id, struct run **ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_GET, e);

	query_int(&q, id);
	query_int(&q, uid);
	*ret = query_row(&q) ? row_run_named(&q) : NULL;
	return !q.failed;
}
