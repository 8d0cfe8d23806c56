/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the round-robin queue with one lane per key. */
#include "core/decide/fair_queue.h"
#include "base/text.h"
#include <stdlib.h>

/* Items in order of arrival. */
struct fair_list {
	struct fair_item *first, *last;
};

/* Exists while the key has items or charged bytes. */
struct fair_lane {
	int64_t key;
	int64_t held;                 /* bytes charged to it */
	struct fair_list fresh, begun;
	struct fair_lane *next, *prev; /* in the queue's turns, while it has items */
};

static void list_push(struct fair_list *l, struct fair_item *item)
{
	item->next = NULL;
	if (l->last)
		l->last->next = item;
	else
		l->first = item;
	l->last = item;
}

static struct fair_item *list_pop(struct fair_list *l)
{
	struct fair_item *item = l->first;

	l->first = item->next;
	if (!l->first)
		l->last = NULL;
	return item;
}

static bool has_items(const struct fair_lane *lane)
{
	return lane->fresh.first || lane->begun.first;
}

static void turn_append(struct fair_queue *q, struct fair_lane *lane)
{
	lane->next = NULL;
	lane->prev = q->last;
	if (q->last)
		q->last->next = lane;
	else
		q->first = lane;
	q->last = lane;
}

static void turn_remove(struct fair_queue *q, struct fair_lane *lane)
{
	if (lane->prev)
		lane->prev->next = lane->next;
	else
		q->first = lane->next;
	if (lane->next)
		lane->next->prev = lane->prev;
	else
		q->last = lane->prev;
}

static struct fair_lane *lane_get(struct fair_queue *q, int64_t key)
{
	struct fair_lane *lane = map_get(&q->lanes, key);

	if (lane)
		return lane;
	lane = xcalloc(1, sizeof(*lane));
	lane->key = key;
	map_put(&q->lanes, key, lane);
	return lane;
}

static void lane_drop_if_idle(struct fair_queue *q, struct fair_lane *lane)
{
	if (has_items(lane) || lane->held != 0)
		return;
	map_take(&q->lanes, lane->key);
	free(lane);
}

static bool held_back(const struct fair_queue *q, const struct fair_lane *lane)
{
	return q->share.total > 0 && lane->key != q->exempt && !fair_share_allows(&q->share, lane->held, 1);
}

/* The list whose first item is next in this lane; NULL: the lane is held back. */
static struct fair_list *next_of(const struct fair_queue *q, struct fair_lane *lane, bool all)
{
	bool fresh = lane->fresh.first && (all || !held_back(q, lane));

	if (fresh && (!lane->begun.first || lane->fresh.first->number < lane->begun.first->number))
		return &lane->fresh;
	return lane->begun.first ? &lane->begun : NULL;
}

void fair_queue_push(struct fair_queue *q, struct fair_item *item)
{
	struct fair_lane *lane = lane_get(q, item->key);

	item->number = q->arrived++;
	if (!has_items(lane))
		turn_append(q, lane);
	list_push(item->begun ? &lane->begun : &lane->fresh, item);
}

struct fair_item *fair_queue_pop(struct fair_queue *q, bool all)
{
	for (struct fair_lane *lane = q->first; lane; lane = lane->next) {
		struct fair_list *l = next_of(q, lane, all);
		struct fair_item *item;

		if (!l)
			continue;
		item = list_pop(l);
		turn_remove(q, lane);
		if (has_items(lane))
			turn_append(q, lane);
		else
			lane_drop_if_idle(q, lane);
		return item;
	}
	return NULL;
}

bool fair_queue_ready(const struct fair_queue *q)
{
	for (struct fair_lane *lane = q->first; lane; lane = lane->next)
		if (next_of(q, lane, false))
			return true;
	return false;
}

void fair_queue_charge(struct fair_queue *q, int64_t key, int64_t bytes)
{
	struct fair_lane *lane;

	if (bytes == 0)
		return;
	lane = lane_get(q, key);
	lane->held += bytes;
	q->share.used += bytes;
	lane_drop_if_idle(q, lane);
}

void fair_queue_done(struct fair_queue *q)
{
	struct fair_lane *lane;

	for (size_t i = 0; (lane = map_next(&q->lanes, &i));)
		free(lane);
	map_done(&q->lanes);
	q->first = q->last = NULL;
}
