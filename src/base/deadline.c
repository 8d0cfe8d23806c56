/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap whose members know their position. */
#include "base/deadline.h"
#include "base/text.h"
#include <stdlib.h>

void deadlines_done(struct deadlines *h)
{
	free(h->heap);
	*h = (struct deadlines){};
}

static void heap_put(struct deadlines *h, size_t position, struct deadline *d)
{
	h->heap[position] = d;
	d->position = position;
}

/* Moves d from 'position' up or down to where the heap order holds. */
static void heap_sift(struct deadlines *h, size_t position, struct deadline *d)
{
	for (; position > 1 && h->heap[position / 2]->at > d->at; position /= 2)
		heap_put(h, position, h->heap[position / 2]);
	for (size_t child; (child = position * 2) <= h->n; position = child) {
		if (child < h->n && h->heap[child + 1]->at < h->heap[child]->at)
			child++;
		if (h->heap[child]->at >= d->at)
			break;
		heap_put(h, position, h->heap[child]);
	}
	heap_put(h, position, d);
}

void deadline_set(struct deadlines *h, struct deadline *d, usec_t at)
{
	d->at = at;
	if (!d->position) {
		if (h->n + 1 >= h->cap) {
			h->cap = h->cap ? h->cap * 2 : 64;
			h->heap = xrealloc(h->heap, h->cap * sizeof(struct deadline *));
		}
		d->position = ++h->n;
	}
	heap_sift(h, d->position, d);
}

void deadline_clear(struct deadlines *h, struct deadline *d)
{
	struct deadline *last;

	if (!d->position)
		return;
	last = h->heap[h->n--];
	if (last != d)
		heap_sift(h, d->position, last);
	d->position = 0;
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
