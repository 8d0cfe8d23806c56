/* SPDX-License-Identifier: Apache-2.0 */
/* Which of many is due first: a heap of instants embedded in their owners. */
#pragma once
#include "base/clock.h"
#include <stddef.h>

struct deadline {
	usec_t at;
	size_t place; /* in the heap, from 1; 0: not set */
};

struct deadlines {
	struct deadline **heap; /* from 1 */
	size_t n, cap;
};
void deadlines_done(struct deadlines *h);
void deadline_set(struct deadlines *h, struct deadline *d, usec_t at);
void deadline_clear(struct deadlines *h, struct deadline *d); /* not set is fine */
usec_t deadlines_next(const struct deadlines *h);             /* USEC_NEVER: none */
struct deadline *deadlines_take(struct deadlines *h, usec_t now); /* one that is due, cleared; NULL: none */
