/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns schedule segments to nodes. */
#pragma once
#include "core/job/job.h"
#include <stddef.h>

#define SPREAD_UNASSIGNED (-1)

/*
 * Distributes the segments evenly over the nodes with as few moves as possible. Rendezvous hashing
 * of the names selects the segments that move and their new nodes, so every node computes the same
 * result. 'was' and 'ret' hold indexes of 'names' or SPREAD_UNASSIGNED; without nodes all segments
 * are unassigned. Returns the number of moved segments.
 */
size_t spread_segments(const char *const names[], size_t n, const int was[SEGMENTS], int ret[SEGMENTS]);
