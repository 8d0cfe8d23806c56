/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of deadlines, embedded in the structures that own them. */
#pragma once
#include "base/clock.h"
#include <stddef.h>

struct deadline {
	usec_t at;
	size_t position; /* in the heap, from 1; 0: not set */
};

struct deadlines {
	struct deadline **heap; /* the first element is heap[1] */
	size_t n, cap;
};
void deadlines_done(struct deadlines *h);
void deadline_set(struct deadlines *h, struct deadline *d, usec_t at);
void deadline_clear(struct deadlines *h, struct deadline *d); /* no effect if it is not set */
usec_t deadlines_next(const struct deadlines *h);             /* USEC_NEVER: none */
/* Clears and returns the earliest deadline if it is due; NULL: none is due. */
struct deadline *deadlines_take(struct deadlines *h, usec_t now);
