/* SPDX-License-Identifier: Apache-2.0 */
/* Sees to it that nothing is planned or claimed by a clock that is not to be believed, or before catch-up is done. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/time/clock_trust.h"
#include <stdbool.h>

struct store_thread;
struct clock_guard;
struct schedule_cache;

struct clock_guard_options {
	const struct clock *clock;
	bool (*synchronised)(void);   /* what the kernel says; NULL: ask it */
	struct store_thread *store;   /* borrowed */
	struct schedule_cache *schedule_cache;  /* borrowed; asked on the store thread */
	usec_t wait;                  /* so long an unsynchronised clock is waited for, soon after a boot */
	bool (*others)(void *arg);    /* other nodes were there while we were not: nothing is to be caught up. NULL: never */
	void (*on_change)(void *arg); /* it is time to pump again */
	void *arg;
};
struct clock_guard *clock_guard_new(const struct clock_guard_options *o);
void clock_guard_free(struct clock_guard *t); /* after the store thread has ended */
AUTO_DEFINE(clock_guard);

void clock_guard_set_wait(struct clock_guard *t, usec_t wait);
/* The node is open; 'last_seen' is when an engine before this one was there (op_node_open), 0: never. */
void clock_guard_start(struct clock_guard *t, usec_t last_seen);

/* What may go on now, and when to ask again at the latest. */
struct clock_guard_verdict {
	bool plan, claim;
	usec_t again; /* USEC_NEVER: on_change tells */
};
struct clock_guard_verdict clock_guard_pump(struct clock_guard *t);
void clock_guard_set_alarm(struct clock_guard *t, usec_t alarm); /* when the next pump must come; USEC_NEVER: no such time */

enum clock_trust clock_guard_trust(const struct clock_guard *t); /* for people; NULL: good */
