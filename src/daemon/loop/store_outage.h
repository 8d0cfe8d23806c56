/* SPDX-License-Identifier: Apache-2.0 */
/* Notices when the store does not answer, so that nobody waits for it in vain. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct store_outage;
struct sd_event;
struct store_thread;

struct store_outage_options {                     /* everything is borrowed and outlives it */
	const struct store_thread *threads[2]; /* whose work is watched; NULL: no such */
	const struct clock *clock;          /* of this host */
	const char *where;                  /* the store */
	usec_t hold_max;                    /* a peer that was stopped while it wrote, and holds the file so long, is ended */
	/* Every now and then while the store is away. 'unknown': so long that nobody should wait for what is under way. */
	void (*on_away)(const struct err *why, bool unknown, void *arg);
	void *arg;
};

bool store_outage_new(struct sd_event *ev, const struct store_outage_options *o, struct store_outage **ret, struct err *e);
void store_outage_free(struct store_outage *o);
AUTO_DEFINE(store_outage);

void store_outage_watch(struct store_outage *o); /* something was asked of the store */
/* Since when it has been away, on the clock of the wall; 0: it answers. *why (may be NULL) says it in words: ERR_BUSY. */
usec_t store_outage_since(const struct store_outage *o /* NULL: it answers */, struct err *why);
