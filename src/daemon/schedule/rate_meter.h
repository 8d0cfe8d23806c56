/* SPDX-License-Identifier: Apache-2.0 */
/* How fast things have happened lately: a count over the last moments. */
#pragma once
#include "base/clock.h"
#include <stddef.h>

#define PACE_WINDOW (20 * USEC_MSEC)

/* All zero is a pace of nothing. */
struct pace {
	usec_t since;       /* when the current window began */
	size_t now, before; /* in it, and in the one before it */
};

void pace_count(struct pace *p, usec_t boottime);
size_t pace_recent(const struct pace *p, usec_t boottime); /* in the last one to two windows; 0 after a pause */
