/* SPDX-License-Identifier: Apache-2.0 */
/* Watches indexed by run or job, so that a notification visits only the ones that it concerns. */
#include "daemon/loop/run_watch.h"
#include "base/map.h"
#include "base/text.h"
#include <assert.h>

struct run_watch {
	struct run_watch_set *run_watch_set;
	int64_t job, run;
	run_watch_fn *fn;
	void *arg;
	bool gone;               /* freed while the lists were walked */
	struct run_watch *next;
	struct run_watch *next_gone;
};

struct run_watch_set {
	struct map by_run, by_job; /* lists of watches */
	size_t watches;
	unsigned walking;          /* nested calls of run_watch_notify() */
	struct run_watch *gone;    /* freed after the outermost call */
};

struct run_watch_set *run_watch_set_new(void)
{
	return xcalloc(1, sizeof(struct run_watch_set));
}

void run_watch_set_free(struct run_watch_set *h)
{
	if (!h)
		return;
	assert(h->watches == 0);
	map_done(&h->by_run);
	map_done(&h->by_job);
	free(h);
}

static struct map *watch_map(struct run_watch_set *h, int64_t run)
{
	return run ? &h->by_run : &h->by_job;
}

struct run_watch *run_watch_new(struct run_watch_set *h, int64_t job, int64_t run, run_watch_fn *fn,
	void *arg)
{
	struct run_watch *w = xcalloc(1, sizeof(*w));
	int64_t key = run ? run : job;

	*w = (struct run_watch){.run_watch_set = h, .job = job, .run = run, .fn = fn, .arg = arg};
	w->next = map_get(watch_map(h, run), key);
	map_put(watch_map(h, run), key, w);
	h->watches++;
	return w;
}

static void run_watch_unlink(struct run_watch_set *h, struct run_watch *w)
{
	struct map *m = watch_map(h, w->run);
	int64_t key = w->run ? w->run : w->job;
	struct run_watch *first = map_get(m, key), **at = &first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (first)
		map_put(m, key, first);
	else
		map_take(m, key);
	free(w);
}

void run_watch_free(struct run_watch *w)
{
	if (!w)
		return;
	w->run_watch_set->watches--;
	if (!w->run_watch_set->walking) {
		run_watch_unlink(w->run_watch_set, w);
		return;
	}
	w->gone = true;
	w->next_gone = w->run_watch_set->gone;
	w->run_watch_set->gone = w;
}

static void notify_list(struct run_watch *first, int64_t job, int64_t run, enum run_state state)
{
	for (struct run_watch *w = first; w; w = w->next)
		if (!w->gone)
			w->fn(job, run, state, w->arg);
}

static void free_gone_watches(struct run_watch_set *h)
{
	if (--h->walking)
		return;
	while (h->gone) {
		struct run_watch *w = h->gone;

		h->gone = w->next_gone;
		run_watch_unlink(h, w);
	}
}

void run_watch_notify(struct run_watch_set *h, int64_t job, int64_t run, enum run_state state)
{
	h->walking++;
	notify_list(map_get(&h->by_run, run), job, run, state);
	notify_list(map_get(&h->by_job, job), job, run, state);
	notify_list(map_get(&h->by_job, 0), job, run, state);
	free_gone_watches(h);
}

void run_watch_recheck(struct run_watch_set *h)
{
	struct run_watch *w;

	h->walking++;
	for (size_t i = 0; (w = map_next(&h->by_job, &i));)
		if (w->job)
			notify_list(w, w->job, 0, RUN_SUCCEEDED);
	free_gone_watches(h);
}
