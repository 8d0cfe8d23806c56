/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and runs are ended by their owner: cancelled, removed; and jobs finish by themselves. */
#include "base/map.h"
#include "base/text.h"
#include "core/time/slots.h"
#include "store/store_private.h"

static bool live(enum job_state s)
{
	return s < JOB_FINISHED;
}

/* Of these jobs, those that have no slot left; on PostgreSQL their rows are held, so that two last ends meet. */
static bool jobs_idle(struct store *s, const char *ids, struct set *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_IDLE, e);

	query_text(&q, ids);
	while (query_row(&q))
		set_id(ret, query_get_int(&q));
	return !q.failed;
}

/* Those that wait for the end of their run. */
static bool due_resume(struct store *s, const char *ids, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_RESUME, e);

	query_text(&q, ids);
	query_int(&q, USEC_NEVER);
	query_int(&q, slot_search_from(now));
	return query_finish(&q);
}

bool job_finish_idle(struct store *s, const char *ids, usec_t now, struct map *ret, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET idle = {};

	if (!permits_settle(s, ids, e) || !due_resume(s, ids, now, e) || !jobs_idle(s, ids, &idle, e))
		return false;
	if (idle.n == 0)
		return true;
	q = query_start(s->db, Q_JOBS_FINISH, e);
	query_text(&q, set_json(&idle));
	query_int(&q, now);
	while (query_row(&q)) {
		int64_t id = query_get_int(&q);

		counter_change(s, COUNT_OWNER, query_get_int(&q), "", -1);
		counter_move(s, COUNT_JOBS, JOB_ACTIVE, JOB_FINISHED, query_get_text(&q));
		if (ret)
			map_put(ret, id, s);
	}
	return !q.failed;
}

/* ---- runs ---- */

/* Ends the queued ones of a set; 'n' gets how many. */
static bool run_cancel_queued(struct store *s, struct set *set, const char *reason, usec_t now, int64_t *ret_n,
	struct err *e)
{
	AUTO_QUERY q = {};

	*ret_n = 0;
	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_CANCEL_QUEUED, e);
	query_text(&q, set_json(set));
	query_text(&q, reason);
	query_int(&q, now);
	while (query_row(&q)) {
		query_get_int(&q);
		counter_move(s, COUNT_RUNS, RUN_QUEUED, RUN_CANCELLED, query_get_text(&q));
		++*ret_n;
	}
	return !q.failed;
}

static bool run_cancel_one(struct store *s, struct op *op, struct err *e)
{
	struct op_run_cancel *c = &op->run_cancel;
	AUTO_SET run = {};
	AUTO_SET job = {};
	int64_t n;

	set_id(&run, c->id);
	set_id(&job, c->run->job);
	if (!run_cancel_queued(s, &run, "cancelled", c->now, &n, e) || !set_execute(s, Q_RUNS_ASK_CANCEL, &run, e) ||
	    (n > 0 && !job_finish_idle(s, set_json(&job), c->now, NULL, e)))
		return false;
	event_add(s, &(struct event_new){.at = c->now, .by = &op->act.by, .what = EVENT_RUN_CANCEL,
		.object = c->run->job_name, .job = c->run->job, .run = c->id, .owner = c->run->uid,
		.detail = n > 0 ? NULL : "asked to end"});
	run_free(STEAL(c->run));
	return row_run_read(s, c->uid, c->id, &c->run, e);
}

bool run_cancel_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_run_cancel *c = &ops[i]->run_cancel;

		if (!row_run_read(s, c->uid, c->id, &c->run, e))
			return false;
		if (!c->run) {
			op_refuse(ops[i], ERR_NOT_FOUND, "no run %lld", (long long)c->id);
			continue;
		}
		c->was_final = run_state_final(c->run->state);
		if (!c->was_final && !run_cancel_one(s, ops[i], e))
			return false;
	}
	return true;
}

/* ---- jobs ---- */

static bool open_runs_read(struct store *s, int64_t job, struct set *queued, struct set *active, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_OPEN_OF, e);

	query_int(&q, job);
	while (query_row(&q)) {
		int64_t id = query_get_int(&q);

		set_id(query_get_int(&q) == RUN_QUEUED ? queued : active, id);
	}
	return !q.failed;
}

/* A finished job stays finished when it is cancelled: there is nothing to cancel. */
static enum job_state job_becomes(const struct op *op)
{
	if (op->kind == OP_JOB_REMOVE)
		return JOB_REMOVED;
	return live(op->job_cancel.was) ? JOB_CANCELLED : op->job_cancel.was;
}

/*
 * Ends what waits. Runs that were planned ahead and are not due leave no row: their slots never came. 'imposed': an
 * administrator paused the job, and the owner cancels it; the pause stays for the time when the owner resumes it.
 */
static bool end_slots(struct store *s, struct op *op, const struct job_row *j, bool imposed, struct set *ret_active,
	struct err *e)
{
	struct op_job_cancel *c = &op->job_cancel;
	AUTO_SET job = {};
	AUTO_SET queued = {};

	set_id(&job, c->id);
	return job_row_unplan(s, j->id, c->now, e) && set_execute(s, Q_DUE_DROP, &job, e) &&
	       (imposed || set_execute(s, Q_JOB_PAUSES_DROP, &job, e)) && open_runs_read(s, c->id, &queued, ret_active, e) &&
	       run_cancel_queued(s, &queued, op->kind == OP_JOB_REMOVE ? "job removed" : "job cancelled", c->now,
		       &c->queued_cancelled, e) &&
	       permits_settle(s, set_json(&job), e) && (!c->running || set_execute(s, Q_RUNS_ASK_CANCEL, ret_active, e));
}

static bool job_cancel_locked(struct store *s, struct op *op, struct job_row *j, bool imposed, struct err *e)
{
	struct op_job_cancel *c = &op->job_cancel;
	enum job_state becomes = job_becomes(op);
	AUTO_SET active = {};
	AUTO_TEXT detail = NULL;

	if (!end_slots(s, op, j, imposed, &active, e) ||
	    (becomes != c->was && !job_row_set_state(s, j, becomes, imposed ? j->reason : NULL, c->now, e)))
		return false;
	if (c->queued_cancelled > 0 || active.n > 0)
		detail = xprintf("%lld queued, %zu running%s", (long long)c->queued_cancelled, active.n,
			active.n == 0 ? "" : c->running ? ", asked to end" : ", left alone");
	event_add(s, &(struct event_new){.at = c->now, .by = &op->act.by, .object = c->name, .job = c->id, .owner = j->uid,
		.what = op->kind == OP_JOB_REMOVE ? EVENT_JOB_REMOVE : EVENT_JOB_CANCEL, .detail = detail});
	return active.n == 0 || row_runs_read(s, set_json(&active), &c->open, e);
}

static bool find_and_cancel(struct store *s, struct op *op, struct err *e)
{
	struct op_job_cancel *c = &op->job_cancel;
	AUTO_DONE(pause_order) pause = {};
	AUTO_DONE(job_row) j = {};
	bool imposed;

	if (!job_row_lock(s, c->uid, c->id, &j, e))
		return false;
	if (!j.id)
		return op_refuse(op, ERR_NOT_FOUND, "no job %lld", (long long)c->id);
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
