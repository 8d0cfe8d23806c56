/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on notices: adding them, recording their delivery. */
#include "store/ops/notices.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/notice.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/notice_row.h"
#include "store/ops/op_private.h"
#include "store/outcomes.h"
#include "store/read/list/list_notices.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <inttypes.h>
#include <string.h>

#define PRUNE_STEP 20                 /* old notices deleted at a time */
#define NOTICE_KEPT (30 * USEC_DAY)   /* after they were sent, or failed for good */
#define TESTS_WAITING_MAX 1000        /* waiting notices of an owner; test notices beyond that are refused */

static bool get_health(struct store *s, int64_t job, struct job_health *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_HEALTH_GET, e);

	query_int(&q, job);
	if (query_row(&q))
		outcome_health_read(&q, ret);
	return !q.failed;
}

static bool notice_job_lock(struct store *s, const struct op_notice_add *a, bool *ret, int64_t *ret_uid, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_LOCK, e);

	query_int(&q, a->job);
	query_int(&q, a->uid);
	*ret = query_row(&q);
	*ret_uid = *ret ? query_get_int(&q) : -1;
	return !q.failed;
}

static bool waiting_notices_count(struct store *s, int64_t uid, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICES_WAITING, e);

	query_int(&q, uid);
	query_int(&q, TESTS_WAITING_MAX);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

static bool notice_insert(struct store *s, struct op *op, struct err *e)
{
	struct op_notice_add *a = notice_add_op(op);
	struct job_health health = {};
	AUTO_SET set = {};
	AUTO_SET ids = {};
	int64_t uid, waiting = 0;
	bool found;

	if (!notice_job_lock(s, a, &found, &uid, e) || (a->kind == NOTICE_KIND_TEST && !waiting_notices_count(s, uid, &waiting, e)))
		return false;
	if (!found)
		return op_refuse(op, ERR_NOT_FOUND, "no job %lld", (long long)a->job);
	if (waiting >= TESTS_WAITING_MAX)
		return op_refuse(op, ERR_LIMIT, "the owner of job %lld has %d or more notices that wait; try again when some were sent "
			"('jobctl notices' shows them)", (long long)a->job, TESTS_WAITING_MAX);
	if (!get_health(s, a->job, &health, e))
		return false;
	outcome_notice_describe(&set, a->job, a->run, a->kind, &health, a->now);
	if (!outcome_notices_insert(s, &set, &ids, e) || !list_notices_get(s, &ids, &a->added, e))
		return false;
	if (a->kind == NOTICE_KIND_TEST && a->added.n > 0)
		event_add(s, &(struct event_new){.at = a->now, .by = &op->act.by, .what = EVENT_NOTICE_TEST,
			.object = a->added.v[0]->job_name, .job = a->job, .owner = a->added.v[0]->uid});
	return true;
}

bool notice_add_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!notice_insert(s, ops[i], e))
			return false;
	return true;
}

bool notices_drop_old(struct store *s, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICES_DROP, e);

	query_int(&q, now - NOTICE_KEPT);
	query_int(&q, PRUNE_STEP);
	while (query_row(&q))
		counter_change(s, COUNT_NOTICES, query_get_int(&q), "", -1);
	return !q.failed;
}

bool notices_prune(struct store *s, struct set *jobs, struct err *e)
{
	AUTO_QUERY q = {};

	if (jobs->n == 0)
		return true;
	q = query_start(s->db, Q_NOTICES_PRUNE, e);
	set_bind(&q, jobs);
	while (query_row(&q))
		counter_change(s, COUNT_NOTICES, query_get_int(&q), "", -1);
	return !q.failed;
}

/* The event names only the kind of the channel: a URL or a command may contain a secret. */
static void note_failure(struct store *s, const struct op_notice_done *d, struct query *q)
{
	struct event_new ev = {.at = d->now, .what = EVENT_NOTICE_FAILED, .result = "failed"};
	AUTO_TEXT channel = NULL;
	AUTO_TEXT detail = NULL;

	ev.owner = query_get_int(q);
	ev.job = query_get_int(q);
	ev.run = query_get_int(q);
	channel = query_get_copy(q);
	detail = xprintf("notice %" PRId64 " by %.*s after %" PRId64 " tries: %s", d->id, (int)strcspn(channel, ":"), channel,
		d->try, d->error ? d->error : "no reason given");
	ev.detail = detail;
	event_add(s, &ev);
}

static bool notice_record(struct store *s, struct op_notice_done *d, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICE_DONE, e);

	query_int(&q, d->id);
	query_int(&q, d->try);
	query_int(&q, d->untried);
	query_int(&q, d->state);
	query_int(&q, d->due_at);
	query_int(&q, d->now);
	query_text(&q, d->error);
	d->stale = !query_row(&q);
	if (q.failed || d->stale || d->state == NOTICE_WAITING)
		return !q.failed;
	counter_move(s, COUNT_NOTICES, NOTICE_WAITING, d->state, "");
	if (d->state == NOTICE_FAILED)
		note_failure(s, d, &q);
	return true;
}

bool notice_done_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!notice_record(s, notice_done_op(ops[i]), e))
			return false;
	return true;
}

bool notice_resume_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct op_notice_resume *r = notice_resume_op(ops[i]);
		AUTO_SET ids = {};
		AUTO_QUERY q = query_start(s->db, Q_NOTICES_RESUME, e);

		for (size_t k = 0; k < r->n; k++)
			set_id(&ids, r->under_way[k]);
		query_text(&q, r->name);
		query_text(&q, r->node);
		query_int(&q, r->now);
		set_bind(&q, &ids);
		if (!query_finish(&q))
			return false;
	}
	return true;
}

void notice_add_reset(struct op *op)
{
	notice_list_done(&notice_add_op(op)->added);
}

void notice_done_reset(struct op *op)
{
	notice_done_op(op)->stale = false;
}

void notice_done_free(struct op *op)
{
	free(notice_done_op(op)->error);
}

void notice_resume_free(struct op *op)
{
	free(notice_resume_op(op)->under_way);
}
