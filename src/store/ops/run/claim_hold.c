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
	p->held = query_start(c->s->db, Q_LANE_HELD, e);
	query_int(&p->held, stops);
	query_int(&p->held, c->c->now);
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

static bool hold_take(struct claim *c, struct lane *l, struct claim_prefetch *p, size_t *ret_n)
{
	usec_t rest = USEC_NEVER;

	while (query_row(&p->hold)) {
		*ret_n += query_get_int(&p->hold) != 0;
		c->passed |= query_get_int(&p->hold) > 0;
		rest = query_get_int(&p->hold);
	}
	if (!p->hold.failed && *ret_n < p->n) {
		l->read_all = true;
		l->then = rest;
	}
	return !p->hold.failed;
}

/* A run that has changed before its job was locked is left out; 'passed' makes the next claim read the lane again. */
static bool held_take(struct claim *c, struct lane *l, struct claim_prefetch *p, size_t wanted)
{
	size_t rows = 0;

	while (query_row(&p->held)) {
		claim_add_candidate(l, claim_candidate_read(c, l, &p->held));
		rows++;
	}
	c->passed |= rows < wanted;
	return !p->held.failed;
}

/* Both lists have the same order; a run may be missing from either. */
static bool rows_take(struct lane *l, struct claim_prefetch *p, size_t from)
{
	while (query_row(&p->rows)) {
		struct claimed row = claimed_read(&p->rows);

		row.run->revision = query_get_int(&p->rows);
		while (from < l->n && l->v[from]->id != row.run->id)
			from++;
		if (from < l->n)
			l->v[from++]->row = row;
		else
			claimed_done(&row);
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
	size_t from = l->n, held = 0;
	bool ok;

	if (!prefetch_matches(p, l)) {
		claim_prefetch_done(p);
		if (!hold_send(c, p, l, n, claim_pauses_matter(c), e))
			return false;
	} else if (claim_pauses_matter(c) && !p->stops) {
		query_done(&p->held);
		p->held = query_start(c->s->db, Q_LANE_HELD, e);
		query_int(&p->held, true);
		query_int(&p->held, c->c->now);
	}
	ok = hold_take(c, l, p, &held) && held_take(c, l, p, held) && rows_take(l, p, from);
	claim_prefetch_done(p);
	if (ok && held > 0)
		lane_remember(c, l);
	return ok;
}
