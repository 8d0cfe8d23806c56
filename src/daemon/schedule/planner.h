/* SPDX-License-Identifier: Apache-2.0 */
/* Turns due slots into runs a little ahead of time; decides nothing about whether they run. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"

struct planner;
struct store_thread;
struct schedule_cache;

struct planner *planner_new(const struct clock *clock, struct store_thread *store /* borrowed */,
	const char *node_id /* borrowed; NULL: it plans all segments */);
struct schedule_cache *planner_schedule_cache(const struct planner *p); /* borrowed */
void planner_free(struct planner *p); /* after the store thread has ended */
AUTO_DEFINE(planner);

/* The first slot that waits in the store, after a batch; USEC_NEVER: none. */
void planner_set_next_slot(struct planner *p, usec_t next_slot);
/* Plans what is inside the look-ahead now. Returns when to call again; USEC_NEVER: after the next batch. */
usec_t planner_pump(struct planner *p);
/* Once at start: jobs for boots get a run if this is a new boot of the kernel, as the store knows. */
void planner_boot(struct planner *p, const char *node_name /* borrowed for ever */);
void planner_invalidate(struct planner *p); /* schedules are compiled anew, zones read again */
const char *planner_refused(const struct planner *p, usec_t *ret_since); /* why nothing is planned; NULL: it is */
usec_t planner_next_slot(const struct planner *p); /* the first slot that waits; USEC_NEVER: none */
void planner_stop(struct planner *p); /* no further planning */
