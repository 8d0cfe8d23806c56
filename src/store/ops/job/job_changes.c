/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the definition of a job. */
#include "store/ops/job/job_changes.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "core/time/slots.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/job_chains.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/job/job_history.h"
#include "store/ops/job/job_rows.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/open_runs.h"
#include "store/ops/job/pauses.h"
#include "store/ops/limits.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/ops/owners.h"
#include "store/ops/run/runs.h"
#include "store/owner_counts.h"
#include "store/prefetch.h"
#include "store/revision.h"
#include "store/row_ids.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <string.h>

/* The job before the change; its row is locked. */
struct job_before {
	int64_t uid;
	char *owner, *name, *queue, *spec, *reason; /* owned */
	enum job_state state;
	int64_t revision, asked;
	usec_t created_at, updated_at;
	usec_t due; /* 0: no row */
};

static void job_before_done(struct job_before *b)
{
	free(b->owner);
	free(b->name);
	free(b->queue);
	free(b->spec);
	free(b->reason);
}

/* ---- checks ---- */

static struct query before_query(struct store *s, int query, const struct op_job_change *c, struct err *e)
{
	struct query q = query_start(s->db, query, e);

	query_int(&q, c->id);
	query_int(&q, c->uid);
	return q;
}

static bool job_before_query(struct store *s, int query, const struct op_job_change *c, struct job_before *b, struct err *e)
{
	AUTO_QUERY q = before_query(s, query, c, e);

	if (!query_row(&q))
		return !q.failed;
	b->uid = query_get_int(&q);
	b->owner = query_get_copy(&q);
	b->name = query_get_copy(&q);
	b->state = (enum job_state)query_get_int(&q);
	b->queue = query_get_copy(&q);
	b->revision = query_get_int(&q);
	b->created_at = query_get_int(&q);
	b->updated_at = query_get_int(&q);
	b->spec = query_get_copy(&q);
	b->asked = query_get_int(&q);
	b->reason = query_get_copy(&q);
	return true;
}

static bool job_before_read(struct store *s, const struct op_job_change *c, struct job_before *b, struct err *e)
{
	return job_before_query(s, Q_JOB_CHANGE_READ, c, b, e);
}

static bool change_read(struct store *s, const struct op_job_change *c, struct job_before *b, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_LOCK, e);

	query_int(&q, c->id);
	/* a batch that is not exclusive has locked the job before */
	if ((s->writers_lock == WRITERS_SHARED && !query_ahead(&q)) || !job_before_query(s, Q_JOB_CHANGE_LOCK, c, b, e))
		return false;
	b->due = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

/* A new schedule makes suspended and finished jobs active; other jobs keep their state. */
static enum job_state becomes(const struct op_job_change *c, const struct job_before *b)
{
	bool again = b->state == JOB_SUSPENDED || b->state == JOB_FINISHED;

	return c->reschedule && again ? JOB_ACTIVE : b->state;
}

/* On a server the query can be sent before the owner is known. */
static struct query rival_query(struct store *s, const struct op_job_change *c, int64_t uid, struct err *e)
{
	struct query q = query_start(s->db, s->db->defer ? Q_JOB_NAME_RIVAL : Q_JOB_BY_LIVE_NAME, e);

	query_int(&q, s->db->defer ? c->id : uid);
	query_text(&q, c->to.name);
	return q;
}

static bool rival_read(struct store *s, const struct op_job_change *c, int64_t uid, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = rival_query(s, c, uid, e);

	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

static bool change_check_name(struct store *s, const struct op_job_change *c, const struct job_before *b, struct err *why,
	struct err *e)
{
	int64_t id;

	if (!c->to.name || !job_row_is_live(becomes(c, b)) || (job_row_is_live(b->state) && text_equal(b->name, c->to.name)))
		return true;
	if (!rival_read(s, c, b->uid, &id, e))
		return false;
	if (id && id != c->id && prefetch_is_late(s) && !rival_read(s, c, b->uid, &id, e)) /* freed by this batch? */
		return false;
	if (id && id != c->id) {
		err_field(why, "name", "the name '%s' is taken by job %lld; choose another", c->to.name, (long long)id);
		why->kind = ERR_CONFLICT;
	}
	return true;
}

static bool change_check_limits(struct store *s, const struct op_job_change *c, const struct job_before *b, struct err *why,
	struct err *e)
{
	int64_t n, longer = (int64_t)strlen(c->to.spec) - (int64_t)strlen(b->spec);

	/* a definition that does not grow is accepted: it may bring the owner below the limit */
	if (longer > 0 && !owner_quota_check(s, b->uid, c->id, b->owner, longer + REVISION_BYTES + (int64_t)strlen(c->to.spec),
		c->to.bytes_limit, why, e))
		return false;
	if (why->kind || !c->to.limit || job_row_is_live(b->state) || !job_row_is_live(becomes(c, b)))
		return true;
	if (!owner_live_jobs(s, b->uid, c->id, &n, e))
		return false;
	if (n >= c->to.limit)
		err_set(why, ERR_LIMIT, "'%s' has %lld jobs, more than %lld are not allowed; remove some with 'jobctl rm'",
			b->owner, (long long)n, (long long)c->to.limit);
	return true;
}

/*
 * An owner must not escape a pause that an administrator set: a new name would let a new job use
 * the old one, and a new schedule would make a suspended job active without its pause.
 */
static bool change_check_pause(struct store *s, const struct op_job_change *c, const struct job_before *b, struct err *why,
	struct err *e)
{
	const struct job_row j = {.id = c->id, .uid = b->uid, .reason = b->reason};
	AUTO_TEXT subject = xprintf("job %lld", (long long)c->id);
	AUTO_DONE(pause_order) imposed = {};
	bool found;

	if (text_equal(b->name, c->to.name) && becomes(c, b) == b->state)
		return true;
	if (!pause_imposed_on_job(s, c->uid, &j, c->to.now, &imposed, &found, e))
		return false;
	if (found)
		pause_deny(why, subject, &imposed);
	return true;
}

/* A slot that is due but not planned belongs to the old definition: it must become a run first. */
static bool being_planned(const struct op_job_change *c, const struct job_before *b)
{
	return c->reschedule && slot_known(b->due) && b->due <= c->to.now;
}

static bool change_check_chains(struct store *s, const struct op_job_change *c, const struct job_before *b, struct err *why,
	struct err *e)
{
	struct job_new j = c->to;

	j.uid = b->uid;
	return job_chains_check(s, &j, c->id, why, e);
}

static bool change_check(struct store *s, struct op_job_change *c, const struct job_before *b, struct err *why, struct err *e)
{
	long long id = c->id;

	if (!b->owner)
		err_set(why, ERR_NOT_FOUND, "no job %lld", id);
	else if (c->uid == OWNER_NOT_ROOT && owner_uid(b->uid) == 0)
		err_set(why, ERR_DENIED, "job %lld is root's; only root changes it", id);
	else if (b->state == JOB_CANCELLED)
		err_set(why, ERR_CONFLICT, "job %lld is cancelled; 'jobctl resume %lld' brings it back, then it can be changed", id,
			id);
	else if ((c->stale = c->expect && c->expect != b->revision))
		err_set(why, ERR_CONFLICT, "job %lld is at revision %lld and not at %lld any more; look at it again with "
			"'jobctl show %lld'", id, (long long)b->revision, (long long)c->expect, id);
	else if (being_planned(c, b))
		err_set(why, ERR_BUSY, "a slot of job %lld is due at this moment; try again", id);
	if (why->kind)
		return true;
	if ((strcmp(job_queue(&c->to), b->queue) != 0 || (job_row_is_live(becomes(c, b)) && !job_row_is_live(b->state))) &&
	    !limit_queue_check(s, job_queue(&c->to), why, e))
		return false;
	if (why->kind)
		return true;
	if (!change_check_pause(s, c, b, why, e))
		return false;
	if (why->kind)
		return true;
	return change_check_name(s, c, b, why, e) && (why->kind || change_check_limits(s, c, b, why, e)) &&
	       change_check_chains(s, c, b, why, e);
}

/* ---- runs and slots ---- */

static bool unplanned_take(struct store *s, struct op_job_change *c, struct query *q)
{
	while (query_row(q)) {
		int64_t uid;

		query_get_int(q);
		counter_change(s, COUNT_RUNS, RUN_QUEUED, query_get_text(q), -1);
		uid = query_get_int(q);
		owner_quota_add(s, uid, -query_get_int(q));
		c->unplanned++;
	}
	return !q->failed;
}

/* A run that was queued again has the queue that its job had when it was claimed. */
static bool requeued_take(struct store *s, const struct op_job_change *c, struct query *q)
{
	while (query_row(q)) {
		const char *queue = query_get_text(q);
		int64_t n = query_get_int(q);

		counter_change(s, COUNT_RUNS, RUN_QUEUED, queue, -n);
		counter_change(s, COUNT_RUNS, RUN_QUEUED, job_queue(&c->to), n);
	}
	return !q->failed;
}

/* Queued runs get the new queue, priority and policy; held runs are claimed again. */
static bool rewrite_runs(struct store *s, const struct op_job_change *c, struct err *e)
{
	const struct start_policy *p = &c->to.policy;
	AUTO_QUERY q = query_start(s->db, Q_RUNS_REWRITE, e);

	query_int(&q, c->id);
	query_text(&q, job_queue(&c->to));
	query_int(&q, c->to.priority);
	query_int(&q, p->overlap);
	query_int(&q, p->overlap_waiting);
	query_int(&q, p->permits);
	query_int(&q, p->deadline);
	query_int(&q, p->expires);
	query_int(&q, p->gated);
	query_int(&q, p->notifies);
	return query_finish(&q);
}

/* Deletes the planned runs of the old schedule, and rewrites the others. */
static bool change_runs(struct store *s, struct op_job_change *c, struct err *e)
{
	AUTO_QUERY unplan = query_start(s->db, Q_RUNS_UNPLAN, e);
	AUTO_QUERY queued = query_start(s->db, Q_RUNS_QUEUED_OF, e);

	query_int(&unplan, c->id);
	query_int(&unplan, c->to.now);
	query_int(&queued, c->id);
	return (!c->reschedule || query_ahead(&unplan)) && query_ahead(&queued) && (!c->reschedule || unplanned_take(s, c, &unplan)) &&
	       requeued_take(s, c, &queued) && rewrite_runs(s, c, e);
}

/* The same without waiting for replies. */
static bool change_runs_known(struct store *s, struct op_job_change *c, struct open_runs *runs, struct err *e)
{
	size_t unplanned = 0;
	usec_t first;

	if (!open_runs_read(s, c->id, c->to.now, runs, e) ||
	    (c->reschedule && !open_runs_unplan(s, runs, c->to.now, &first, &unplanned, e)))
		return false;
	c->unplanned = (int64_t)unplanned;
	for (size_t i = 0; i < runs->n; i++) {
		struct open_run *r = &runs->v[i];

		if (r->ended || r->state != RUN_QUEUED)
			continue;
		counter_change(s, COUNT_RUNS, RUN_QUEUED, r->queue, -1);
		counter_change(s, COUNT_RUNS, RUN_QUEUED, job_queue(&c->to), 1);
		r->hold = r->hold == HOLD_PERMIT ? HOLD_NONE : r->hold; /* as runs_rewrite sets it */
	}
	return rewrite_runs(s, c, e);
}

static bool any_open(struct store *s, const struct op_job_change *c, const struct open_runs *runs, bool *ret, struct err *e)
{
	AUTO_QUERY q = {};

	*ret = c->run || open_runs_count(runs) > 0;
	if (s->db->defer)
		return true;
	q = query_start(s->db, Q_RUNS_OPEN_OF, e);
	query_int(&q, c->id);
	*ret = query_row(&q);
	return !q.failed;
}

/*
 * Sets the first slot of the new schedule. A schedule that counts from the end of a run waits for
 * it.
 */
static bool put_due(struct store *s, const struct op_job_change *c, const struct open_runs *runs, struct err *e)
{
	AUTO_SET drop = {};
	AUTO_SET due = {};
	bool open = false;

	set_id(&drop, c->id);
	if (!set_execute(s, Q_DUE_DROP, &drop, e) || (c->follows && !any_open(s, c, runs, &open, e)))
		return false;
	if (!open && !c->to.next_slot)
		return true;
	set_item(&due);
	set_int(&due, "job", c->id);
	set_int(&due, "segment", job_segment((uint64_t)c->id));
	set_int(&due, "slot", open ? USEC_NEVER : c->to.next_slot);
	return set_execute(s, Q_DUE_INSERT, &due, e);
}

static bool run_now(struct store *s, struct op_job_change *c, const struct job_before *b, struct err *e)
{
	struct run_new r = {.job = c->id, .uid = b->uid, .kind = RUN_KIND_SCHEDULE,
		.state = RUN_QUEUED, .slot = c->to.run_at, .due_at = c->to.run_at + c->to.run_delay,
		.revision = c->revision, .priority = c->to.priority, .queue = job_queue(&c->to), .policy = c->to.policy,
		.now = c->to.now};
	AUTO_SET runs = {};

	if (!c->to.run_at)
		return true;
	if (!row_ids_take(s, Q_RUN_IDS, 1, &r.id, e))
		return false;
	c->run = r.id;
	runs_describe(&runs, &r);
	return s->db->defer ? run_insert_free(s, &runs, &r, e) : runs_insert(s, &runs, NULL, e);
}

/* ---- the definition ---- */

static bool put_history(struct store *s, const struct op_job_change *c, const struct job_before *b, const struct actor *by,
	struct err *e)
{
	const struct revision first = {.number = b->revision, .uid = b->uid, .who = b->owner,
		.at = b->revision == 1 ? b->created_at : b->updated_at, .what = (char *)"added", .spec = b->spec};
	const struct revision now = {.number = c->revision, .uid = by->uid, .who = (char *)(by->who[0] ? by->who : NULL),
		.at = c->to.now, .what = (char *)c->what, .origin = c->origin, .spec = (char *)c->to.spec};

	return job_history_add(s, c->id, b->uid, &first, &now, e);
}

static bool rewrite_job(struct store *s, const struct op_job_change *c, const struct job_before *b, struct err *e)
{
	const struct job_new *to = &c->to;
	AUTO_QUERY q = query_start(s->db, Q_JOB_REWRITE, e);

	query_int(&q, c->id);
	query_text(&q, to->name);
	query_text(&q, to->key);
	query_int(&q, job_content_digest(b->uid, to->content ? to->content : to->spec));
	query_int(&q, job_content_digest(b->uid, to->asked));
	query_int(&q, c->state);
	query_int(&q, c->revision);
	query_text(&q, job_queue(to));
	query_int(&q, to->priority);
	query_int(&q, to->boots);
	query_int(&q, to->now);
	query_int(&q, (int64_t)row_digest(b->uid, b->owner, to->spec));
	query_text(&q, to->spec);
	return query_finish(&q);
}

static bool rewrite_tags(struct store *s, const struct op_job_change *c, const struct job_before *b, struct err *e)
{
	struct job_new tagged = {.id = c->id, .tags = c->to.tags};
	AUTO_QUERY q = query_start(s->db, Q_TAGS_DROP, e);

	query_int(&q, c->id);
	return query_finish(&q) && job_tags_insert(s, &tagged, e) &&
	       job_chains_rewrite(s, &(struct job_new){.id = c->id, .uid = b->uid, .after = c->to.after, .after_mode = c->to.after_mode}, e);
}

static void change_count(struct store *s, const struct op_job_change *c, const struct job_before *b)
{
	counter_change(s, COUNT_JOBS, b->state, b->queue, -1);
	counter_change(s, COUNT_JOBS, c->state, job_queue(&c->to), 1);
	owner_quota_add(s, b->uid, (int64_t)strlen(c->to.spec) - (int64_t)strlen(b->spec));
	if (!job_row_is_live(b->state) && job_row_is_live(c->state))
		counter_change(s, COUNT_OWNER, b->uid, "", 1);
}

/* A restored definition may have no slot left: the job finishes when its open runs have ended. */
static bool change_finish_idle(struct store *s, struct op_job_change *c, const struct job_before *b, const struct open_runs *runs,
	struct err *e)
{
	AUTO_DONE(map) finished = {};
	AUTO_SET job = {};
	bool ended = false;

	if (s->db->defer) {
		if (c->state == JOB_ACTIVE && !open_runs_finish(s, runs, c->run != 0, 0, b->uid, job_queue(&c->to), c->to.now, &ended, e))
			return false;
		c->state = ended ? JOB_FINISHED : c->state;
		return true;
	}
	set_id(&job, c->id);
	if (!job_finish_idle(s, set_json(&job), c->to.now, &finished, e))
		return false;
	if (map_get(&finished, c->id))
		c->state = JOB_FINISHED;
	return true;
}

static bool change_rows(struct store *s, struct op_job_change *c, const struct job_before *b, const struct actor *by,
	struct err *e)
{
	AUTO_DONE(open_runs) runs = {};

	c->was = b->state;
	c->state = becomes(c, b);
	c->revision = b->revision + 1;
	if (!(s->db->defer ? change_runs_known(s, c, &runs, e) : change_runs(s, c, e)) || !rewrite_job(s, c, b, e) ||
	    !rewrite_tags(s, c, b, e) || !put_history(s, c, b, by, e) ||
	    (c->reschedule && (!run_now(s, c, b, e) || !put_due(s, c, &runs, e))))
		return false;
	change_count(s, c, b);
	if (c->reschedule && !c->to.next_slot && !c->follows && job_row_is_live(c->state) && !change_finish_idle(s, c, b, &runs, e))
		return false;
	event_add(s, &(struct event_new){.at = c->to.now, .by = by, .object = c->to.name, .job = c->id, .owner = b->uid,
		.what = c->origin ? EVENT_JOB_UNDO : EVENT_JOB_CHANGE, .detail = c->what});
	return true;
}

bool job_change(struct store *s, struct op_job_change *c, const struct actor *by, struct err *why, struct err *e)
{
	__attribute__((cleanup(job_before_done))) struct job_before b = {};

	prefetch_job(s, c->id);
	if (!change_read(s, c, &b, e) || !change_check(s, c, &b, why, e))
		return false;
	return why->kind || change_rows(s, c, &b, by, e);
}

/* Reads without locks: the connection is read-only, and nothing is changed. */
bool job_change_dry_run(struct store *s, struct op_job_change *c, struct err *e)
{
	__attribute__((cleanup(job_before_done))) struct job_before b = {};
	struct err why = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !job_before_read(s, c, &b, e) || !change_check(s, c, &b, &why, e) || !tx_commit(&tx, e))
		return false;
	c->was = b.state;
	c->state = becomes(c, &b);
	c->revision = b.revision + 1;
	if (why.kind && e)
		*e = why;
	return !why.kind;
}

bool job_change_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct err why = {};

		if (!job_change(s, job_change_op(ops[i]), &ops[i]->act.by, &why, e))
			return false;
		if (why.kind) {
			ops[i]->ok = false;
			ops[i]->err = why;
		}
	}
	return true;
}

bool job_change_prefetch(struct store *s, const struct op *op, struct err *e)
{
	const struct op_job_change *c = job_change_op(op);
	AUTO_QUERY before = before_query(s, Q_JOB_CHANGE_LOCK, c, e);
	AUTO_QUERY rival = {};

	if (prefetch_repeats(s, c->id))
		return true;
	if (c->to.name)
		rival = rival_query(s, c, -1, e);
	return query_prefetch(&before) && job_row_due_prefetch(s, c->id, e) && (!c->to.name || query_prefetch(&rival)) &&
	       limit_queue_prefetch(s, c->to.queue, e) && (c->uid < 0 || pause_row_prefetch(s, c->id, e)) &&
	       (!c->to.bytes_limit || owner_count_prefetch(s, COUNT_STORE, c->id, e)) &&
	       open_runs_prefetch(s, c->id, c->to.now, e) && job_history_prefetch(s, c->id, e) &&
	       (!c->to.run_at || row_ids_prefetch_run(s, e));
}

void job_change_reset(struct op *op)
{
	struct op_job_change *c = job_change_op(op);

	c->revision = c->unplanned = c->run = 0;
	c->stale = false;
	c->was = c->state = JOB_ACTIVE;
}

void job_change_owners(const struct store *s, const struct op *op, struct set *owners, struct set *jobs)
{
	(void)s;
	(void)owners;
	if (job_change_op(op)->to.name || job_change_op(op)->to.key)
		set_id(jobs, job_change_op(op)->id);
}

/* Links of other jobs must not change during the search for cycles, so a change with links excludes all other writers. */
enum writers_lock job_change_writers(const struct op *op)
{
	const struct strv *after = job_change_op(op)->to.after;

	return after && after->n > 0 ? WRITERS_EXCLUSIVE : WRITERS_SHARED;
}

void job_change_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)runs;
	set_id(jobs, job_change_op(op)->id);
}
