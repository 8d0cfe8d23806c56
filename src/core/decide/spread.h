/* SPDX-License-Identifier: Apache-2.0 */
/* Which node plans which segment of the schedule. */
#pragma once
#include "core/job/job.h"
#include <stddef.h>

#define SPREAD_UNASSIGNED (-1)

/*
 * Gives each segment a node, as evenly as it can be, with as few moves from what was as that takes; which ones move, and
 * to whom, rendezvous hashing of the names decides, so that whoever asks gets the same answer. 'was' and 'ret' are
 * places in 'names', or SPREAD_UNASSIGNED; without nodes nobody gets anything. Returns how many have moved.
 */
size_t spread_segments(const char *const names[], size_t n, const int was[SEGMENTS], int ret[SEGMENTS]);
