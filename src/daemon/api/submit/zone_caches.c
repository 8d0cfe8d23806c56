/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the zones of submissions, and forgets them where they are used. */
#include "daemon/api/submit/zone_caches.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/time/zone_cache.h"
#include "daemon/loop/store_thread.h"

struct zones *zones_new(void)
{
	struct zones *z = xcalloc(1, sizeof(*z));

	z->loop = zone_cache_new(tzfile_read);
	z->reader = zone_cache_new(tzfile_read);
	return z;
}

void zones_free(struct zones *z)
{
	if (!z)
		return;
	zone_cache_free(z->loop);
	zone_cache_free(z->reader);
	free(z);
}

struct forgetting {
	struct read_task task;
	struct zone_cache *cache;
};

static void forget(struct store *s, struct read_task *task)
{
	(void)s;
	zone_cache_clear(((struct forgetting *)task)->cache);
}

static void forgotten(struct read_task *task)
{
	free((struct forgetting *)task);
}

void zones_forget(struct zones *z, struct store_thread *store)
{
	struct forgetting *f = xcalloc(1, sizeof(*f));

	zone_cache_clear(z->loop);
	*f = (struct forgetting){.task = {.work = forget, .done = forgotten}, .cache = z->reader};
	store_thread_read(store, &f->task);
}
