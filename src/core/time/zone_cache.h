/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of parsed time zones by name. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct buf;
struct err;
struct zone;
struct zone_cache;

/*
 * Appends the bytes of a zone's TZif file; the name was checked. tzfile_read does it with the
 * system's files.
 */
typedef bool zone_load_fn(const char *name, struct buf *out, struct err *e);

/* Not shared between threads; the zones are, while the cache lives. */
struct zone_cache *zone_cache_new(zone_load_fn *load);
void zone_cache_free(struct zone_cache *c);
AUTO_DEFINE(zone_cache);

/*
 * The zone is the cache's. NULL and "UTC" need no file. ERR_INVALID with field "tz": no such zone,
 * or a damaged one.
 */
bool zone_cache_get(struct zone_cache *c, const char *name, const struct zone **ret, struct err *e);

/* Forgets everything, so that new tzdata is seen; no schedule may hold a zone. */
void zone_cache_clear(struct zone_cache *c);
