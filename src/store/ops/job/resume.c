/* SPDX-License-Identifier: Apache-2.0 */
/* Ends pauses on request, which releases the held runs. */
#include "store/ops/job/resume.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/pause.h"
#include "core/job/run.h"
#include "core/time/slots.h"
#include "store/events.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/job/job_rows.h"
#include "store/ops/job/open_runs.h"
#include "store/ops/job/pauses.h"
#include "store/ops/op_private.h"
#include "store/ops/owners.h"
#include "store/ops/run/plans.h"
#include "store/pause_rows.h"
#include "store/prefetch.h"
#include "store/set.h"
#include "store/store_private.h"
#include <inttypes.h>

/* ---- held runs ---- */

static bool count_rows(struct query *q, size_t *ret)
{
	while (query_row(q)) {
		query_get_int(q);
		++*ret;
	}
	return !q->failed;
}

bool resume_release_jobs(struct store *s, const char *ids, size_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_UNHOLD_JOBS, e);

	query_text(&q, ids);
	query_int(&q, HOLD_PAUSED);
	return count_rows(&q, ret);
}

/* Runs that another pause covers are held again when they are claimed. */
bool resume_release_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid, size_t *ret,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_UNHOLD, e);

	query_int(&q, scope == PAUSE_FREEZE ? HOLD_FROZEN : HOLD_PAUSED);
	query_int(&q, uid);
	query_text(&q, scope == PAUSE_QUEUE ? key : "");
	return count_rows(&q, ret);
}

/* ---- one job ---- */

static bool last_slot(struct store *s, const struct job_row *j, usec_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_LAST_SLOT, e);

	query_int(&q, j->id);
	*ret = query_row(&q) ? query_get_int(&q) : j->created_at;
	return !q.failed;
}

static bool refuse_suspended(struct op *op, const struct job_row *j, const char *why)
{
	AUTO_DONE(buf) words = {};

	job_row_words(j, &words);
	return op_refuse(op, ERR_CONFLICT, "job %s stays %s, its schedule cannot be used: %s; 'jobctl show --as-command %" PRId64
		"' prints the command that adds it again", words.data, job_state_name(j->state), why, j->id);
}

/*
 * Makes the planner look for slots after the last run of a suspended job; the catch-up policy
 * applies to them.
 */
static bool restore_due(struct store *s, struct op *op, struct job_row *j, usec_t *ret_due, struct err *e)
{
	const struct op_resume *r = resume_op(op);
	struct planned planned = {};
	struct due_job due = {.job = j->id, .revision = j->revision, .name = j->name, .spec = j->spec,
		.created_at = j->created_at};
	usec_t since;

	if (!last_slot(s, j, &since, e))
		return false;
	due.slot = slot_search_from(since);
	if (!j->sound)
		planned.suspend = "its row in the store is damaged";
	else if (r->fn)
		r->fn(&due, r->now, r->now, &planned, r->fn_arg);
	free(planned.runs); /* only planned.suspend is used here; the planner computes the runs again */
	if (planned.suspend)
		return refuse_suspended(op, j, planned.suspend);
	*ret_due = due.slot;
	return job_row_put_due(s, j->id, due.slot, e);
}

/* ---- a cancelled job ---- */

/* Refuses if a live job of the owner has the name, or the owner has reached the limit. */
static bool check_revival(struct store *s, struct op *op, const struct job_row *j, struct err *e)
{
	const struct op_resume *r = resume_op(op);
	int64_t other, live = 0;

	if (!job_row_name_taken(s, j, &other, e) || (r->limit && !owner_live_jobs(s, j->uid, j->id, &live, e)))
		return false;
	if (other)
		return op_refuse(op, ERR_CONFLICT, "job %" PRId64 " stays cancelled: job %" PRId64 " has its name '%s' now; "
			"'jobctl set %" PRId64 " name=OTHER' frees it", j->id, other, j->name, other);
	if (!job_row_check_queue(s, op, j, e))
		return false;
	if (op->ok && r->limit && live >= r->limit)
		return op_refuse(op, ERR_LIMIT, "'%s' has %" PRId64 " jobs, more than %" PRId64 " are not allowed; remove some "
			"with 'jobctl rm'", j->owner, live, r->limit);
	return true;
}

/*
 * Continues the schedule with its first slot after now. Slots that passed while the job was
 * cancelled are not caught up. A schedule that has no slot left leaves no row in 'due', and the job
 * becomes finished.
 */
static bool revive_due(struct store *s, struct op *op, struct job_row *j, usec_t *ret_due, struct err *e)
{
	const struct op_resume *r = resume_op(op);
	/* the schedule 'now' has its slot in the first second after the job was added */
	usec_t from = r->now < j->created_at + USEC_SEC ? j->created_at + USEC_SEC : r->now;
	struct planned planned = {.steps = 1};
	const struct due_job due = {.job = j->id, .revision = j->revision, .name = j->name, .spec = j->spec,
		.created_at = j->created_at, .slot = slot_search_from(from)};

	if (!check_revival(s, op, j, e))
		return false;
	if (!op->ok)
		return true;
	if (!j->sound)
		planned.suspend = "its row in the store is damaged";
	else if (r->fn)
		r->fn(&due, r->now, r->now, &planned, r->fn_arg);
	free(planned.runs);
	if (planned.suspend)
		return refuse_suspended(op, j, planned.suspend);
	*ret_due = planned.next_slot ? planned.next_slot : *ret_due;
	return !planned.next_slot || job_row_put_due(s, j->id, planned.next_slot, e);
}

static bool put_later(struct store *s, const struct op_resume *r, int64_t job, const char *reason, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSE_LATER, e);

	query_int(&q, job);
	query_int(&q, r->by_uid);
	query_text(&q, r->by_name);
	query_int(&q, r->until);
	query_text(&q, r->reason ? r->reason : reason);
	return query_finish(&q);
}

/* The text of the event: the reason, or "until TIME: reason". */
static char *resume_detail(const struct op_resume *r)
{
	char until[RFC3339_MAX];

	if (!r->until)
		return xstrdup(r->reason);
	return xprintf("until %s%s%s", rfc3339_format(r->until, until), r->reason ? ": " : "", r->reason ? r->reason : "");
}

/* Releases the runs that the pause holds, and finishes the job if it has neither a slot nor a run. */
static bool resume_runs(struct store *s, struct op_resume *r, const struct job_row *j, usec_t due, struct err *e)
{
	AUTO_DONE(open_runs) runs = {};
	AUTO_SET job = {};
	bool finished;

	if (s->db->defer)
		return open_runs_read(s, j->id, r->now, &runs, e) && open_runs_release(s, &runs, &r->released, e) &&
		       open_runs_finish(s, &runs, false, due, j->uid, j->queue, r->now, &finished, e);
	set_id(&job, j->id);
	return resume_release_jobs(s, set_json(&job), &r->released, e) && job_finish_idle(s, set_json(&job), r->now, NULL, e);
}

/* 'pause' is the pause that ends, or that was to begin later. */
static bool resume_held(struct store *s, struct op *op, struct job_row *j, const struct pause_order *pause, struct err *e)
{
	struct op_resume *r = resume_op(op);
	AUTO_TEXT detail = resume_detail(r);
	AUTO_SET job = {};
	usec_t due = 0;

	if (s->db->defer && !job_row_due_lock(s, j->id, &due, e))
		return false;
	if (j->state == JOB_SUSPENDED && !restore_due(s, op, j, &due, e))
		return false;
	if (j->state == JOB_CANCELLED && !revive_due(s, op, j, &due, e))
		return false;
	if (!op->ok)
		return true;
	set_id(&job, j->id);
	r->found = true;
	event_add(s, &(struct event_new){.at = r->now, .by = &op->act.by, .what = EVENT_JOB_RESUME, .object = j->name,
		.job = j->id, .owner = j->uid, .detail = detail});
	return job_row_set_state(s, j, JOB_ACTIVE, NULL, r->now, e) && pause_keep_jobs(s, set_json(&job), r->now, e) &&
	       (r->until ? put_later(s, r, j->id, pause->reason, e) : set_execute(s, Q_JOB_PAUSES_DROP, &job, e)) &&
	       resume_runs(s, r, j, due, e);
}

/* A job that is not paused cannot be resumed until a time. */
static bool refuse_until(struct op *op, const struct job_row *j)
{
	AUTO_DONE(buf) words = {};

	job_row_words(j, &words);
	return op_refuse(op, ERR_CONFLICT, "job %s is %s and not paused, so no pause can begin again; 'jobctl pause %" PRId64
		"' pauses a job", words.data, job_state_name(j->state), j->id);
}

static bool resume_job(struct store *s, struct op *op, struct err *e)
{
	struct op_resume *r = resume_op(op);
	AUTO_DONE(pause_order) pause = {};
	AUTO_DONE(job_row) j = {};
	AUTO_DONE(buf) words = {};

	prefetch_job(s, r->job);
	if (!job_row_lock(s, r->uid, r->job, &j, e))
		return false;
	if (!j.id)
		return op_refuse(op, ERR_NOT_FOUND, "no job %" PRId64, r->job);
	r->was = j.state;
	r->name = xstrdup(j.name);
	if (!pause_row_of_job(s, &j, &pause, e))
		return false;
	if (pause_is_imposed_on(&pause, r->uid, &j, r->now))
		return pause_deny_op(op, &j, &pause);
	if (r->until && j.state != JOB_PAUSED && (j.state != JOB_ACTIVE || !pause.later))
		return refuse_until(op, &j);
	switch (j.state) {
	case JOB_ACTIVE:
		return !pause.later || resume_held(s, op, &j, &pause, e);
	case JOB_PAUSED:
	case JOB_SUSPENDED:
	case JOB_CANCELLED:
		return resume_held(s, op, &j, &pause, e);
	default:
		job_row_words(&j, &words);
		return op_refuse(op, ERR_CONFLICT, "job %s is %s: its schedule has no slot left; 'jobctl run %" PRId64 "' runs it "
			"once more", words.data, job_state_name(j.state), j.id);
	}
}

/* ---- a scope ---- */

static bool drop_pause(struct store *s, const struct op_resume *r, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSE_DROP, e);

	query_text(&q, pause_scope_name(r->scope));
	query_text(&q, r->key ? r->key : "");
	query_int(&q, r->of_uid);
	*ret = query_row(&q);
	return !q.failed;
}

/*
 * The pause of this scope begins again at 'until', with its old reason unless a new one is given.
 */
static bool scope_again(struct store *s, struct op *op, bool *ret, struct err *e)
{
	const struct op_resume *r = resume_op(op);
	AUTO_DONE(pause_list) all = {};

	*ret = false;
	if (!pause_rows_read(s, -1, &all, e))
		return false;
	for (size_t i = 0; i < all.n && !*ret; i++) {
		struct pause_order next = all.v[i];

		if (next.scope != r->scope || next.uid != r->of_uid || !text_equal(next.key, r->key ? r->key : ""))
			continue;
		next.by_uid = r->by_uid;
		next.by_name = (char *)r->by_name;
		next.reason = r->reason ? (char *)r->reason : next.reason;
		next.at = r->until;
		next.until = 0;
		next.later = *ret = true;
		if (!pause_row_write(s, &next, e))
			return false;
	}
	return *ret || op_refuse(op, ERR_CONFLICT, "there is no such pause, so none can begin again; 'jobctl status' shows the "
		"pauses");
}

static bool resume_scope(struct store *s, struct op *op, struct err *e)
{
	struct op_resume *r = resume_op(op);
	const struct pause_order p = {.scope = r->scope, .key = (char *)r->key, .uid = r->of_uid};
	AUTO_TEXT detail = resume_detail(r);

	if (!pause_check_scope(s, op, r->uid, &p, e))
		return false;
	if (!op->ok)
		return true;
	if (!pause_keep_scope(s, r->scope, r->key, r->of_uid, r->now, e) ||
	    !(r->until ? scope_again(s, op, &r->found, e) : drop_pause(s, r, &r->found, e)))
		return false;
	if (!r->found)
		return true;
	pause_event(s, &op->act.by, r->scope == PAUSE_FREEZE ? EVENT_THAW : EVENT_RESUME, &p, r->now, detail);
	return resume_release_scope(s, r->scope, r->key, r->of_uid, &r->released, e);
}

bool resume_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!(resume_op(ops[i])->scope == PAUSE_JOB ? resume_job : resume_scope)(s, ops[i], e))
			return false;
	return true;
}

bool resume_prefetch(struct store *s, const struct op *op, struct err *e)
{
	const struct op_resume *r = resume_op(op);

	if (prefetch_repeats(s, r->job))
		return true;
	return job_row_prefetch(s, r->uid, r->job, e) && pause_row_prefetch(s, r->job, e) && job_row_due_prefetch(s, r->job, e) &&
	       open_runs_prefetch(s, r->job, r->now, e);
}

void resume_reset(struct op *op)
{
	struct op_resume *r = resume_op(op);

	free(STEAL(r->name));
	r->was = JOB_ACTIVE;
	r->found = false;
	r->released = 0;
}

void resume_owners(const struct store *s, const struct op *op, struct set *owners, struct set *jobs)
{
	(void)s;
	(void)owners;
	if (resume_op(op)->scope == PAUSE_JOB)
		set_id(jobs, resume_op(op)->job);
}

/* The end of the pause of a scope releases runs of any job, so it excludes all other writers. */
enum writers_lock resume_writers(const struct op *op)
{
	return resume_op(op)->scope == PAUSE_JOB ? WRITERS_SHARED : WRITERS_EXCLUSIVE;
}

void resume_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)runs;
	set_id(jobs, resume_op(op)->job);
}
