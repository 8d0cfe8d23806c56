/* SPDX-License-Identifier: Apache-2.0 */
/* The zones that submissions are read against: a cache for each thread that does so. */
#pragma once
#include "base/auto.h"

struct store_thread;
struct zone_cache;

struct zones {
	struct zone_cache *loop;   /* for use on the loop */
	struct zone_cache *reader; /* for use on the reader's thread */
};
struct zones *zone_caches_new(void);
void zones_free(struct zones *z); /* after the store thread has ended */
AUTO_DEFINE(zones);

/* On the loop: both are read again when they are needed next. */
void zone_caches_forget(struct zones *z, struct store_thread *store);
