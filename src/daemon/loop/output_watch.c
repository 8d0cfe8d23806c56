/* SPDX-License-Identifier: Apache-2.0 */
/* Watches output files with inotify. */
#include "daemon/loop/output_watch.h"
#include "base/err.h"
#include "base/file/inotify.h"
#include "base/map.h"
#include "base/text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <systemd/sd-event.h>

TAILQ_HEAD(follower_list, output_follower);

/* All followers of one watch descriptor. */
struct watched {
	struct follower_list followers;
};

struct output_watch {
	int dir, dir_wd;
	int fd;
	sd_event_source *source;
	struct map watched; /* by watch descriptor, owned */
};

static bool follower_concerned(const struct output_watch *w, const struct output_follower *f,
	const struct inotify_event *ev)
{
	char name[64];

	if (ev->wd != w->dir_wd)
		return true;
	snprintf(name, sizeof(name), "%" PRId64 ".%" PRId64, f->run, f->attempt);
	return ev->len > 0 && strcmp(name, ev->name) == 0;
}

/* A callback may remove its follower from the list, so the next one is read before the call. */
static void notify_followers(struct output_watch *w, struct watched *at,
	const struct inotify_event *ev)
{
	struct output_follower *f, *next;

	for (f = TAILQ_FIRST(&at->followers); f; f = next) {
		next = TAILQ_NEXT(f, in_list);
		if (!ev || follower_concerned(w, f, ev))
			f->on_change(f);
	}
}

static void notify_all_followers(struct output_watch *w)
{
	struct watched *at;

	for (size_t i = 0; (at = map_next(&w->watched, &i));)
		notify_followers(w, at, NULL);
}

static int on_inotify_events(sd_event_source *src, int fd, uint32_t events, void *arg)
{
	_Alignas(struct inotify_event) char data[8192];
	struct output_watch *w = arg;
	ssize_t n;

	(void)src;
	(void)events;
	while ((n = read(fd, data, sizeof(data))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *ev = (const struct inotify_event *)(data + at);
			struct watched *to = map_get(&w->watched, ev->wd);

			if (ev->mask & IN_Q_OVERFLOW)
				notify_all_followers(w);
			else if (to)
				notify_followers(w, to, ev);
			at += (ssize_t)(sizeof(*ev) + ev->len);
		}
	}
	return 0;
}

bool output_watch_new(struct sd_event *ev, int dir, struct output_watch **ret, struct err *e)
{
	AUTO(output_watch) *w = xcalloc(1, sizeof(*w));
	int r;

	w->dir = dir;
	w->dir_wd = -1;
	if (!inotify_new(&w->fd, e))
		return false;
	r = sd_event_add_io(ev, &w->source, w->fd, EPOLLIN, on_inotify_events, w);
	if (r < 0)
		return err_errno(e, -r, "could not watch for output");
	*ret = STEAL(w);
	return true;
}

void output_watch_free(struct output_watch *w)
{
	struct watched *at;

	if (!w)
		return;
	sd_event_source_disable_unref(w->source);
	for (size_t i = 0; (at = map_next(&w->watched, &i));)
		free(at);
	map_done(&w->watched);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

/* Through the descriptor, so that no path is built from a number that a client sent. */
static int add_watch(const struct output_watch *w, int fd, uint32_t mask)
{
	char path[64];
	int wd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(w->fd, path, mask);
	return wd < 0 ? -errno : wd;
}

bool output_watch_follow(struct output_watch *w, struct output_follower *f, int fd, struct err *e)
{
	struct watched *at;
	int wd = fd >= 0 ? add_watch(w, fd, IN_MODIFY)
			 : add_watch(w, w->dir, IN_CREATE | IN_MOVED_TO);

	if (wd < 0)
		return err_errno(e, -wd, "could not watch for output");
	output_watch_unfollow(f);
	if (fd < 0)
		w->dir_wd = wd;
	at = map_get(&w->watched, wd);
	if (!at) {
		at = xcalloc(1, sizeof(*at));
		TAILQ_INIT(&at->followers);
		map_put(&w->watched, wd, at);
	}
	f->watch = w;
	f->wd = wd;
	TAILQ_INSERT_TAIL(&at->followers, f, in_list);
	return true;
}

void output_watch_unfollow(struct output_follower *f)
{
	struct output_watch *w = f->watch;
	struct watched *at = w ? map_get(&w->watched, f->wd) : NULL;

	if (!at)
		return;
	TAILQ_REMOVE(&at->followers, f, in_list);
	f->watch = NULL;
	if (!TAILQ_EMPTY(&at->followers))
		return;
	inotify_rm_watch(w->fd, f->wd);
	if (f->wd == w->dir_wd)
		w->dir_wd = -1;
	free(map_take(&w->watched, f->wd));
}
