/* SPDX-License-Identifier: Apache-2.0 */
/* Time zone caches, one for each thread that parses submissions. */
#pragma once
#include "base/auto.h"

struct store_thread;
struct zone_cache;

struct zone_caches {
	struct zone_cache *loop;   /* for the loop thread */
	struct zone_cache *reader; /* for the reader thread */
};
struct zone_caches *zone_caches_new(void);
void zone_caches_free(struct zone_caches *z); /* after the store threads have ended */
AUTO_DEFINE(zone_caches);

/* On the loop: clears both caches, the one of the reader on its thread. */
void zone_caches_forget(struct zone_caches *z, struct store_thread *store);
