/* SPDX-License-Identifier: Apache-2.0 */
/* Time zone caches of the API, one per thread. */
#include "daemon/api/submit/zone_caches.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/zone_cache.h"
#include "daemon/loop/store_thread.h"

struct zone_caches *zone_caches_new(void)
{
	struct zone_caches *z = xcalloc(1, sizeof(*z));

	z->loop = zone_cache_new(tzfile_read);
	z->reader = zone_cache_new(tzfile_read);
	return z;
}

void zone_caches_free(struct zone_caches *z)
{
	if (!z)
		return;
	zone_cache_free(z->loop);
	zone_cache_free(z->reader);
	free(z);
}

struct cache_clearing {
	struct read_task task;
	struct zone_cache *cache;
};

static void clear_reader_cache(struct store *s, struct read_task *task)
{
	(void)s;
	zone_cache_clear(((struct cache_clearing *)task)->cache);
}

static void on_reader_cache_cleared(struct read_task *task)
{
	free((struct cache_clearing *)task);
}

void zone_caches_forget(struct zone_caches *z, struct store_thread *store)
{
	struct cache_clearing *f = xcalloc(1, sizeof(*f));

	zone_cache_clear(z->loop);
	*f = (struct cache_clearing){
		.task = {.work = clear_reader_cache, .done = on_reader_cache_cleared},
		.cache = z->reader};
	store_thread_read(store, &f->task);
}
