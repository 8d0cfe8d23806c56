/* SPDX-License-Identifier: Apache-2.0 */
/* Watches by run and by job; telling costs the number of those who listen. */
#include "daemon/loop/run_watch.h"
#include "base/map.h"
#include "base/text.h"
#include <assert.h>

struct hub_watch {
	struct hub *hub;
	int64_t job, run;
	hub_fn *fn;
	void *arg;
	bool gone;               /* ended while lists were walked */
	struct hub_watch *next;
	struct hub_watch *next_gone;
};

struct hub {
	struct map by_run, by_job; /* lists of watches */
	size_t watches;
	unsigned walking;          /* calls of hub_tell that are going on, one inside another */
	struct hub_watch *gone;    /* to be freed after the last of them */
};

struct hub *hub_new(void)
{
	return xcalloc(1, sizeof(struct hub));
}

void hub_free(struct hub *h)
{
	if (!h)
		return;
	assert(h->watches == 0);
	map_done(&h->by_run);
	map_done(&h->by_job);
	free(h);
}

static struct map *map_of(struct hub *h, int64_t run)
{
	return run ? &h->by_run : &h->by_job;
}

struct hub_watch *hub_watch_new(struct hub *h, int64_t job, int64_t run, hub_fn *fn, void *arg)
{
	struct hub_watch *w = xcalloc(1, sizeof(*w));
	int64_t key = run ? run : job;

	*w = (struct hub_watch){.hub = h, .job = job, .run = run, .fn = fn, .arg = arg};
	w->next = map_get(map_of(h, run), key);
	map_put(map_of(h, run), key, w);
	h->watches++;
	return w;
}

static void unlink_watch(struct hub *h, struct hub_watch *w)
{
	struct map *m = map_of(h, w->run);
	int64_t key = w->run ? w->run : w->job;
	struct hub_watch *first = map_get(m, key), **at = &first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (first)
		map_put(m, key, first);
	else
		map_take(m, key);
	free(w);
}

void hub_watch_free(struct hub_watch *w)
{
	if (!w)
		return;
	w->hub->watches--;
	if (!w->hub->walking) {
		unlink_watch(w->hub, w);
		return;
	}
	w->gone = true;
	w->next_gone = w->hub->gone;
	w->hub->gone = w;
}

static void tell_list(struct hub_watch *first, int64_t job, int64_t run, enum run_state state)
{
	for (struct hub_watch *w = first; w; w = w->next)
		if (!w->gone)
			w->fn(job, run, state, w->arg);
}

static void walked(struct hub *h)
{
	if (--h->walking)
		return;
	while (h->gone) {
		struct hub_watch *w = h->gone;

		h->gone = w->next_gone;
		unlink_watch(h, w);
	}
}

void hub_tell(struct hub *h, int64_t job, int64_t run, enum run_state state)
{
	h->walking++;
	tell_list(map_get(&h->by_run, run), job, run, state);
	tell_list(map_get(&h->by_job, job), job, run, state);
	tell_list(map_get(&h->by_job, 0), job, run, state);
	walked(h);
}

/* As when all queued runs of a job have moved. */
void hub_stir(struct hub *h)
{
	struct hub_watch *w;

	h->walking++;
	for (size_t i = 0; (w = map_next(&h->by_job, &i));)
		if (w->job)
			tell_list(w, w->job, 0, RUN_SUCCEEDED);
	walked(h);
}
