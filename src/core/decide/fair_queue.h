/* SPDX-License-Identifier: Apache-2.0 */
/* Round-robin queue over keys (users) that holds back keys whose results are not consumed. */
#pragma once
#include "base/map.h"
#include "core/decide/fair_share.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* First member of each queued object. */
struct fair_item {
	struct fair_item *next;
	uint64_t number; /* order of arrival */
	int64_t key;
	bool begun;      /* continues earlier work: never held back, because only its end releases its bytes */
};

struct fair_lane;

/*
 * Each key has a lane in order of arrival, and the lanes take turns: with k busy keys, the first
 * item of a new key is served after at most k others. A key is held back while the bytes that are
 * charged to it exceed its share.
 */
struct fair_queue {
	struct map lanes;        /* struct fair_lane by key, owned */
	struct fair_lane *first; /* lanes with items; the next one to be served first */
	struct fair_lane *last;
	struct fair_share share; /* of charged bytes; total 0: no key is held back */
	int64_t exempt;          /* the key that is never held back */
	uint64_t arrived;
};

void fair_queue_push(struct fair_queue *q, struct fair_item *item /* its key is set; moved */);
/*
 * The next item; NULL: there is none, or all that wait are held back. 'all': nothing is held back.
 */
struct fair_item *fair_queue_pop(struct fair_queue *q, bool all);
bool fair_queue_ready(const struct fair_queue *q); /* whether fair_queue_pop() returns one */
void fair_queue_charge(struct fair_queue *q, int64_t key, int64_t bytes); /* negative: released */
void fair_queue_done(struct fair_queue *q); /* items are the caller's */
