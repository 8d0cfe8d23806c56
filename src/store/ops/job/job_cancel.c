/* SPDX-License-Identifier: Apache-2.0 */
/* Stops the schedule of a job: cancel, remove. */
#include "store/ops/job/job_cancel.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/run.h"
#include "core/time/slots.h"
#include "store/events.h"
#include "store/lists.h"
#include "store/ops/job/job_rows.h"
#include "store/ops/job/open_runs.h"
#include "store/ops/job/pauses.h"
#include "store/ops/op_private.h"
#include "store/ops/run/permits.h"
#include "store/ops/run/run_cancel.h"
#include "store/prefetch.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"

static bool open_runs_take(struct query *q, struct set *queued, struct set *active)
{
	while (query_row(q)) {
		int64_t id = query_get_int(q);

		set_id(query_get_int(q) == RUN_QUEUED ? queued : active, id);
	}
	return !q->failed;
}

/* A finished job that is cancelled stays finished. */
static enum job_state job_becomes(const struct op *op)
{
	if (op->kind == OP_JOB_REMOVE)
		return JOB_REMOVED;
	return job_row_is_live(job_cancel_op(op)->was) ? JOB_CANCELLED : job_cancel_op(op)->was;
}

static const char *cancel_reason(const struct op *op)
{
	return op->kind == OP_JOB_REMOVE ? "job removed" : "job cancelled";
}

/*
 * Cancels queued runs, and deletes planned runs that are not due. 'imposed': an administrator
 * paused the job and its owner cancels it; the pause is kept, so that it applies again if the owner
 * resumes the job.
 */
static bool end_slots(struct store *s, struct op *op, const struct job_row *j, bool imposed, struct set *ret_active,
	struct err *e)
{
	struct op_job_cancel *c = job_cancel_op(op);
	AUTO_QUERY open = query_start(s->db, Q_RUNS_OPEN_OF, e);
	AUTO_SET job = {};
	AUTO_SET queued = {};
	usec_t first; /* the job has no slot any more */

	set_id(&job, c->id);
	query_int(&open, c->id);
	return job_row_unplan_with(s, j->id, c->now, &first, &open, e) && open_runs_take(&open, &queued, ret_active) &&
	       set_execute(s, Q_DUE_DROP, &job, e) && (imposed || set_execute(s, Q_JOB_PAUSES_DROP, &job, e)) &&
	       run_cancel_queued(s, &queued, cancel_reason(op), c->now, &c->queued_cancelled, e) &&
	       permits_free(s, set_json(&job), e) && (!c->running || set_execute(s, Q_RUNS_ASK_CANCEL, ret_active, e));
}

/* The same without waiting for replies. */
static bool end_slots_known(struct store *s, struct op *op, const struct job_row *j, bool imposed, struct set *ret_active,
	struct err *e)
{
	struct op_job_cancel *c = job_cancel_op(op);
	AUTO_DONE(open_runs) runs = {};
	AUTO_SET job = {};
	usec_t first, due; /* the job has no slot any more */
	size_t n;

	set_id(&job, c->id);
	return job_row_due_lock(s, j->id, &due, e) && open_runs_read(s, j->id, c->now, &runs, e) &&
	       open_runs_unplan(s, &runs, c->now, &first, &n, e) && set_execute(s, Q_DUE_DROP, &job, e) &&
	       (imposed || set_execute(s, Q_JOB_PAUSES_DROP, &job, e)) &&
	       open_runs_cancel(s, &runs, cancel_reason(op), c->now, &c->queued_cancelled, ret_active, e) &&
	       permits_free(s, set_json(&job), e) && (!c->running || set_execute(s, Q_RUNS_ASK_CANCEL, ret_active, e));
}

/* The runs that go on. On a server their rows were read before they were asked to end. */
static bool active_read(struct store *s, struct op_job_cancel *c, struct set *active, struct err *e)
{
	if (active->n == 0)
		return true;
	if (!s->db->defer)
		return row_runs_read(s, set_json(active), &c->open, e);
	if (!row_active_runs_read(s, c->id, &c->open, e))
		return false;
	for (size_t i = 0; i < c->open.n; i++)
		c->open.v[i]->cancel_asked = c->open.v[i]->cancel_asked || c->running;
	return true;
}

static bool job_cancel_locked(struct store *s, struct op *op, struct job_row *j, bool imposed, struct err *e)
{
	struct op_job_cancel *c = job_cancel_op(op);
	enum job_state becomes = job_becomes(op);
	AUTO_SET active = {};
	AUTO_TEXT detail = NULL;

	if (!(s->db->defer ? end_slots_known : end_slots)(s, op, j, imposed, &active, e) ||
	    (becomes != c->was && !job_row_set_state(s, j, becomes, imposed ? j->reason : NULL, c->now, e)))
		return false;
	if (c->queued_cancelled > 0 || active.n > 0)
		detail = xprintf("%lld queued, %zu running%s", (long long)c->queued_cancelled, active.n,
			active.n == 0 ? "" : c->running ? ", asked to end" : ", left alone");
	event_add(s, &(struct event_new){.at = c->now, .by = &op->act.by, .object = c->name, .job = c->id, .owner = j->uid,
		.what = op->kind == OP_JOB_REMOVE ? EVENT_JOB_REMOVE : EVENT_JOB_CANCEL, .detail = detail});
	return active_read(s, c, &active, e);
}

static bool find_and_cancel(struct store *s, struct op *op, struct err *e)
{
	struct op_job_cancel *c = job_cancel_op(op);
	AUTO_DONE(pause_order) pause = {};
	AUTO_DONE(job_row) j = {};
	bool imposed;

	prefetch_job(s, c->id);
	if (!job_row_lock(s, c->uid, c->id, &j, e))
		return false;
	if (!j.id)
		return op_refuse(op, ERR_NOT_FOUND, "no job %lld", (long long)c->id);
	if (c->origin) {
		AUTO_TEXT origin = c->origin(j.spec);

		if (origin)
			return op_refuse(op, ERR_CONFLICT, "job %lld comes from %s and changes only with that file: edit the file, "
				"or pause the job with 'jobctl pause %lld'", (long long)c->id, origin, (long long)c->id);
	}
	c->name = xstrdup(j.name);
	c->was = j.state;
	if (!pause_imposed_on_job(s, c->uid, &j, c->now, &pause, &imposed, e))
		return false;
	if (imposed && op->kind == OP_JOB_REMOVE)
		return pause_deny_op(op, &j, &pause);
	return job_cancel_locked(s, op, &j, imposed, e);
}

bool job_cancel_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!find_and_cancel(s, ops[i], e))
			return false;
	return true;
}

void job_cancel_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)runs;
	set_id(jobs, job_cancel_op(op)->id);
}

bool job_cancel_prefetch(struct store *s, const struct op *op, struct err *e)
{
	const struct op_job_cancel *c = job_cancel_op(op);

	if (prefetch_repeats(s, c->id))
		return true;
	return job_row_prefetch(s, c->uid, c->id, e) && (c->uid < 0 || pause_row_prefetch(s, c->id, e)) &&
	       job_row_due_prefetch(s, c->id, e) && open_runs_prefetch(s, c->id, c->now, e) && row_active_runs_prefetch(s, c->id, e);
}

void job_cancel_reset(struct op *op)
{
	struct op_job_cancel *c = job_cancel_op(op);

	free(STEAL(c->name));
	c->was = JOB_ACTIVE;
	c->queued_cancelled = 0;
	run_list_done(&c->open);
}
