/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims due runs for this node. Each run is started, skipped, expired or left waiting; the
 * decisions are written in one statement per kind.
 */
#include "store/ops/run/claims.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/decide/claim.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/runs.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/wakeup.h"

#define CHUNK_MORE 128  /* runs of a lane that are read at a time after the first chunk */

/* ---- one run ---- */

static struct claim_verdict verdict(const struct candidate *r)
{
	struct claim_facts f = r->facts;
	const struct job_now *j = r->job;
	usec_t bucket = j->bucket, again = 0;

	f.taken = j->taken;
	f.waiting = j->waiting;
	f.unmet = r->gated && j->unmet;
	f.withheld = r->gated ? j->withheld : NULL;
	f.unknown = j->unknown;
	if (r->gated && !policy_rate_take(&j->rate, f.now, &bucket, &again))
		f.rate_at = again;
	return claim_decide(&f);
}

static bool permit_in_use(const struct job_now *j, int64_t permit)
{
	for (size_t i = 0; i < j->n_holders; i++)
		if (j->holders[i].permit == permit)
			return true;
	return false;
}

static void permit_take(struct candidate *r)
{
	struct job_now *j = r->job;

	r->permit = 1;
	while (permit_in_use(j, r->permit))
		r->permit++;
	j->holders = xgrow(j->holders, j->n_holders, sizeof(*j->holders));
	j->holders[j->n_holders++] = (struct permit_holder){.permit = r->permit, .run = r->id, .state = RUN_CLAIMED, .here = r};
	j->taken++;
}

static void candidate_start(struct claim *c, struct candidate *r)
{
	struct job_now *j = r->job;
	usec_t again;

	if (r->verdict.takes_permit)
		permit_take(r);
	if (r->gated && j->rate.n > 0 && policy_rate_take(&j->rate, r->facts.now, &j->bucket, &again))
		j->bucket_taken = true;
	if (j->reserved < j->bucket)
		j->reserved = j->bucket;
	claim_take_rates(r->lane, c->c->now);
	claim_count_active(r->lane, 1);
	c->started++;
}

/* Undoes the start of a candidate of this claim. */
static void candidate_unstart(struct claim *c, struct candidate *r)
{
	if (r->verdict.verb != CLAIM_START)
		return;
	if (r->gated && r->job->rate.n > 0)
		r->job->bucket -= r->job->rate.per / r->job->rate.n;
	claim_return_rates(r->lane);
	claim_count_active(r->lane, -1);
	c->started--;
}

/* Skips a candidate of this claim that was to start or waited, in favour of a newer one. */
static void candidate_yield(struct claim *c, struct candidate *r)
{
	candidate_unstart(c, r);
	r->verdict = (struct claim_verdict){.verb = CLAIM_SKIP, .reason = "overlap"};
}

/*
 * Cancels a run that waits for a retry. If the retry is a candidate of this claim, it does not
 * start.
 */
static void end_waiting(struct claim *c, int64_t run)
{
	runs_describe_end(&c->ended, run, RUN_CANCELLED, "replaced");
	map_put(&c->gone, run, c);
	for (size_t i = 0; i < c->n_decided; i++) {
		struct candidate *r = c->decided[i];

		if (r->id == run) {
			candidate_unstart(c, r);
			r->verdict.verb = CLAIM_VERB_MAX;
		}
	}
}

/*
 * Replaces the other runs of the job: active runs are asked to end; runs that only hold a permit
 * end here.
 */
static void candidates_replace(struct claim *c, struct candidate *r)
{
	struct job_now *j = r->job;
	size_t kept = 0;

	j->skip_waiting = true;
	if (j->held)
		candidate_yield(c, j->held);
	j->held = NULL;
	for (size_t i = 0; i < j->n_holders; i++) {
		struct permit_holder *h = &j->holders[i];

		if (h->here) {
			candidate_yield(c, h->here);
		} else if (h->state == RUN_QUEUED) {
			end_waiting(c, h->run);
		} else {
			set_id(&c->replaced, h->run);
			j->holders[kept++] = *h;
		}
	}
	j->n_holders = kept;
	j->taken = (int64_t)kept;
}

/*
 * Gives each run that waits for the rate its own time, so that they are not all examined at each
 * claim.
 */
static usec_t rate_reserve(struct job_now *j, usec_t at)
{
	usec_t step = j->rate.per / j->rate.n, mine = j->reserved - step * (j->rate.burst - 1);

	j->reserved += step;
	return mine > at ? mine : at;
}

static void candidate_decide(struct claim *c, struct candidate *r)
{
	struct job_now *j = r->job;

	r->verdict = verdict(r);
	if (r->verdict.replaces) {
		candidates_replace(c, r);
		r->verdict = verdict(r);
	}
	switch (r->verdict.verb) {
	case CLAIM_START:
		candidate_start(c, r);
		break;
	case CLAIM_HOLD:
		j->waiting += r->verdict.hold == HOLD_PERMIT;
		if (r->verdict.replaces)
			j->held = r;
		break;
	case CLAIM_WAIT:
		if (text_equal(r->verdict.reason, "rate"))
			r->verdict.at = rate_reserve(j, r->verdict.at);
		else if (r->facts.kind == RUN_KIND_SCHEDULE && r->facts.attempt == 0 && r->facts.slot > j->unmet_slot)
			j->unmet_slot = r->facts.slot;
		break;
	default:
		break;
	}
	c->decided = xgrow(c->decided, c->n_decided, sizeof(*c->decided));
	c->decided[c->n_decided++] = r;
}

/*
 * While the clock is unsure, a run of an earlier time may have a slot that is not due, and a rate
 * would be counted by the wrong time.
 */
static bool candidate_waits_for_clock(struct claim *c, const struct candidate *r)
{
	const struct lane *l = r->lane;
	bool waits = c->c->made_since && (r->created_at < c->c->made_since || r->gated || l->of_queue->rate.n > 0 ||
						 l->of_owner->rate.n > 0);

	c->unsure |= waits;
	return waits;
}

/* ---- all candidates ---- */

static size_t chunk(const struct claim *c, const struct lane *l)
{
	size_t due = 0;

	if (l->n > 0)
		return CHUNK_MORE;
	for (size_t i = 0; i < c->n_lanes; i++)
		due += c->lanes[i].front <= c->c->now;
	return claim_chunk(c->c->room - c->started, due);
}

static bool decide_all(struct claim *c, struct err *e)
{
	struct lane *l;

	while (c->started < c->c->room && claim_next_lane(c, &l)) {
		struct candidate *r;

		if (l->next == l->n) {
			if (!claim_lane_read(c, l, chunk(c, l), e))
				return false;
			continue;
		}
		r = l->v[l->next++];
		if (map_get(&c->gone, r->id) || candidate_waits_for_clock(c, r))
			r->verdict.verb = CLAIM_VERB_MAX;
		else
			candidate_decide(c, r);
		l->deferred += r->verdict.verb != CLAIM_START;
		if (l->next < l->n)
			l->front = l->v[l->next]->due_at;
		else if (l->read_all)
			l->front = l->then;
	}
	return true;
}

/* ---- writing ---- */

static bool queued_runs_end(struct claim *c, struct set *set, struct set *jobs, struct err *e)
{
	return runs_end_queued(c->s, set, c->c->now, &c->c->settled, jobs, e);
}

/* Skips runs that earlier claims left waiting for a permit or a condition. */
static bool skip_others(struct claim *c, int query, struct set *jobs, const char *reason, struct set *skips,
	struct err *e)
{
	AUTO_QUERY q = {};

	if (jobs->n == 0)
		return true;
	q = query_start(c->s->db, query, e);
	set_bind(&q, jobs);
	while (query_row(&q))
		runs_describe_end(skips, query_get_int(&q), RUN_SKIPPED, reason);
	return !q.failed;
}

static bool claim_ends_write(struct claim *c, struct set *jobs, struct err *e)
{
	AUTO_SET waiting = {};
	AUTO_SET unmet = {};
	AUTO_SET others = {};
	AUTO_SET ends = {};
	struct job_now *j;

	for (size_t i = 0; (j = map_next(&c->jobs, &i));) {
		if (j->skip_waiting)
			set_id(&waiting, j->id);
		if (j->unmet_slot) {
			set_item(&unmet);
			set_int(&unmet, "job", j->id);
			set_int(&unmet, "slot", j->unmet_slot);
		}
	}
	for (size_t i = 0; i < c->n_decided; i++) {
		const struct claim_verdict *v = &c->decided[i]->verdict;

		if (v->verb != CLAIM_SKIP && v->verb != CLAIM_EXPIRE)
			continue;
		runs_describe_end(&ends, c->decided[i]->id, v->verb == CLAIM_SKIP ? RUN_SKIPPED : RUN_EXPIRED, v->reason);
	}
	return queued_runs_end(c, &ends, jobs, e) && queued_runs_end(c, &c->ended, jobs, e) &&
	       skip_others(c, Q_PERMITS_AWAITING, &waiting, "overlap", &others, e) &&
	       skip_others(c, Q_RUNS_OLDER, &unmet, "condition", &others, e) && queued_runs_end(c, &others, jobs, e);
}

static bool deferrals_write(struct claim *c, struct err *e)
{
	AUTO_SET set = {};

	for (size_t i = 0; i < c->n_decided; i++) {
		const struct candidate *r = c->decided[i];
		const struct claim_verdict *v = &r->verdict;

		if (v->verb != CLAIM_HOLD && v->verb != CLAIM_WAIT)
			continue;
		set_item(&set);
		set_int(&set, "run", r->id);
		set_int(&set, "hold", v->hold);
		set_int(&set, "due_at", v->verb == CLAIM_WAIT ? v->at : r->due_at);
		set_text(&set, "reason", v->reason);
	}
	return set_execute(c->s, Q_RUNS_PUT_OFF, &set, e);
}

static bool replacements_write(struct claim *c, struct err *e)
{
	struct job_now *j;

	if (c->replaced.n == 0)
		return true;
	for (size_t i = 0; (j = map_next(&c->jobs, &i));)
		for (size_t k = 0; j->skip_waiting && k < j->n_holders; k++)
			if (!j->holders[k].here)
				run_changes_add(&c->c->replaced, &(struct run_change){.job = j->id,
					.run = j->holders[k].run, .fence = j->holders[k].fence,
					.state = j->holders[k].state});
	return set_execute(c->s, Q_RUNS_REPLACE, &c->replaced, e);
}

static bool permits_insert(struct claim *c, int64_t permit, struct set *runs, struct map *granted, struct err *e)
{
	AUTO_QUERY q = query_start(c->s->db, Q_PERMITS_INSERT, e);

	set_bind(&q, runs);
	query_int(&q, permit);
	while (query_row(&q))
		map_put(granted, query_get_int(&q), c);
	return !q.failed;
}

/*
 * Inserts all first permits in one statement, then all second ones, and so on: most jobs have one.
 * A run whose permit is in use after all does not start.
 */
static bool permits_write(struct claim *c, struct map *granted, struct err *e)
{
	for (int64_t permit = 1, next; permit > 0; permit = next) {
		AUTO_SET runs = {};

		next = 0;
		for (size_t i = 0; i < c->n_decided; i++) {
			const struct candidate *r = c->decided[i];

			if (r->verdict.verb != CLAIM_START || !r->verdict.takes_permit)
				continue;
			if (r->permit == permit)
				set_id(&runs, r->id);
			else if (r->permit > permit && (next == 0 || r->permit < next))
				next = r->permit;
		}
		if (runs.n > 0 && !permits_insert(c, permit, &runs, granted, e))
			return false;
	}
	return true;
}

/*
 * Whether all runs that start were read under the lock of their jobs, so that no reply is needed
 * before COMMIT. A statement that finds something else fails, and the batch is repeated one by one.
 */
static bool starts_are_locked(const struct claim *c)
{
	bool all = c->s->db->defer;

	for (size_t i = 0; i < c->n_decided; i++)
		all = all && (c->decided[i]->verdict.verb != CLAIM_START || c->decided[i]->row.run);
	return all;
}

static void claimed_row_update(struct claim *c, struct candidate *r)
{
	struct run *run = r->row.run;
	struct claim_list *l = &c->c->claimed;

	run->state = RUN_CLAIMED;
	run->fence++;
	run->claimed_at = c->c->now;
	free(run->node);
	run->node = xstrdup(c->c->node);
	free(STEAL(run->reason));
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = r->row;
	r->row = (struct claimed){};
}

static bool locked_starts_send(struct claim *c, const char *spawner, struct set *permits, struct set *starts, struct err *e)
{
	AUTO_QUERY q = {};

	if (!set_execute(c->s, Q_PERMITS_PUT, permits, e))
		return false;
	q = query_start(c->s->db, Q_RUNS_CLAIM_ALL, e);
	query_text(&q, c->c->node);
	query_text(&q, spawner);
	query_int(&q, c->c->now);
	set_bind(&q, starts);
	query_int(&q, (int64_t)starts->n);
	return query_finish(&q);
}

static bool locked_starts_write(struct claim *c, const char *spawner, struct err *e)
{
	AUTO_SET permits = {};
	AUTO_SET starts = {};

	for (size_t i = 0; i < c->n_decided; i++) {
		struct candidate *r = c->decided[i];

		if (r->verdict.verb != CLAIM_START)
			continue;
		if (r->verdict.takes_permit) {
			set_item(&permits);
			set_int(&permits, "job", r->job->id);
			set_int(&permits, "place", r->permit);
			set_int(&permits, "run", r->id);
		}
		set_id(&starts, r->id);
		counter_run_moved(c->s, RUN_QUEUED, RUN_CLAIMED, r->row.run->uid, r->row.run->queue);
		claimed_row_update(c, r);
	}
	return starts.n == 0 || (locked_starts_send(c, spawner, &permits, &starts, e) && claim_previous_read(c->s, &c->c->claimed, e));
}

static bool starts_write(struct claim *c, const char *spawner, struct err *e)
{
	AUTO_DONE(map) granted = {};
	AUTO_DONE(map) ours = {};
	AUTO_SET starts = {};
	AUTO_SET ids = {};
	AUTO_QUERY q = {};

	if (!permits_write(c, &granted, e))
		return false;
	for (size_t i = 0; i < c->n_decided; i++) {
		const struct candidate *r = c->decided[i];

		if (r->verdict.verb == CLAIM_START && (!r->verdict.takes_permit || map_get(&granted, r->id)))
			set_id(&starts, r->id);
	}
	if (starts.n == 0)
		return true;
	q = query_start(c->s->db, Q_RUNS_CLAIM, e);
	query_text(&q, c->c->node);
	query_text(&q, spawner);
	query_int(&q, c->c->now);
	set_bind(&q, &starts);
	while (query_row(&q)) {
		int64_t uid;

		map_put(&ours, query_get_int(&q), c);
		uid = query_get_int(&q);
		counter_run_moved(c->s, RUN_QUEUED, RUN_CLAIMED, uid, query_get_text(&q));
	}
	for (size_t i = 0; i < c->n_decided; i++)
		if (map_get(&ours, c->decided[i]->id))
			set_id(&ids, c->decided[i]->id);
	return !q.failed && claim_read_runs(c->s, set_json(&ids), &c->c->claimed, e);
}

/*
 * The order matters: waiting runs must be recorded before permits are freed, and permits freed
 * before they are taken.
 */
static bool write_all(struct claim *c, const char *spawner, struct err *e)
{
	AUTO_SET jobs = {};

	return claim_ends_write(c, &jobs, e) && deferrals_write(c, e) && replacements_write(c, e) &&
	       (jobs.n == 0 || job_finish_idle(c->s, set_json(&jobs), c->c->now, NULL, e)) &&
	       (starts_are_locked(c) ? locked_starts_write : starts_write)(c, spawner, e) && claim_write_buckets(c, e);
}

/* ---- the operation ---- */

static bool claim_runs(struct claim *c, struct claim_reads *r, const char *spawner, struct err *e)
{
	if (!claim_read(c, r, e) || !decide_all(c, e))
		return false;
	claim_prefetch_forget(c);
	c->s->claim_idle = c->n_decided == 0;
	claim_next_wakeup(c); /* before this claim frees permits */
	return (!c->past || claim_drop_past(c, e)) && write_all(c, spawner, e);
}

static bool claim_one(struct store *s, struct op *op, struct err *e)
{
	AUTO_DONE(claim) c = {.s = s, .c = claim_op(op)};
	AUTO_DONE(claim_reads) reads = {};
	AUTO_TEXT spawner = NULL;
	bool draining = false;

	if (!claim_reads_send(&c, &reads, e))
		return false;
	if (query_row(&reads.node)) {
		spawner = query_get_copy(&reads.node);
		draining = query_get_int(&reads.node);
	}
	if (reads.node.failed)
		return false;
	if (!spawner) /* an engine that was displaced, reaped or closed may not claim */
		return op_refuse(op, ERR_FENCED, "node '%s' is not open in this store: its lease is over, or "
			"another engine uses its name", c.c->node);
	if (draining)
		wakeup_claim_drained(s);
	return draining || c.c->room == 0 || claim_runs(&c, &reads, spawner, e);
}

bool claim_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!claim_one(s, ops[i], e))
			return false;
	return true;
}

void claim_reset(struct op *op)
{
	struct op_claim *c = claim_op(op);

	claim_list_done(&c->claimed);
	run_changes_done(&c->settled);
	run_changes_done(&c->replaced);
}
