/* SPDX-License-Identifier: Apache-2.0 */
/* Turns due slots into queued runs shortly before their time. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"

struct planner;
struct store_thread;
struct schedule_cache;

struct planner *planner_new(const struct clock *clock, struct store_thread *store /* borrowed */,
	const char *node_id /* borrowed; NULL: plans all segments */);
struct schedule_cache *planner_schedule_cache(const struct planner *p); /* borrowed */
void planner_free(struct planner *p); /* after the store threads have ended */
AUTO_DEFINE(planner);

/* The first slot in the store that is not planned yet, after each batch; USEC_NEVER: none. */
void planner_set_next_slot(struct planner *p, usec_t next_slot);
/*
 * Plans the slots within the look-ahead. Returns when to call again; USEC_NEVER: after the next
 * batch.
 */
usec_t planner_pump(struct planner *p);
/* Once at start: queues the boot jobs if the store has not seen this boot of the kernel. */
void planner_boot(struct planner *p, const char *node_name /* borrowed until planner_free() */);
void planner_invalidate(struct planner *p); /* compiles schedules and reads time zones again */
/* Why the last planning failed; NULL: it succeeded. */
const char *planner_refused(const struct planner *p, usec_t *ret_since);
usec_t planner_next_slot(const struct planner *p); /* see planner_set_next_slot() */
void planner_stop(struct planner *p); /* plans nothing more */
