/* SPDX-License-Identifier: Apache-2.0 */
/* Loads each time zone once and keeps it by name. */
#include "core/time/zone_cache.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/time/zone.h"

#include <string.h>

#define BUCKETS 256 /* tzdata has about 600 names, a machine uses a handful */

struct entry {
	struct zone *zone;
	struct entry *next;
};
struct zone_cache {
	zone_load_fn *load;
	struct entry *buckets[BUCKETS];
};

struct zone_cache *zone_cache_new(zone_load_fn *load)
{
	struct zone_cache *c = xcalloc(1, sizeof *c);

	c->load = load;
	return c;
}

void zone_cache_clear(struct zone_cache *c)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		while (c->buckets[i]) {
			struct entry *gone = c->buckets[i];

			c->buckets[i] = gone->next;
			zone_free(gone->zone);
			free(gone);
		}
	}
}

void zone_cache_free(struct zone_cache *c)
{
	if (!c)
		return;
	zone_cache_clear(c);
	free(c);
}

static struct entry **bucket_of(struct zone_cache *c, const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return &c->buckets[h % BUCKETS];
}

bool zone_cache_get(struct zone_cache *c, const char *name, const struct zone **ret, struct err *e)
{
	AUTO_DONE(buf) bytes = {};
	struct entry **bucket, *fresh;
	struct zone *z = NULL;

	if (!name || !strcmp(name, zone_utc.name)) {
		*ret = &zone_utc;
		return true;
	}
	bucket = bucket_of(c, name);
	for (struct entry *at = *bucket; at; at = at->next)
		if (!strcmp(at->zone->name, name)) {
			*ret = at->zone;
			return true;
		}
	if (!zone_name_check(name, e) || !c->load(name, &bytes, e) ||
	    !zone_parse(name, bytes.data, bytes.len, &z, e))
		return false;
	fresh = xcalloc(1, sizeof *fresh);
	*fresh = (struct entry){ .zone = z, .next = *bucket };
	*bucket = fresh;
	*ret = z;
	return true;
}
