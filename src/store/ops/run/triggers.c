/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a run on request. */
#include "store/ops/run/triggers.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/pause.h"
#include "core/job/run.h"
#include "store/events.h"
#include "store/ops/job/job_rows.h"
#include "store/ops/job/pauses.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/ops/owners.h"
#include "store/ops/run/runs.h"
#include "store/owner_counts.h"
#include "store/pause_rows.h"
#include "store/prefetch.h"
#include "store/row_ids.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A run as by the schedule is recorded as skipped; any other trigger is refused. */
static bool refuse_paused(struct op *op, const struct job_row *j, const struct pause_order *p, const char **ret_skip)
{
	AUTO_DONE(buf) about = {};
	AUTO_DONE(buf) why = {};
	AUTO_DONE(buf) remedy = {};
	AUTO_TEXT ref = j->name ? xstrdup(j->name) : xprintf("%" PRId64, j->id);

	if (trigger_op(op)->as_scheduled) {
		*ret_skip = p->scope == PAUSE_FREEZE ? "frozen" : "paused";
		return true;
	}
	job_row_words(j, &about);
	pause_words(p, &why);
	pause_remedy(p, ref, &remedy);
	return op_refuse(op, ERR_CONFLICT, "job %s is %.200s ('%.100s' ends that; with --force it runs anyway)", about.data,
		why.data, remedy.data);
}

/*
 * A freeze, or a pause that an administrator set, can be overridden only with --force by an
 * administrator.
 */
static bool check_imposed(struct op *op, const struct job_row *j, const struct pause_order *own, const struct pause_list *all,
	const struct pause_target *target)
{
	if (pause_is_imposed_on(own, trigger_op(op)->overrides_freeze ? OWNER_ALL : j->uid, j, trigger_op(op)->now) &&
	    pause_begun(own, trigger_op(op)->now))
		return pause_deny_op(op, j, own);
	for (size_t i = 0; i < all->n && !trigger_op(op)->overrides_freeze; i++) {
		const struct pause_order *p = &all->v[i];

		if (pause_covers(p, target, trigger_op(op)->now) && (p->scope == PAUSE_FREEZE || pause_is_imposed(p, j->uid)))
			return pause_deny_op(op, j, p);
	}
	return true;
}

/* Whether the pause of the job itself can refuse or skip the run. */
static bool own_pause_matters(const struct op_trigger *t, const struct job_row *j)
{
	return (!t->as_scheduled && !t->overrides_freeze) || (j->state == JOB_PAUSED && !t->forced);
}

/*
 * Refuses the operation if a pause applies to the job, or sets the reason to skip the run. False: the
 * database failed.
 */
static bool check_pauses(struct store *s, struct op *op, const struct job_row *j, const char **ret_skip, struct err *e)
{
	const struct op_trigger *t = trigger_op(op);
	const struct pause_target target = {.uid = j->uid, .queue = j->queue, .tags = t->tags};
	AUTO_DONE(pause_list) all = {};
	AUTO_DONE(pause_order) own = {};
	const struct pause_order *found;

	if (!pause_rows_of_job(s, j->uid, j->id, &all, e) || (own_pause_matters(t, j) && !pause_row_of_job(s, j, &own, e)))
		return false;
	if (!t->as_scheduled)
		check_imposed(op, j, &own, &all, &target);
	if (!op->ok || t->forced)
		return true;
	found = pause_find(&all, &target, t->now);
	if (found && found->scope == PAUSE_FREEZE)
		return refuse_paused(op, j, found, ret_skip);
	if (j->state == JOB_PAUSED && (!own.until || own.until > t->now))
		return refuse_paused(op, j, &own, ret_skip);
	return !found || refuse_paused(op, j, found, ret_skip);
}

static bool check_state(struct op *op, const struct job_row *j)
{
	AUTO_DONE(buf) words = {};

	job_row_words(j, &words);
	if (j->revision != trigger_op(op)->revision)
		return op_refuse(op, ERR_BUSY, "job %s was changed a moment ago; try again", words.data);
	if (!j->sound)
		return op_refuse(op, ERR_CONFLICT, "job %s is damaged in the store; 'jobctl db restore FILE' restores a backup", words.data);
	if (j->state == JOB_CANCELLED)
		return op_refuse(op, ERR_CONFLICT, "job %s is cancelled; 'jobctl resume %" PRId64 "' brings it back", words.data,
			j->id);
	if (j->state == JOB_SUSPENDED && !trigger_op(op)->forced)
		return op_refuse(op, ERR_CONFLICT, "job %s is suspended: %s ('jobctl resume %" PRId64 "' checks it again; with "
			"--force it runs anyway)", words.data, j->reason ? j->reason : "for an unknown reason", j->id);
	return true;
}

/* Makes a finished job active. It has no slot, so it finishes again when the run has ended. */
static bool finished_job_revive(struct store *s, struct op *op, struct job_row *j, struct err *e)
{
	int64_t other, live = 0;

	if (!job_row_check_queue(s, op, j, e))
		return false;
	if (!op->ok)
		return true;
	if (!job_row_name_taken(s, j, &other, e) || (trigger_op(op)->limit && !owner_live_jobs(s, j->uid, j->id, &live, e)))
		return false;
	if (other)
		return op_refuse(op, ERR_CONFLICT, "job %" PRId64 " is finished, and job %" PRId64 " has its name '%s' now; "
			"trigger that one", j->id, other, j->name);
	if (trigger_op(op)->limit && live >= trigger_op(op)->limit)
		return op_refuse(op, ERR_LIMIT, "'%s' has %" PRId64 " jobs, more than %" PRId64 " are not allowed; remove some "
			"with 'jobctl rm'", j->owner, live, trigger_op(op)->limit);
	return job_row_set_state(s, j, JOB_ACTIVE, NULL, trigger_op(op)->now, e);
}

/* ---- the run ---- */

/* Reads the last slot of a trigger; sent with the lock of the job. */
static struct query last_slot_query(struct store *s, const struct op_trigger *t, struct err *e)
{
	struct query q = query_start(s->db, Q_RUN_MANUAL_LAST, e);

	query_int(&q, t->job);
	query_int(&q, t->as_scheduled ? t->now / USEC_SEC * USEC_SEC : t->now);
	return q;
}

/*
 * Each trigger has its own slot, even if two arrive in the same microsecond. A slot of the schedule is a
 * whole second.
 */
static bool free_slot(struct query *q, const struct op_trigger *t, usec_t *ret)
{
	*ret = t->as_scheduled ? t->now / USEC_SEC * USEC_SEC : t->now;
	if (query_row(q))
		*ret = t->as_scheduled ? (query_get_int(q) / USEC_SEC + 1) * USEC_SEC : query_get_int(q) + 1;
	return !q->failed;
}

/* The row of the new run as a later read returns it. */
static struct run *run_of_new(const struct run_new *r, const struct job_row *j)
{
	struct run *run = xcalloc(1, sizeof(*run));

	*run = (struct run){.id = r->id, .job = r->job, .uid = r->uid, .kind = r->kind, .state = r->state, .slot = r->slot,
		.slot_last = r->slot, .slot_count = 1, .due_at = r->due_at, .revision = r->revision, .priority = r->priority,
		.created_at = r->now, .ended_at = r->state == RUN_QUEUED ? 0 : r->now, .exit_code = -1, .forced = r->forced != FORCE_NONE};
	run->job_name = xstrdup(j->name);
	run->owner = xstrdup(j->owner);
	run->reason = xstrdup(r->reason);
	run->queue = xstrdup(r->queue);
	run->params = xstrdup(r->params);
	return run;
}

static bool make_run(struct store *s, struct op *op, const struct job_row *j, const char *skip, struct query *last, struct err *e)
{
	struct op_trigger *t = trigger_op(op);
	struct run_new r = {.job = j->id, .uid = j->uid, .kind = RUN_KIND_MANUAL, .state = skip ? RUN_SKIPPED : RUN_QUEUED,
		.reason = skip, .due_at = t->now + (t->as_scheduled && !skip ? t->delay : 0),
		.now = t->now, .revision = j->revision, .priority = j->priority, .queue = j->queue, .policy = t->policy,
		.forced = !t->forced ? FORCE_NONE : t->overrides_freeze ? FORCE_FREEZE : FORCE_PAUSE, .params = t->params};
	AUTO_SET set = {};

	if (!free_slot(last, t, &r.slot) || !row_ids_take(s, Q_RUN_IDS, 1, &r.id, e))
		return false;
	runs_describe(&set, &r);
	event_add(s, &(struct event_new){.at = t->now, .by = &op->act.by, .what = EVENT_RUN_TRIGGER, .object = j->name,
		.job = j->id, .run = r.id, .owner = j->uid, .detail = t->forced ? "forced" : t->as_scheduled ? "as scheduled" : NULL});
	t->run = run_of_new(&r, j);
	return run_insert_free(s, &set, &r, e);
}

/* Checks the byte limit of the owner: the run is stored with its parameters. */
static bool trigger_check_bytes(struct store *s, struct op *op, const struct job_row *j, struct err *e)
{
	const struct op_trigger *t = trigger_op(op);
	struct err why = {};

	if (!owner_quota_check(s, j->uid, j->id, j->owner, RUN_BYTES + (t->params ? (int64_t)strlen(t->params) : 0), t->bytes_limit, &why, e))
		return false;
	return !why.kind || op_refuse(op, why.kind, "%s", why.msg);
}

static bool trigger_run(struct store *s, struct op *op, struct err *e)
{
	AUTO_QUERY last = last_slot_query(s, trigger_op(op), e);
	AUTO_DONE(job_row) j = {};
	const char *skip = NULL;

	prefetch_job(s, trigger_op(op)->job);
	if (!query_ahead(&last) || !job_row_lock(s, trigger_op(op)->uid, trigger_op(op)->job, &j, e))
		return false;
	if (!j.id)
		return op_refuse(op, ERR_NOT_FOUND, "no job %" PRId64, trigger_op(op)->job);
	if (trigger_op(op)->uid == OWNER_NOT_ROOT && owner_uid(j.uid) == 0)
		return op_refuse(op, ERR_DENIED, "job %" PRId64 " is root's; only root runs it", trigger_op(op)->job);
	if (!check_state(op, &j) || (op->ok && !check_pauses(s, op, &j, &skip, e)))
		return false;
	if (op->ok && !skip && j.state == JOB_FINISHED && !finished_job_revive(s, op, &j, e))
		return false;
	return !op->ok || (trigger_check_bytes(s, op, &j, e) && (!op->ok || make_run(s, op, &j, skip, &last, e)));
}

bool trigger_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!trigger_run(s, ops[i], e))
			return false;
	return true;
}

bool trigger_prefetch(struct store *s, const struct op *op, struct err *e)
{
	const struct op_trigger *t = trigger_op(op);
	AUTO_QUERY last = last_slot_query(s, t, e);

	if (prefetch_repeats(s, t->job))
		return true;
	return query_prefetch(&last) && job_row_prefetch(s, t->uid, t->job, e) && pause_rows_prefetch(s, t->job, e) &&
	       pause_row_prefetch(s, t->job, e) && (!t->bytes_limit || owner_count_prefetch(s, COUNT_STORE, t->job, e)) &&
	       row_ids_prefetch_run(s, e);
}

void trigger_reset(struct op *op)
{
	run_free(STEAL(trigger_op(op)->run));
}

void trigger_owners(const struct store *s, const struct op *op, struct set *owners, struct set *jobs)
{
	(void)s;
	(void)owners;
	set_id(jobs, trigger_op(op)->job);
}

void trigger_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)runs;
	set_id(jobs, trigger_op(op)->job);
}
