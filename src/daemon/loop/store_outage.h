/* SPDX-License-Identifier: Apache-2.0 */
/* Detects a store that does not answer, so that requests are refused instead of waiting. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct store_outage;
struct sd_event;
struct store_thread;

struct store_outage_options {                     /* everything is borrowed and outlives the detector */
	const struct store_thread *threads[2]; /* watched; NULL: none */
	const struct clock *clock;          /* of this host */
	const char *where;                  /* the store */
	/*
	 * A node that was stopped (SIGSTOP) while it wrote is killed when it has held the file for
	 * this long.
	 */
	usec_t hold_max;
	/*
	 * Repeatedly during an outage. 'unknown': clients should not wait any longer for operations
	 * that are under way.
	 */
	void (*on_away)(const struct err *why, bool unknown, void *arg);
	void *arg;
};

bool store_outage_new(struct sd_event *ev, const struct store_outage_options *o,
	struct store_outage **ret, struct err *e);
void store_outage_free(struct store_outage *o);
AUTO_DEFINE(store_outage);

void store_outage_watch(struct store_outage *o); /* an operation was submitted */
/*
 * Start of the outage on the wall clock; 0: the store answers. *why (may be NULL) gets ERR_BUSY
 * with the reason.
 */
usec_t store_outage_since(const struct store_outage *o /* NULL: the store answers */, struct err *why);
