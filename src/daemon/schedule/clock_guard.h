/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks planning while the clock is not trusted or catch-up is not complete. */
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
	bool (*synchronised)(void);   /* whether the clock is synchronised; NULL: asks the kernel */
	struct store_thread *store;   /* borrowed */
	struct schedule_cache *schedule_cache;  /* borrowed; used on the store thread */
	usec_t wait;                  /* for synchronisation, if the daemon starts within 3 min of a boot */
	/* Other nodes have planned meanwhile, so there is nothing to catch up. NULL: never. */
	bool (*others)(void *arg);
	void (*on_change)(void *arg); /* pump again */
	void *arg;
};
struct clock_guard *clock_guard_new(const struct clock_guard_options *o);
void clock_guard_free(struct clock_guard *t); /* after the store threads have ended */
AUTO_DEFINE(clock_guard);

void clock_guard_set_wait(struct clock_guard *t, usec_t wait);
/*
 * The node is registered. 'last_seen': when an earlier daemon last wrote to the store
 * (op_node_open); 0: never.
 */
void clock_guard_start(struct clock_guard *t, usec_t last_seen);

/*
 * Whether the node may plan and claim now, and when to call again at the latest. While the clock is
 * unsure, only runs created since 'made_since' may be claimed: a user has requested them since this
 * daemon started, or another node has planned them.
 */
struct clock_guard_verdict {
	bool plan, claim;
	usec_t made_since; /* 0: the clock is not unsure */
	usec_t again; /* USEC_NEVER: after on_change */
};
struct clock_guard_verdict clock_guard_pump(struct clock_guard *t);
/* When the next pump is due; USEC_NEVER: not known. */
void clock_guard_set_alarm(struct clock_guard *t, usec_t alarm);

/* Runs created since this time may start while the clock is unsure. 0: the clock is not unsure, or 't' is NULL. */
usec_t clock_guard_made_since(const struct clock_guard *t);
/* How long the daemon still waits for synchronisation; 0: not at all. */
usec_t clock_guard_left(const struct clock_guard *t);
/* For status requests; NULL: CLOCK_GOOD. */
enum clock_trust clock_guard_trust(const struct clock_guard *t);
