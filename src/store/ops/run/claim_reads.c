/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lanes, the limits, the active runs and the pauses before a claim decides. */
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "store/counters.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/claims.h"
#include "store/set.h"
#include "store/store_private.h"
#include <stdio.h>
#include <string.h>

#define WEIGHT_DEFAULT 100    /* of a queue without limits */
#define ZEROES_MAX 256        /* counters that are 0, before they are deleted */

/* ---- shares ---- */

static struct share *share_new(const char *key)
{
	struct share *h = xcalloc(1, sizeof(*h));

	h->key = xstrdup(key);
	h->weight = WEIGHT_DEFAULT;
	return h;
}

void claim_share_free(struct share *h)
{
	free(h->key);
	free(h);
}

static struct share *queue_share(struct claim *c, const char *queue)
{
	for (size_t i = c->n_queues; i-- > 0;)
		if (strcmp(c->queues[i]->key, queue) == 0)
			return c->queues[i];
	c->queues = xrealloc(c->queues, (c->n_queues + 1) * sizeof(struct share *));
	return c->queues[c->n_queues++] = share_new(queue);
}

static struct share *owner_share(struct claim *c, int64_t uid)
{
	struct share *h = map_get(&c->owners, uid);

	if (!h) {
		char key[24];

		snprintf(key, sizeof(key), "%lld", (long long)uid);
		h = share_new(key);
		map_put(&c->owners, uid, h);
	}
	return h;
}

static struct query limits_start(struct claim *c, struct err *e)
{
	return query_start(c->s->db, Q_LIMITS_NOW, e);
}

static bool limits_take(struct claim *c, struct query *q)
{
	while (query_row(q)) {
		AUTO_TEXT scope = query_get_copy(q);
		AUTO_TEXT key = query_get_copy(q);
		bool queue = text_equal(scope, "queue");
		struct share *h;
		int64_t uid = 0;

		if (!queue && (!text_equal(scope, "owner") || !text_parse_int(key, 0, INT64_MAX, &uid)))
			continue;
		h = queue ? queue_share(c, key) : owner_share(c, uid);
		h->running = query_get_int(q);
		h->weight = query_get_int(q);
		h->rate.n = query_get_int(q);
		h->rate.per = query_get_int(q);
		h->rate.burst = query_get_int(q);
		h->bucket = query_get_int(q);
	}
	return !q->failed;
}

static void limit_want(struct set *set, struct share *h, const char *scope)
{
	if (h->elsewhere || (h->running == 0 && h->rate.n == 0))
		return;
	h->elsewhere = true; /* until it is locked */
	set_item(set);
	set_text(set, "scope", scope);
	set_text(set, "key", h->key);
}

static bool limits_held_take(struct claim *c, struct query *q)
{
	while (query_row(q)) {
		bool queue = text_equal(query_get_text(q), "queue");
		const char *key = query_get_text(q);
		int64_t uid = 0;

		if (queue)
			queue_share(c, key)->elsewhere = false;
		else if (text_parse_int(key, 0, INT64_MAX, &uid))
			owner_share(c, uid)->elsewhere = false;
	}
	return !q->failed;
}

/* The limits of the lanes that are due. */
static void limits_wanted(struct claim *c, struct set *ret)
{
	for (size_t i = 0; i < c->n_lanes; i++)
		if (c->lanes[i].front <= c->c->now) {
			limit_want(ret, queue_share(c, c->lanes[i].queue), "queue");
			limit_want(ret, owner_share(c, c->lanes[i].uid), "owner");
		}
}

/* ---- active runs ---- */

/* By owner, then by queue. */
static int tally_compare(const struct tally *t, int64_t uid, const char *queue)
{
	if (t->uid != uid)
		return t->uid < uid ? -1 : 1;
	return strcmp(t->queue, queue);
}

static struct tally *tally_find(struct claim *c, int64_t uid, const char *queue)
{
	size_t low = 0, high = c->n_tallies;
	struct tally *t;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = tally_compare(c->tallies[middle], uid, queue);

		if (order == 0)
			return c->tallies[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	c->tallies = xgrow(c->tallies, c->n_tallies, sizeof(*c->tallies));
	memmove(c->tallies + low + 1, c->tallies + low, (c->n_tallies - low) * sizeof(struct tally *));
	c->n_tallies++;
	t = c->tallies[low] = xcalloc(1, sizeof(*t));
	*t = (struct tally){uid, 0, xstrdup(queue)};
	return t;
}

static void add_active(struct claim *c, int64_t uid, const char *queue, int64_t n, int64_t here)
{
	struct share *of_queue = queue_share(c, queue), *of_owner = owner_share(c, uid);

	tally_find(c, uid, queue)->n += n;
	of_queue->active += n;
	of_queue->here += here;
	of_owner->active += n;
	of_owner->here += here;
}

/* The counters of all nodes. */
static bool tidy_counters(struct store *s, struct err *e)
{
	AUTO_QUERY q = {};

	if (!batch_needs_exclusive(s, e))
		return false;
	q = query_start(s->db, Q_COUNTERS_TIDY, e);
	query_int(&q, COUNT_ACTIVE);
	return query_finish(&q);
}

static struct query active_start(struct claim *c, struct err *e)
{
	struct query q = query_start(c->s->db, Q_ACTIVE_NOW, e);

	query_int(&q, COUNT_ACTIVE);
	query_text(&q, c->s->node_name);
	return q;
}

/* Counts the committed active runs and the changes of this transaction. */
static bool active_take(struct claim *c, struct query *q, size_t *ret_zeroes)
{
	const char *queue;
	int64_t uid, n;

	while (query_row(q)) {
		AUTO_TEXT name = NULL;

		uid = query_get_int(q);
		name = query_get_copy(q);
		n = query_get_int(q);
		if (n == 0)
			++*ret_zeroes;
		else
			add_active(c, uid, name, n, query_get_int(q));
	}
	for (size_t i = 0; counter_next_pending(c->s, COUNT_ACTIVE, &i, &uid, &queue, &n);)
		add_active(c, uid, queue, n, n);
	return !q->failed;
}

/* ---- pauses and lanes ---- */

void claim_pause_read(struct claim_pause *p, struct query *q)
{
	p->scope = query_get_copy(q);
	p->key = query_get_copy(q);
	p->uid = query_get_int(q);
	p->spared = query_get_copy(q);
	p->at = query_get_int(q);
	p->until = query_get_int(q);
}

static bool pauses_take(struct claim *c, struct query *q)
{
	while (query_row(q)) {
		struct claim_pause p = {};

		claim_pause_read(&p, q);
		p.past = query_get_int(q);
		p.later = query_get_int(q);
		c->later = c->later || p.later;
		c->past = c->past || (p.past && !p.later);
		if (text_equal(p.scope, "job")) { /* Q_LANE_RUNS reads those */
			claim_pause_done(&p);
			continue;
		}
		c->pauses = xgrow(c->pauses, c->n_pauses, sizeof(*c->pauses));
		c->pauses[c->n_pauses++] = p;
	}
	return !q->failed;
}

static bool lanes_take(struct claim *c, struct query *q)
{
	while (query_row(q)) {
		struct lane *l;

		c->lanes = xgrow(c->lanes, c->n_lanes, sizeof(*c->lanes));
		l = &c->lanes[c->n_lanes++];
		*l = (struct lane){.last_due = -1, .then = USEC_NEVER};
		l->queue = query_get_copy(q);
		l->uid = query_get_int(q);
		l->priority = query_get_int(q);
		l->front = query_get_int(q);
	}
	return !q->failed;
}

static bool any_due(const struct claim *c)
{
	for (size_t i = 0; i < c->n_lanes; i++)
		if (c->lanes[i].front <= c->c->now)
			return true;
	return false;
}

static void link_lanes(struct claim *c)
{
	c->views = xcalloc(c->n_lanes, sizeof(*c->views));
	for (size_t i = 0; i < c->n_lanes; i++) {
		struct lane *l = &c->lanes[i];

		l->of_queue = queue_share(c, l->queue);
		l->of_owner = owner_share(c, l->uid);
		l->tally = tally_find(c, l->uid, l->queue);
		l->closed_at = claim_lane_closed_at(c->s, l->queue, l->uid);
	}
}

/* ---- all of it ---- */

static struct query node_start(struct claim *c, struct err *e)
{
	struct query q = query_start(c->s->db, Q_NODE_OPEN, e);

	query_text(&q, c->c->node);
	return q;
}

void claim_reads_done(struct claim_reads *r)
{
	query_done(&r->node);
	query_done(&r->lanes);
	query_done(&r->limits);
	query_done(&r->active);
	query_done(&r->pauses);
}

/* On a server one round trip fetches all of this. */
bool claim_reads_send(struct claim *c, struct claim_reads *r, struct err *e)
{
	r->node = node_start(c, e);
	if (!c->s->db->defer || c->c->room == 0)
		return true;
	r->lanes = query_start(c->s->db, Q_LANES, e);
	r->limits = limits_start(c, e);
	r->active = active_start(c, e);
	r->pauses = query_start(c->s->db, Q_PAUSES_NOW, e);
	return query_send(&r->node) && query_send(&r->lanes) && query_send(&r->limits) && query_send(&r->active) &&
	       query_send(&r->pauses) && claim_prefetch_send(c, e);
}

/*
 * Locks the limits that are due, so that no other node counts towards them until the commit, and
 * reads them and the active runs after that.
 */
static bool limits_hold(struct claim *c, struct claim_reads *r, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET wanted = {};

	if (c->s->writers_lock == WRITERS_SHARED)
		limits_wanted(c, &wanted);
	if (wanted.n == 0)
		return true;
	q = query_start(c->s->db, Q_LIMITS_HOLD, e);
	set_bind(&q, &wanted);
	query_done(&r->limits);
	query_done(&r->active);
	r->limits = limits_start(c, e);
	r->active = active_start(c, e);
	return query_ahead(&q) && query_ahead(&r->limits) && query_ahead(&r->active) && limits_held_take(c, &q) && limits_take(c, &r->limits);
}

bool claim_read(struct claim *c, struct claim_reads *r, struct err *e)
{
	size_t zeroes = 0;

	if (!r->lanes.db)
		r->lanes = query_start(c->s->db, Q_LANES, e);
	if (!lanes_take(c, &r->lanes))
		return false;
	if (!any_due(c))
		return true;
	if (!r->limits.db)
		r->limits = limits_start(c, e);
	if (!limits_take(c, &r->limits) || !limits_hold(c, r, e))
		return false;
	if (!r->active.db)
		r->active = active_start(c, e);
	if (!r->pauses.db)
		r->pauses = query_start(c->s->db, Q_PAUSES_NOW, e);
	if (!active_take(c, &r->active, &zeroes) || !pauses_take(c, &r->pauses) || (zeroes >= ZEROES_MAX && !tidy_counters(c->s, e)))
		return false;
	link_lanes(c);
	return true;
}
