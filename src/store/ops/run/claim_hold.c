/* SPDX-License-Identifier: Apache-2.0 */
/* Locks the due runs of a lane while other nodes claim too, and reads them. */
#include "base/map.h"
#include "base/text.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/claims.h"
#include "store/store_private.h"

#define CHUNK_MIN 8     /* runs of a lane that are read at a time */
#define CHUNK_MAX 512
#define WINDOW 4        /* jobs of this node's segments are searched in so many times the wanted runs */
#define OLD (5 * USEC_SEC) /* a run that has waited for longer is claimed like those of this node's segments */

size_t claim_chunk(size_t room, size_t lanes)
{
	size_t n = room / lanes + 1;

	return n < CHUNK_MIN ? CHUNK_MIN : n > CHUNK_MAX ? CHUNK_MAX : n;
}

static struct query held_start(struct claim *c, const struct lane *l, bool stops, struct err *e)
{
	struct query q = query_start(c->s->db, Q_LANE_HELD, e);

	query_int(&q, stops);
	query_int(&q, c->c->now);
	query_text(&q, l->queue);
	query_int(&q, l->uid);
	query_int(&q, l->priority);
	query_text(&q, c->c->labels ? c->c->labels : "");
	return q;
}

/*
 * Sends three statements together: one locks the jobs, the second reads the facts, the third reads
 * the rows that the claim returns. The first one stores the numbers of the runs in a setting of the
 * transaction, where the others read them. Jobs that another node has locked are skipped.
 */
static bool hold_send(struct claim *c, struct claim_prefetch *p, const struct lane *l, size_t n, bool stops, struct err *e)
{
	p->n = n;
	p->stops = stops;
	p->hold = query_start(c->s->db, Q_LANE_HOLD, e);
	query_text(&p->hold, l->queue);
	query_int(&p->hold, l->uid);
	query_int(&p->hold, l->priority);
	query_int(&p->hold, l->last_due);
	query_int(&p->hold, l->last_id);
	query_int(&p->hold, (int64_t)n);
	query_int(&p->hold, c->c->now);
	query_text(&p->hold, c->c->labels ? c->c->labels : "");
	query_int(&p->hold, c->s->segments);
	query_int(&p->hold, (int64_t)(n * WINDOW));
	query_int(&p->hold, c->c->now - OLD);
	p->held = held_start(c, l, stops, e);
	p->rows = query_start(c->s->db, Q_LANE_ROWS, e);
	return query_ahead(&p->hold) && query_ahead(&p->held) && query_ahead(&p->rows);
}

void claim_prefetch_done(struct claim_prefetch *p)
{
	query_done(&p->hold);
	query_done(&p->held);
	query_done(&p->rows);
	free(STEAL(p->queue));
}

bool claim_prefetch_send(struct claim *c, struct err *e)
{
	const struct lane_last *last = &c->s->lane_last;
	struct lane l = {.queue = last->queue, .uid = last->uid, .priority = last->priority, .last_due = -1};

	if (!last->queue || c->s->writers_lock != WRITERS_SHARED)
		return true;
	c->prefetch.queue = xstrdup(last->queue);
	c->prefetch.uid = last->uid;
	c->prefetch.priority = last->priority;
	return hold_send(c, &c->prefetch, &l, claim_chunk(c->c->room, 1), last->stops, e);
}

static bool prefetch_matches(const struct claim_prefetch *p, const struct lane *l)
{
	return p->queue && l->last_due < 0 && p->uid == l->uid && p->priority == l->priority && text_equal(p->queue, l->queue);
}

/* The next claim prefetches the runs of this lane. With a limit they must not be locked before the limit. */
static void lane_remember(struct claim *c, const struct lane *l)
{
	struct lane_last *last = &c->s->lane_last;
	bool limited = l->of_queue->running || l->of_queue->rate.n || l->of_owner->running || l->of_owner->rate.n;

	free(STEAL(last->queue));
	if (!limited)
		*last = (struct lane_last){xstrdup(l->queue), l->uid, l->priority, claim_pauses_matter(c)};
}

/* ---- the replies ---- */

/* The runs that were locked, by the order in which the first statement has seen them. */
struct hold_result {
	size_t n;
	usec_t last_due; /* of the last one; the next chunk of the lane begins after it */
	int64_t last_id;
};

static bool hold_take(struct claim *c, struct lane *l, struct claim_prefetch *p, struct hold_result *ret)
{
	usec_t rest = USEC_NEVER;

	while (query_row(&p->hold)) {
		ret->last_id = query_get_int(&p->hold);
		ret->last_due = query_get_int(&p->hold);
		ret->n += ret->last_id != 0;
		c->passed |= query_get_int(&p->hold) > 0;
		rest = query_get_int(&p->hold);
	}
	if (!p->hold.failed && ret->n < p->n) {
		l->read_all = true;
		l->then = rest;
	}
	return !p->hold.failed;
}

/* A run that has changed before its job was locked is left out, and 'passed' makes the next claim read the lane again. */
static bool held_take(struct claim *c, struct lane *l, struct claim_prefetch *p, const struct hold_result *hold)
{
	size_t rows = 0;

	while (query_row(&p->held)) {
		claim_add_candidate(l, claim_candidate_read(c, l, &p->held));
		rows++;
	}
	c->passed |= rows < hold->n;
	if (hold->n > 0) {
		l->last_due = hold->last_due;
		l->last_id = hold->last_id;
	}
	return !p->held.failed;
}

/* Both lists have the same order; a run may be missing from either. */
static bool rows_take(struct lane *l, struct claim_prefetch *p, size_t from)
{
	while (query_row(&p->rows)) {
		struct claimed row = claimed_read(&p->rows);
		size_t at = from;

		row.run->revision = query_get_int(&p->rows);
		while (at < l->n && l->v[at]->id != row.run->id)
			at++;
		if (at < l->n) {
			l->v[at]->row = row;
			from = at + 1;
		} else {
			claimed_done(&row);
		}
	}
	return !p->rows.failed;
}

void claim_prefetch_forget(struct claim *c)
{
	if (c->prefetch.queue)
		free(STEAL(c->s->lane_last.queue));
}

bool claim_hold_runs(struct claim *c, struct lane *l, size_t n, struct err *e)
{
	struct claim_prefetch *p = &c->prefetch;
	struct hold_result hold = {};
	size_t from = l->n;
	bool ok;

	if (!prefetch_matches(p, l)) {
		claim_prefetch_done(p);
		if (!hold_send(c, p, l, n, claim_pauses_matter(c), e))
			return false;
	} else if (claim_pauses_matter(c) && !p->stops) {
		query_done(&p->held);
		p->held = held_start(c, l, true, e);
	}
	ok = hold_take(c, l, p, &hold) && held_take(c, l, p, &hold) && rows_take(l, p, from);
	claim_prefetch_done(p);
	if (ok && hold.n > 0)
		lane_remember(c, l);
	return ok;
}
