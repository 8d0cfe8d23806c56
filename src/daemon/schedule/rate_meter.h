/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the events of the last 20 to 40 ms. */
#pragma once
#include "base/clock.h"
#include <stddef.h>

#define RATE_METER_WINDOW (20 * USEC_MSEC)

/* All zero: no events. */
struct rate_meter {
	usec_t since;       /* when the current window began */
	size_t now, before; /* events in the current window, and in the one before */
};

void rate_meter_count(struct rate_meter *p, usec_t boottime);
/* Events in the last one to two windows; 0 after a pause. */
size_t rate_meter_recent(const struct rate_meter *p, usec_t boottime);
