/* SPDX-License-Identifier: Apache-2.0 */
/* Sees to it that nothing is planned or claimed by a clock that is not to be believed, or before catch-up is done. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/time/clock_trust.h"
#include <stdbool.h>

struct store_thread;
struct timekeeper;
struct timetable;

struct timekeeper_options {
	const struct clock *clock;
	bool (*synchronised)(void);   /* what the kernel says; NULL: ask it */
	struct store_thread *store;   /* borrowed */
	struct timetable *timetable;  /* borrowed; asked on the store thread */
	usec_t wait;                  /* so long an unsynchronised clock is waited for, soon after a boot */
	bool (*others)(void *arg);    /* other nodes were there while we were not: nothing is to be caught up. NULL: never */
	void (*on_change)(void *arg); /* it is time to pump again */
	void *arg;
};
struct timekeeper *timekeeper_new(const struct timekeeper_options *o);
void timekeeper_free(struct timekeeper *t); /* after the store thread has ended */
AUTO_DEFINE(timekeeper);

void timekeeper_set_wait(struct timekeeper *t, usec_t wait);
/* The node is open; 'last_seen' is when an engine before this one was there (op_node_open), 0: never. */
void timekeeper_start(struct timekeeper *t, usec_t last_seen);

/* What may go on now, and when to ask again at the latest. */
struct timekeeper_word {
	bool plan, claim;
	usec_t again; /* USEC_NEVER: on_change tells */
};
struct timekeeper_word timekeeper_pump(struct timekeeper *t);
void timekeeper_armed(struct timekeeper *t, usec_t alarm); /* when the next pump must come; USEC_NEVER: no such time */

enum clock_trust timekeeper_trust(const struct timekeeper *t); /* for people; NULL: good */
