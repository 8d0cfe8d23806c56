/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap that knows where each member is. */
#include "exec/worker/deadline.h"
#include "base/text.h"
#include <stdlib.h>

void deadlines_done(struct deadlines *h)
{
	free(h->heap);
	*h = (struct deadlines){};
}

static void heap_put(struct deadlines *h, size_t place, struct deadline *d)
{
	h->heap[place] = d;
	d->place = place;
}

/* Moves d, which belongs at 'place' or beside it, to where the order holds. */
static void heap_sift(struct deadlines *h, size_t place, struct deadline *d)
{
	for (; place > 1 && h->heap[place / 2]->at > d->at; place /= 2)
		heap_put(h, place, h->heap[place / 2]);
	for (size_t child; (child = place * 2) <= h->n; place = child) {
		if (child < h->n && h->heap[child + 1]->at < h->heap[child]->at)
			child++;
		if (h->heap[child]->at >= d->at)
			break;
		heap_put(h, place, h->heap[child]);
	}
	heap_put(h, place, d);
}

void deadline_set(struct deadlines *h, struct deadline *d, usec_t at)
{
	d->at = at;
	if (!d->place) {
		if (h->n + 1 >= h->cap) {
			h->cap = h->cap ? h->cap * 2 : 64;
			h->heap = xrealloc(h->heap, h->cap * sizeof(struct deadline *));
		}
		d->place = ++h->n;
	}
	heap_sift(h, d->place, d);
}

void deadline_clear(struct deadlines *h, struct deadline *d)
{
	struct deadline *last;

	if (!d->place)
		return;
	last = h->heap[h->n--];
	if (last != d)
		heap_sift(h, d->place, last);
	d->place = 0;
}

usec_t deadlines_next(const struct deadlines *h)
{
	return h->n ? h->heap[1]->at : USEC_NEVER;
}

struct deadline *deadlines_take(struct deadlines *h, usec_t now)
{
	struct deadline *d = h->n && h->heap[1]->at <= now ? h->heap[1] : NULL;

	if (d)
		deadline_clear(h, d);
	return d;
}
