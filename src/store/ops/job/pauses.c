/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses single jobs or all jobs of a scope. */
#include "store/ops/job/pauses.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/pause.h"
#include "core/job/run.h"
#include "store/events.h"
#include "store/lists.h"
#include "store/ops/job/job_rows.h"
#include "store/ops/job/open_runs.h"
#include "store/ops/op_private.h"
#include "store/pause_rows.h"
#include "store/prefetch.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include <inttypes.h>

/* ---- one job ---- */

bool pause_keep_jobs(struct store *s, const char *ids, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSES_KEEP, e);

	query_text(&q, ids);
	query_int(&q, now);
	return query_finish(&q);
}

/* Keeps the pause that a new one replaces. */
static bool job_pause_keep(struct store *s, int64_t job, usec_t now, struct err *e)
{
	AUTO_SET set = {};

	set_id(&set, job);
	return pause_keep_jobs(s, set_json(&set), now, e);
}

static bool put_job_pause(struct store *s, const struct job_pause *p, struct err *e)
{
	AUTO_SET set = {};
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSES_PUT, e);

	set_item(&set);
	set_int(&set, "job", p->job);
	set_int(&set, "uid", p->by_uid);
	set_text(&set, "owner", p->by_name);
	set_int(&set, "now", p->now);
	set_bind(&q, &set);
	query_int(&q, p->until);
	return query_finish(&q);
}

/* Deletes planned runs that are not due; their first slot becomes the next one to plan. */
static bool job_unplan(struct store *s, int64_t job, usec_t now, struct err *e)
{
	AUTO_DONE(open_runs) runs = {};
	usec_t due, first;
	size_t n;

	if (!s->db->defer)
		return job_row_unplan(s, job, now, e);
	return job_row_due_lock(s, job, &due, e) && open_runs_read(s, job, now, &runs, e) && open_runs_unplan(s, &runs, now, &first, &n, e) &&
	       (first == USEC_NEVER || job_row_put_due(s, job, first, e));
}

static bool row_pause(struct store *s, struct job_row *j, const struct job_pause *p, bool *ret, struct err *e)
{
	*ret = j->state == JOB_ACTIVE || j->state == JOB_PAUSED;
	return !*ret || (job_unplan(s, j->id, p->now, e) && job_row_set_state(s, j, JOB_PAUSED, p->reason, p->now, e) &&
		job_pause_keep(s, j->id, p->now, e) && put_job_pause(s, p, e));
}

bool job_pause(struct store *s, const struct job_pause *p, bool *ret, struct err *e)
{
	AUTO_DONE(job_row) j = {};
	AUTO_DONE(pause_order) next = {};
	struct job_pause pause = *p;

	*ret = false;
	if (!job_row_lock(s, -1, p->job, &j, e))
		return false;
	if (!j.id || j.state != JOB_ACTIVE)
		return true;
	if (!pause_row_of_job(s, &j, &next, e))
		return false;
	if (next.later && pause_is_imposed(&next, j.uid)) { /* an exit code must not replace the administrator's pause by one that the owner can end */
		pause.by_uid = next.by_uid;
		pause.by_name = next.by_name;
	}
	return row_pause(s, &j, &pause, ret, e);
}

static bool active_runs_read(struct store *s, int64_t job, struct run_list *ret, struct err *e)
{
	AUTO_SET active = {};
	AUTO_QUERY q = {};

	if (s->db->defer)
		return row_active_runs_read(s, job, ret, e);
	q = query_start(s->db, Q_RUNS_OPEN_OF, e);
	query_int(&q, job);
	while (query_row(&q)) {
		int64_t id = query_get_int(&q);

		if (query_get_int(&q) != RUN_QUEUED)
			set_id(&active, id);
	}
	return !q.failed && (active.n == 0 || row_runs_read(s, set_json(&active), ret, e));
}

static bool refuse_pause(struct op *op, const struct job_row *j)
{
	AUTO_DONE(buf) words = {};

	job_row_words(j, &words);
	if (j->state == JOB_SUSPENDED)
		return op_refuse(op, ERR_CONFLICT, "job %s is suspended (%s) and does not start as it is", words.data,
			j->reason ? j->reason : "for an unknown reason");
	return op_refuse(op, ERR_CONFLICT, "job %s is %s: there is nothing to pause", words.data,
		job_state_name(j->state));
}

static bool pause_job(struct store *s, struct op *op, struct err *e)
{
	struct op_pause *o = pause_op(op);
	const struct job_pause p = {.job = o->job, .by_uid = o->pause.by_uid, .by_name = o->pause.by_name,
		.reason = o->pause.reason, .now = o->pause.at, .until = o->pause.until};
	AUTO_DONE(pause_order) imposed = {};
	AUTO_DONE(job_row) j = {};
	bool done, denied;

	prefetch_job(s, o->job);
	if (!job_row_lock(s, o->uid, o->job, &j, e))
		return false;
	if (!j.id)
		return op_refuse(op, ERR_NOT_FOUND, "no job %" PRId64, o->job);
	o->was = j.state;
	if (!pause_imposed_on_job(s, o->uid, &j, p.now, &imposed, &denied, e))
		return false;
	if (denied)
		return pause_deny_op(op, &j, &imposed);
	if (!row_pause(s, &j, &p, &done, e))
		return false;
	if (!done)
		return refuse_pause(op, &j);
	event_add(s, &(struct event_new){.at = o->pause.at, .by = &op->act.by, .what = EVENT_JOB_PAUSE, .object = j.name,
		.job = j.id, .owner = j.uid, .detail = o->pause.reason});
	o->name = STEAL(j.name);
	return active_runs_read(s, o->job, &o->open, e);
}

bool pause_row_prefetch(struct store *s, int64_t job, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSE_GET, e);

	query_int(&q, job);
	return query_prefetch(&q);
}

bool pause_row_of_job(struct store *s, const struct job_row *j, struct pause_order *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSE_GET, e);
	AUTO_TEXT reason = NULL;

	*ret = (struct pause_order){.scope = PAUSE_JOB, .uid = j->uid, .by_uid = -1, .key = xstrdup(""),
		.reason = xstrdup(j->reason), .spared = xstrdup("")};
	query_int(&q, j->id);
	if (query_row(&q)) {
		ret->by_uid = query_get_int(&q);
		ret->by_name = query_get_copy(&q);
		ret->at = query_get_int(&q);
		ret->until = query_get_int(&q);
		reason = query_get_copy(&q);
		ret->later = query_get_int(&q);
	}
	if (ret->later) {
		free(ret->reason);
		ret->reason = STEAL(reason);
	}
	return !q.failed;
}

bool pause_imposed_on_job(struct store *s, int64_t uid, const struct job_row *j, usec_t now, struct pause_order *ret,
	bool *ret_found, struct err *e)
{
	*ret_found = false;
	if (uid < 0)
		return true;
	if (!pause_row_of_job(s, j, ret, e))
		return false;
	*ret_found = pause_is_imposed_on(ret, uid, j, now);
	return true;
}

bool pause_is_imposed_on(const struct pause_order *p, int64_t uid, const struct job_row *j, usec_t now)
{
	return uid >= 0 && pause_is_imposed(p, j->uid) && (!p->until || p->until > now);
}

bool pause_deny(struct err *e, const char *subject, const struct pause_order *p)
{
	AUTO_DONE(buf) words = {};

	pause_words(p, &words);
	return err_set(e, ERR_DENIED, "%.120s is %.300s; only an administrator can end that", subject, words.data);
}

bool pause_deny_op(struct op *op, const struct job_row *j, const struct pause_order *p)
{
	AUTO_DONE(buf) subject = {};

	buf_str(&subject, "job ");
	job_row_words(j, &subject);
	op->ok = pause_deny(&op->err, subject.data, p);
	return true;
}

/* ---- a scope ---- */

static bool count_pauses(struct store *s, int64_t uid, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSES_COUNT, e);

	query_int(&q, uid);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

bool pause_keep_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSE_KEEP, e);

	query_text(&q, pause_scope_name(scope));
	query_text(&q, key ? key : "");
	query_int(&q, uid);
	query_int(&q, now);
	return query_finish(&q);
}

void pause_event(struct store *s, const struct actor *by, enum event_what what, const struct pause_order *p, usec_t now,
	const char *detail)
{
	bool keyed = p->key && *p->key;
	AUTO_TEXT object = xprintf("%s%s%s", pause_scope_name(p->scope), keyed ? " " : "", keyed ? p->key : "");

	event_add(s, &(struct event_new){.at = now, .by = by, .what = what, .object = object,
		.owner = p->uid, .detail = detail});
}

bool pause_check_scope(struct store *s, struct op *op, int64_t uid, const struct pause_order *wanted, struct err *e)
{
	AUTO_DONE(pause_list) all = {};

	if (uid < 0)
		return true;
	if (!pause_rows_read(s, uid, &all, e))
		return false;
	for (size_t i = 0; i < all.n && op->ok; i++) {
		const struct pause_order *p = &all.v[i];
		AUTO_TEXT tag = xprintf("what has the tag %s", p->key);

		if (p->scope == wanted->scope && p->uid == wanted->uid && text_equal(p->key, wanted->key ? wanted->key : "") &&
		    pause_is_imposed(p, uid))
			op->ok = pause_deny(&op->err, p->scope == PAUSE_TAG ? tag : "everything of yours", p);
	}
	return true;
}

static bool pause_scope(struct store *s, struct op *op, struct err *e)
{
	const struct op_pause *o = pause_op(op);
	int64_t there = 0;

	if (!pause_check_scope(s, op, o->uid, &o->pause, e))
		return false;
	if (!op->ok)
		return true;
	if (o->limit && !count_pauses(s, o->pause.uid, &there, e))
		return false;
	if (o->limit && there >= o->limit)
		return op_refuse(op, ERR_LIMIT, "there are %" PRId64 " pauses for these jobs, more are not allowed; end some with "
			"'jobctl resume'", there);
	pause_event(s, &op->act.by, o->pause.scope == PAUSE_FREEZE ? EVENT_FREEZE : EVENT_PAUSE, &o->pause, o->pause.at,
		o->pause.reason);
	return pause_keep_scope(s, o->pause.scope, o->pause.key, o->pause.uid, o->pause.at, e) && pause_row_write(s, &o->pause, e);
}

bool pause_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!(pause_op(ops[i])->pause.scope == PAUSE_JOB ? pause_job : pause_scope)(s, ops[i], e))
			return false;
	return true;
}

bool pause_prefetch(struct store *s, const struct op *op, struct err *e)
{
	const struct op_pause *o = pause_op(op);

	if (prefetch_repeats(s, o->job))
		return true;
	return job_row_prefetch(s, o->uid, o->job, e) && (o->uid < 0 || pause_row_prefetch(s, o->job, e)) &&
	       job_row_due_prefetch(s, o->job, e) && open_runs_prefetch(s, o->job, o->pause.at, e) && row_active_runs_prefetch(s, o->job, e);
}

void pause_reset(struct op *op)
{
	struct op_pause *p = pause_op(op);

	free(STEAL(p->name));
	p->was = JOB_ACTIVE;
	run_list_done(&p->open);
}

/* A pause of a scope must stop the claims of any job, so it excludes all other writers. */
enum writers_lock pause_writers(const struct op *op)
{
	return pause_op(op)->pause.scope == PAUSE_JOB ? WRITERS_SHARED : WRITERS_EXCLUSIVE;
}

void pause_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)runs;
	set_id(jobs, pause_op(op)->job);
}
