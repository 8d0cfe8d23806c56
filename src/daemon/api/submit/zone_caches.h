/* SPDX-License-Identifier: Apache-2.0 */
/* The zones that submissions are read against: a cache for each thread that does so. */
#pragma once
#include "base/auto.h"

struct store_thread;
struct zone_cache;

struct zone_caches {
	struct zone_cache *loop;   /* for use on the loop */
	struct zone_cache *reader; /* for use on the reader's thread */
};
struct zone_caches *zone_caches_new(void);
void zone_caches_free(struct zone_caches *z); /* after the store thread has ended */
AUTO_DEFINE(zone_caches);

/* On the loop: both are read again when they are needed next. */
void zone_caches_forget(struct zone_caches *z, struct store_thread *store);
