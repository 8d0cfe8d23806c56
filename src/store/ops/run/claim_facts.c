/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the runs of a lane with the facts that the claim decision needs. */
#include "base/map.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/policy.h"
#include "core/job/run.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/claims.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

static struct job_now *job_of(struct claim *c, int64_t id)
{
	struct job_now *j = map_get(&c->jobs, id);

	if (!j) {
		j = xcalloc(1, sizeof(*j));
		j->id = id;
		map_put(&c->jobs, id, j);
	}
	return j;
}

/* ---- runs ---- */

/* A freeze takes precedence over a pause. */
static void note_pause(struct claim_facts *f, enum run_hold what, const struct claim_pause *p)
{
	if (!p->past && (!p->later || p->at <= f->now) && (p->until == 0 || p->until > f->now) && f->stopped != HOLD_FROZEN)
		f->stopped = what;
	if (p->at <= f->slot && (p->until == 0 || p->until > f->slot) && f->slot_stopped != HOLD_FROZEN)
		f->slot_stopped = what;
}

struct candidate *claim_candidate_read(struct claim *c, struct lane *l, struct query *q)
{
	struct candidate *r = xcalloc(1, sizeof(*r));
	struct claim_facts *f = &r->facts;
	enum job_state job_state;
	enum run_force force;
	struct claim_pause pause = {};

	r->lane = l;
	r->id = query_get_int(q);
	r->job = job_of(c, query_get_int(q));
	f->now = c->c->now;
	f->kind = (enum run_kind)query_get_int(q);
	f->attempt = query_get_int(q);
	f->slot = query_get_int(q);
	r->due_at = query_get_int(q);
	f->held_by = r->held_by = query_get_copy(q);
	if (!f->held_by && l->closed_at >= r->due_at)
		f->held_by = "limit";
	f->policy.overlap = (enum overlap_word)query_get_int(q);
	f->policy.overlap_waiting = query_get_int(q);
	f->policy.permits = query_get_int(q);
	f->policy.deadline = query_get_int(q);
	f->policy.expires = query_get_int(q);
	r->gated = query_get_int(q) & GATED_ASK;
	force = (enum run_force)query_get_int(q);
	f->forced = force != FORCE_NONE;
	f->overrides_freeze = force == FORCE_FREEZE;
	job_state = (enum job_state)query_get_int(q);
	pause.at = query_get_int(q);
	pause.until = query_get_int(q);
	pause.later = job_state != JOB_PAUSED;
	if (job_state == JOB_PAUSED || pause.at)
		note_pause(f, HOLD_PAUSED, &pause);
	if (query_get_int(q))
		f->slot_stopped = HOLD_PAUSED;
	f->recurs = query_get_int(q);
	if (!r->job->permits_known)
		r->job->taken = query_get_int(q);
	else
		query_get_int(q); /* outdated: this claim has changed it */
	r->permit = query_get_int(q);
	f->has_permit = r->permit > 0;
	f->overtaken = query_get_int(q) > 0;
	f->caught_up = query_get_int(q);
	r->created_at = query_get_int(q);
	return r;
}

void claim_candidate_free(struct candidate *r)
{
	free(r->held_by);
	claimed_done(&r->row);
	free(r);
}

void claim_add_candidate(struct lane *l, struct candidate *r)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = r;
	l->last_due = r->due_at;
	l->last_id = r->id;
}

static bool due_rows_read(struct claim *c, struct lane *l, struct query *q, size_t *ret_rows)
{
	while (!l->read_all && query_row(q)) {
		struct candidate *r = claim_candidate_read(c, l, q);

		++*ret_rows;
		if (r->due_at > c->c->now) {
			l->read_all = true;
			l->then = r->due_at;
			claim_candidate_free(r);
		} else {
			claim_add_candidate(l, r);
		}
	}
	return !q->failed;
}

bool claim_pauses_matter(const struct claim *c)
{
	return c->n_pauses > 0 || c->past || c->later;
}

/* Reads one run more than 'n', which tells when the lane is due next. */
static bool read_rows(struct claim *c, struct lane *l, size_t n, struct err *e)
{
	AUTO_QUERY q = query_start(c->s->db, Q_LANE_RUNS, e);
	size_t rows = 0;

	query_text(&q, l->queue);
	query_int(&q, l->uid);
	query_int(&q, l->priority);
	query_int(&q, l->last_due);
	query_int(&q, l->last_id);
	query_int(&q, (int64_t)n + 1);
	query_int(&q, claim_pauses_matter(c));
	query_int(&q, c->c->now);
	query_text(&q, c->c->labels ? c->c->labels : "");
	if (!due_rows_read(c, l, &q, &rows))
		return false;
	if (!l->read_all && rows <= n) {
		l->read_all = true;
		l->then = USEC_NEVER;
	}
	return true;
}

/* ---- permits in use ---- */

static void add_holder(struct job_now *j, const struct permit_holder *h)
{
	j->holders = xgrow(j->holders, j->n_holders, sizeof(*j->holders));
	j->holders[j->n_holders++] = *h;
}

static bool permits_read(struct claim *c, int query, const char *jobs, struct set *runs, struct err *e)
{
	AUTO_QUERY q = query_start(c->s->db, query, e);

	query_text(&q, jobs);
	while (query_row(&q)) {
		struct job_now *j = job_of(c, query_get_int(&q));
		struct permit_holder h = {};

		h.permit = query_get_int(&q);
		h.run = query_get_int(&q);
		if (runs)
			set_id(runs, h.run);
		else
			add_holder(j, &h);
	}
	return !q.failed;
}

/*
 * Locks the runs before their permits, in the same order as the end of a run, to avoid deadlocks on
 * PostgreSQL.
 */
static bool hold_holders(struct claim *c, struct set *runs, struct map *ret, struct err *e)
{
	AUTO_QUERY q = query_start(c->s->db, Q_RUNS_LOCK, e);

	set_bind(&q, runs);
	while (query_row(&q)) {
		struct permit_holder *h = xcalloc(1, sizeof(*h));

		h->run = query_get_int(&q);
		query_get_int(&q);
		query_get_int(&q);
		h->state = (enum run_state)query_get_int(&q);
		h->fence = query_get_int(&q);
		map_put(ret, h->run, h);
	}
	return !q.failed;
}

static void fill_holders(struct job_now *j, const struct map *locked)
{
	for (size_t i = 0; i < j->n_holders; i++) {
		const struct permit_holder *h = map_get(locked, j->holders[i].run);

		if (h) {
			j->holders[i].state = h->state;
			j->holders[i].fence = h->fence;
		}
	}
	j->taken = (int64_t)j->n_holders;
}

static bool permit_waiters_count(struct claim *c, const char *jobs, struct err *e)
{
	AUTO_QUERY q = query_start(c->s->db, Q_PERMITS_AWAITED, e);

	query_text(&q, jobs);
	while (query_row(&q)) {
		struct job_now *j = job_of(c, query_get_int(&q));

		j->waiting = query_get_int(&q);
	}
	return !q.failed;
}

static bool permits_lock(struct claim *c, struct set *jobs, struct job_now **v, size_t n, struct err *e)
{
	struct map locked = {};
	struct permit_holder *h;
	AUTO_SET runs = {};
	bool ok;

	ok = permits_read(c, Q_PERMITS_OF, set_json(jobs), &runs, e) && hold_holders(c, &runs, &locked, e) &&
	     permits_read(c, Q_PERMITS_LOCK, set_json(jobs), NULL, e) && permit_waiters_count(c, set_json(jobs), e);
	for (size_t i = 0; i < n; i++)
		fill_holders(v[i], &locked);
	for (size_t i = 0; (h = map_next(&locked, &i));)
		free(h);
	map_done(&locked);
	return ok;
}

static bool permits_learn(struct claim *c, struct candidate **v, size_t n, struct err *e)
{
	struct job_now **in_use = xcalloc(n ? n : 1, sizeof(struct job_now *));
	size_t n_in_use = 0;
	AUTO_SET jobs = {};
	bool ok;

	for (size_t i = 0; i < n; i++) {
		struct job_now *j = v[i]->job;

		if (j->permits_known || v[i]->facts.policy.permits == 0)
			continue;
		j->permits_known = true;
		if (j->taken > 0) {
			set_id(&jobs, j->id);
			in_use[n_in_use++] = j;
		}
	}
	ok = jobs.n == 0 || permits_lock(c, &jobs, in_use, n_in_use, e);
	free(in_use);
	return ok;
}

/* ---- conditions and rates ---- */

static bool learn_gates(struct claim *c, struct candidate **v, size_t n, struct err *e)
{
	AUTO_SET jobs = {};
	AUTO_QUERY q = {};

	for (size_t i = 0; c->c->gate && i < n; i++)
		if (v[i]->gated && !v[i]->job->gate_known) {
			v[i]->job->gate_known = true;
			set_id(&jobs, v[i]->job->id);
		}
	if (jobs.n == 0)
		return true;
	q = query_start(c->s->db, Q_JOBS_GATED, e);
	set_bind(&q, &jobs);
	while (query_row(&q)) {
		struct job_now *j = job_of(c, query_get_int(&q));
		int64_t uid = query_get_int(&q);
		AUTO_TEXT owner = query_get_copy(&q);
		AUTO_TEXT spec = query_get_copy(&q);
		struct gate_says says = {.met = true};

		if ((uint64_t)query_get_int(&q) == row_digest(uid, owner, spec))
			c->c->gate(spec, &c->c->machine, &says);
		j->bucket = j->reserved = query_get_int(&q);
		j->unmet = !says.met;
		j->unknown = says.unknown;
		j->withheld = says.withheld;
		j->rate = says.rate;
	}
	return !q.failed;
}

/* ---- pauses ---- */

/* Reads which jobs of a JSON array have the tag KEY=VALUE, or KEY with any value. */
static bool tagged_jobs_read(struct store *s, const char *jobs, const char *tag, struct map *ret, struct err *e)
{
	const char *equals = strchr(tag, '=');
	AUTO_TEXT key = xstrndup(tag, equals ? (size_t)(equals - tag) : strlen(tag));
	AUTO_QUERY q = query_start(s->db, equals ? Q_JOBS_TAGGED : Q_JOBS_TAGGED_KEY, e);

	query_text(&q, jobs);
	query_text(&q, key);
	if (equals)
		query_text(&q, equals + 1);
	while (query_row(&q)) {
		int64_t job = query_get_int(&q);

		map_put(ret, job, s);
	}
	return !q.failed;
}

bool claim_pause_tagged(struct store *s, const struct claim_pause *p, const char *jobs, struct map *ret, struct err *e)
{
	const char *tag = text_equal(p->scope, "tag") ? p->key : p->spared;

	return !*tag || tagged_jobs_read(s, jobs, tag, ret, e);
}

bool claim_pause_covers(const struct claim_pause *p, const struct map *tagged, int64_t job)
{
	return (map_get(tagged, job) != NULL) == text_equal(p->scope, "tag");
}

/* Whether a pause of a scope applies to a lane, by owner and queue. Tags are checked per job. */
static bool scope_covers(const struct claim_pause *p, const struct lane *l)
{
	return (p->uid < 0 || p->uid == l->uid) && (!text_equal(p->scope, "queue") || text_equal(p->key, l->queue));
}

static bool scope_pause_apply(struct claim *c, const struct claim_pause *p, struct candidate **v, size_t n,
	const char *jobs, struct err *e)
{
	enum run_hold hold = text_equal(p->scope, "freeze") ? HOLD_FROZEN : HOLD_PAUSED;
	AUTO_DONE(map) tagged = {};

	if (!claim_pause_tagged(c->s, p, jobs, &tagged, e))
		return false;
	for (size_t i = 0; i < n; i++)
		if (claim_pause_covers(p, &tagged, v[i]->job->id))
			note_pause(&v[i]->facts, hold, p);
	return true;
}

static bool learn_pauses(struct claim *c, const struct lane *l, struct candidate **v, size_t n, struct err *e)
{
	AUTO_SET jobs = {};

	for (size_t i = 0; c->n_pauses && i < n; i++)
		set_id(&jobs, v[i]->job->id);
	for (size_t i = 0; i < c->n_pauses; i++)
		if (scope_covers(&c->pauses[i], l) && !scope_pause_apply(c, &c->pauses[i], v, n, set_json(&jobs), e))
			return false;
	return true;
}

bool claim_lane_read(struct claim *c, struct lane *l, size_t n, struct err *e)
{
	size_t from = l->n;

	if (!(c->s->writers_lock == WRITERS_SHARED ? claim_hold_runs : read_rows)(c, l, n, e))
		return false;
	l->front = l->next < l->n ? l->v[l->next]->due_at : l->then;
	return permits_learn(c, l->v + from, l->n - from, e) && learn_gates(c, l->v + from, l->n - from, e) &&
	       learn_pauses(c, l, l->v + from, l->n - from, e);
}
