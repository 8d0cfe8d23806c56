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

#define LANE_DEFERRED_MAX 256 /* runs without a start after which a lane waits for the next claim */
#define LOOK_AGAIN (5 * USEC_MSEC) /* after runs were passed over: at least that, at most four times that */

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
		claim_share_free(c->queues[i]);
	for (size_t i = 0; (h = map_next(&c->owners, &i));)
		claim_share_free(h);
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
	claim_prefetch_done(&c->prefetch);
}
