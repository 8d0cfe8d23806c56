/* SPDX-License-Identifier: Apache-2.0 */
/* Locks the due runs of a lane beside the claims of other nodes, and reads them. */
#include "base/map.h"
#include "base/text.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/claims.h"
#include "store/store_private.h"

#define CHUNK_MIN 8     /* runs of a lane that are read at a time */
#define CHUNK_MAX 512
#define WINDOW 4        /* times as many runs are searched for jobs of our own segments */
#define OLD (5 * USEC_SEC) /* a run that waits for longer is taken in its order, whichever segment it has */

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
 * Three statements, sent together: the jobs are locked, the facts are read after that, and with
 * them the rows as the caller of the claim gets them. The first one leaves the numbers of the runs
 * to the others in a setting of the transaction. Jobs that another node has locked are passed over.
 */
static bool hold_send(struct claim *c, struct claim_guess *g, const struct lane *l, size_t n, bool stops, struct err *e)
{
	g->n = n;
	g->stops = stops;
	g->hold = query_start(c->s->db, Q_LANE_HOLD, e);
	query_text(&g->hold, l->queue);
	query_int(&g->hold, l->uid);
	query_int(&g->hold, l->priority);
	query_int(&g->hold, l->last_due);
	query_int(&g->hold, l->last_id);
	query_int(&g->hold, (int64_t)n);
	query_int(&g->hold, c->c->now);
	query_text(&g->hold, c->c->labels ? c->c->labels : "");
	query_int(&g->hold, c->s->segments);
	query_int(&g->hold, (int64_t)(n * WINDOW));
	query_int(&g->hold, c->c->now - OLD);
	g->held = held_start(c, l, stops, e);
	g->rows = query_start(c->s->db, Q_LANE_ROWS, e);
	return query_ahead(&g->hold) && query_ahead(&g->held) && query_ahead(&g->rows);
}

void claim_guess_done(struct claim_guess *g)
{
	query_done(&g->hold);
	query_done(&g->held);
	query_done(&g->rows);
	free(STEAL(g->queue));
}

bool claim_guess_send(struct claim *c, struct err *e)
{
	const struct lane_last *last = &c->s->lane_last;
	struct lane l = {.queue = last->queue, .uid = last->uid, .priority = last->priority, .last_due = -1};

	if (!last->queue || c->s->writers_lock != WRITERS_SHARED)
		return true;
	c->guess.queue = xstrdup(last->queue);
	c->guess.uid = last->uid;
	c->guess.priority = last->priority;
	return hold_send(c, &c->guess, &l, claim_chunk(c->c->room, 1), last->stops, e);
}

static bool guess_is(const struct claim_guess *g, const struct lane *l)
{
	return g->queue && l->last_due < 0 && g->uid == l->uid && g->priority == l->priority && text_equal(g->queue, l->queue);
}

/* The next claim guesses this lane. With a limit its runs must not be locked before the limit. */
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

static bool hold_take(struct claim *c, struct lane *l, struct claim_guess *g, struct hold_result *ret)
{
	usec_t rest = USEC_NEVER;

	while (query_row(&g->hold)) {
		ret->last_id = query_get_int(&g->hold);
		ret->last_due = query_get_int(&g->hold);
		ret->n += ret->last_id != 0;
		c->passed |= query_get_int(&g->hold) > 0;
		rest = query_get_int(&g->hold);
	}
	if (!g->hold.failed && ret->n < g->n) {
		l->read_all = true;
		l->then = rest;
	}
	return !g->hold.failed;
}

/* A run that has changed before its job was locked is left out, and the next claim looks again. */
static bool held_take(struct claim *c, struct lane *l, struct claim_guess *g, const struct hold_result *hold)
{
	size_t rows = 0;

	while (query_row(&g->held)) {
		claim_add_candidate(l, claim_candidate_read(c, l, &g->held));
		rows++;
	}
	c->passed |= rows < hold->n;
	if (hold->n > 0) {
		l->last_due = hold->last_due;
		l->last_id = hold->last_id;
	}
	return !g->held.failed;
}

/* Both lists have the same order; a run may be missing from either. */
static bool rows_take(struct lane *l, struct claim_guess *g, size_t from)
{
	while (query_row(&g->rows)) {
		struct claimed row = claimed_read(&g->rows);
		size_t at = from;

		row.run->revision = query_get_int(&g->rows);
		while (at < l->n && l->v[at]->id != row.run->id)
			at++;
		if (at < l->n) {
			l->v[at]->row = row;
			from = at + 1;
		} else {
			claimed_done(&row);
		}
	}
	return !g->rows.failed;
}

void claim_guess_forget(struct claim *c)
{
	if (c->guess.queue)
		free(STEAL(c->s->lane_last.queue));
}

bool claim_hold_runs(struct claim *c, struct lane *l, size_t n, struct err *e)
{
	struct claim_guess *g = &c->guess;
	struct hold_result hold = {};
	size_t from = l->n;
	bool ok;

	if (!guess_is(g, l)) {
		claim_guess_done(g);
		if (!hold_send(c, g, l, n, claim_pauses_matter(c), e))
			return false;
	} else if (claim_pauses_matter(c) && !g->stops) {
		query_done(&g->held);
		g->held = held_start(c, l, true, e);
	}
	ok = hold_take(c, l, g, &hold) && held_take(c, l, g, &hold) && rows_take(l, g, from);
	claim_guess_done(g);
	if (ok && hold.n > 0)
		lane_remember(c, l);
	return ok;
}
