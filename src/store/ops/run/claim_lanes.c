/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the lane that is served next. */
#include "base/err.h"
#include "base/io.h"
#include "base/map.h"
#include "base/text.h"
#include "core/decide/claim.h"
#include "core/job/policy.h"
#include "store/counters.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/claims.h"
#include "store/set.h"
#include "store/store_private.h"
#include <stdio.h>
#include <string.h>

#define WEIGHT_DEFAULT 100    /* of a queue without limits */
#define LANE_DEFERRED_MAX 256 /* runs without a start after which a lane waits for the next claim */
#define LOOK_AGAIN (5 * USEC_MSEC) /* after runs were passed over: at least that, at most four times that */
#define ZEROES_MAX 256        /* counters that are 0, before they are deleted */

/* ---- shares ---- */

static struct share *share_new(const char *key)
{
	struct share *h = xcalloc(1, sizeof(*h));

	h->key = xstrdup(key);
	h->weight = WEIGHT_DEFAULT;
	return h;
}

static void share_free(struct share *h)
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

static bool limits_hold(struct claim *c, struct set *set, struct err *e)
{
	AUTO_QUERY q = query_start(c->s->db, Q_LIMITS_HOLD, e);

	query_text(&q, set_json(set));
	while (query_row(&q)) {
		bool queue = text_equal(query_get_text(&q), "queue");
		const char *key = query_get_text(&q);
		int64_t uid = 0;

		if (queue)
			queue_share(c, key)->elsewhere = false;
		else if (text_parse_int(key, 0, INT64_MAX, &uid))
			owner_share(c, uid)->elsewhere = false;
	}
	return !q.failed;
}

/*
 * Locks the limits of the lanes that are due, so that no other node counts towards them until the
 * commit. *ret_any: the limits and active runs must be read after that.
 */
static bool limits_hold_due(struct claim *c, bool *ret_any, struct err *e)
{
	AUTO_SET set = {};

	for (size_t i = 0; i < c->n_lanes; i++)
		if (c->lanes[i].front <= c->c->now) {
			limit_want(&set, queue_share(c, c->lanes[i].queue), "queue");
			limit_want(&set, owner_share(c, c->lanes[i].uid), "owner");
		}
	*ret_any = set.n > 0;
	return set.n == 0 || limits_hold(c, &set, e);
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

/* ---- closed lanes: kept in memory only, for the reason of a run that expires meanwhile ---- */

usec_t claim_lane_closed_at(const struct store *s, const char *queue, int64_t uid)
{
	for (size_t i = 0; i < ELEMENTS(s->closed_lanes); i++)
		if (s->closed_lanes[i].at && s->closed_lanes[i].uid == uid && text_equal(s->closed_lanes[i].queue, queue))
			return s->closed_lanes[i].at;
	return 0;
}

static void lane_note_closed(struct store *s, const struct lane *l, usec_t now)
{
	size_t i = 0;

	while (i < ELEMENTS(s->closed_lanes) && !(s->closed_lanes[i].at && s->closed_lanes[i].uid == l->uid &&
						text_equal(s->closed_lanes[i].queue, l->queue)))
		i++;
	if (i == ELEMENTS(s->closed_lanes)) {
		i = s->next_closed_lane;
		s->next_closed_lane = (i + 1) % ELEMENTS(s->closed_lanes);
		free(s->closed_lanes[i].queue);
		s->closed_lanes[i].queue = xstrdup(l->queue);
		s->closed_lanes[i].uid = l->uid;
	}
	s->closed_lanes[i].at = now;
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

static bool send_or_wait(struct claim *c, struct query *q)
{
	return !c->s->db->defer || query_send(q);
}

/* With a limit that is due: locks it first, so that the counts are those of this moment. */
static bool limits_read(struct claim *c, struct query *limits, struct err *e)
{
	bool any = false;

	if (!limits_take(c, limits))
		return false;
	query_done(limits);
	if (c->s->writers_lock == WRITERS_SHARED && !limits_hold_due(c, &any, e))
		return false;
	if (!any)
		return true;
	*limits = limits_start(c, e);
	return limits_take(c, limits);
}

static bool facts_read(struct claim *c, struct err *e)
{
	AUTO_QUERY active = active_start(c, e);
	AUTO_QUERY pauses = query_start(c->s->db, Q_PAUSES_NOW, e);
	size_t zeroes = 0;

	return send_or_wait(c, &active) && send_or_wait(c, &pauses) && active_take(c, &active, &zeroes) && pauses_take(c, &pauses) &&
	       (zeroes < ZEROES_MAX || tidy_counters(c->s, e));
}

bool claim_read(struct claim *c, struct err *e)
{
	AUTO_QUERY lanes = query_start(c->s->db, Q_LANES, e);
	AUTO_QUERY limits = limits_start(c, e);

	if (!send_or_wait(c, &lanes) || !send_or_wait(c, &limits) || !lanes_take(c, &lanes))
		return false;
	if (!any_due(c))
		return true;
	if (!limits_read(c, &limits, e) || !facts_read(c, e))
		return false;
	link_lanes(c);
	return true;
}

/* ---- the next lane ---- */

enum closed { OPEN, NOTHING_DUE, ELSEWHERE, FULL, RATED, DEFERRED };

static bool share_is_full(const struct share *h)
{
	return h->running > 0 && h->active >= h->running;
}

static enum closed lane_state(const struct claim *c, const struct lane *l, usec_t *ret_again)
{
	usec_t now = c->c->now, of_queue = l->of_queue->bucket, of_owner = l->of_owner->bucket;
	int64_t owner_max = (int64_t)c->c->owner_max;

	if (l->front > now)
		return NOTHING_DUE;
	if (l->of_queue->elsewhere || l->of_owner->elsewhere)
		return ELSEWHERE;
	if (share_is_full(l->of_queue) || share_is_full(l->of_owner) || (owner_max > 0 && l->of_owner->here >= owner_max))
		return FULL;
	if (!policy_rate_take(&l->of_queue->rate, now, &of_queue, ret_again) ||
	    !policy_rate_take(&l->of_owner->rate, now, &of_owner, ret_again))
		return RATED;
	return l->deferred >= LANE_DEFERRED_MAX ? DEFERRED : OPEN;
}

bool claim_next_lane(struct claim *c, struct lane **ret)
{
	usec_t again;
	size_t i;

	if (!c->views)
		return false;
	for (i = 0; i < c->n_lanes; i++) {
		const struct lane *l = &c->lanes[i];

		c->views[i] = (struct claim_lane){
			.open = lane_state(c, l, &again) == OPEN,
			.active = l->of_queue->active,
			.weight = l->of_queue->weight,
			.owner_active = l->tally->n,
			.priority = l->priority,
			.due_at = l->front,
		};
	}
	if (!claim_pick(c->views, c->n_lanes, &i))
		return false;
	*ret = &c->lanes[i];
	return true;
}

void claim_count_active(struct lane *l, int64_t n)
{
	l->tally->n += n;
	l->of_queue->active += n;
	l->of_queue->here += n;
	l->of_owner->active += n;
	l->of_owner->here += n;
}

static void take_rate(struct share *h, usec_t now)
{
	usec_t again;

	if (h->rate.n > 0 && policy_rate_take(&h->rate, now, &h->bucket, &again))
		h->taken = true;
}

void claim_take_rates(struct lane *l, usec_t now)
{
	take_rate(l->of_queue, now);
	take_rate(l->of_owner, now);
}

static void return_rate(struct share *h)
{
	if (h->rate.n > 0)
		h->bucket -= h->rate.per / h->rate.n;
}

void claim_return_rates(struct lane *l)
{
	return_rate(l->of_queue);
	return_rate(l->of_owner);
}

/*
 * Computes when the next claim can find runs. Due runs that stay are claimed at once by the next
 * claim, or at the time their rate permits, or after the end of a run.
 */
void claim_next_wakeup(struct claim *c)
{
	struct claim_wakeup first = {.known = true, .at = USEC_NEVER};

	for (size_t i = 0; i < c->n_lanes; i++) {
		const struct lane *l = &c->lanes[i];
		usec_t at = l->front, again = USEC_NEVER;

		if (c->views)
			switch (lane_state(c, l, &again)) {
			case ELSEWHERE:
				c->passed = true;
				at = USEC_NEVER;
				break;
			case FULL:
				first.full = true;
				at = USEC_NEVER;
				lane_note_closed(c->s, l, c->c->now);
				break;
			case RATED:
				at = again;
				lane_note_closed(c->s, l, c->c->now);
				break;
			default:
				break;
			}
		if (at < first.at)
			first.at = at;
	}
	for (size_t i = 0; i < c->n_decided; i++)
		if (c->decided[i]->verdict.verb == CLAIM_WAIT && c->decided[i]->verdict.at < first.at)
			first.at = c->decided[i]->verdict.at;
	if (c->passed) {
		usec_t again = c->c->now + LOOK_AGAIN + io_random_upto(3 * LOOK_AGAIN);

		first.at = again < first.at ? again : first.at;
	}
	if (c->unsure && c->c->now < first.at)
		first.at = c->c->now;
	c->s->claim_wakeup = first;
}

static void describe_bucket(struct set *set, const char *scope, const char *key, usec_t full_at)
{
	set_item(set);
	set_text(set, "scope", scope);
	set_text(set, "key", key);
	set_int(set, "full_at", full_at);
}

bool claim_write_buckets(struct claim *c, struct err *e)
{
	AUTO_SET set = {};
	struct share *h;
	struct job_now *j;

	for (size_t i = 0; i < c->n_queues; i++)
		if (c->queues[i]->taken)
			describe_bucket(&set, "queue", c->queues[i]->key, c->queues[i]->bucket);
	for (size_t i = 0; (h = map_next(&c->owners, &i));)
		if (h->taken)
			describe_bucket(&set, "owner", h->key, h->bucket);
	for (size_t i = 0; (j = map_next(&c->jobs, &i));)
		if (j->bucket_taken) {
			char key[24];

			snprintf(key, sizeof(key), "%lld", (long long)j->id);
			describe_bucket(&set, "job", key, j->bucket);
		}
	return set_execute(c->s, Q_BUCKETS_PUT, &set, e);
}

void claim_pause_done(struct claim_pause *p)
{
	free(p->scope);
	free(p->key);
	free(p->spared);
}

static void lane_done(struct lane *l)
{
	for (size_t i = 0; i < l->n; i++)
		claim_candidate_free(l->v[i]);
	free(l->v);
	free(l->queue);
}

void claim_done(struct claim *c)
{
	struct share *h;
	struct job_now *j;

	for (size_t i = 0; i < c->n_lanes; i++)
		lane_done(&c->lanes[i]);
	for (size_t i = 0; i < c->n_queues; i++)
		share_free(c->queues[i]);
	for (size_t i = 0; (h = map_next(&c->owners, &i));)
		share_free(h);
	for (size_t i = 0; (j = map_next(&c->jobs, &i));) {
		free(j->holders);
		free(j);
	}
	for (size_t i = 0; i < c->n_tallies; i++) {
		free(c->tallies[i]->queue);
		free(c->tallies[i]);
	}
	for (size_t i = 0; i < c->n_pauses; i++)
		claim_pause_done(&c->pauses[i]);
	map_done(&c->owners);
	map_done(&c->jobs);
	free(c->queues);
	free(c->tallies);
	free(c->pauses);
	free(c->lanes);
	free(c->views);
	free(c->decided);
	set_done(&c->ended);
	map_done(&c->gone);
	set_done(&c->replaced);
}
