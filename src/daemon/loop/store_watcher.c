/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for change notifications on a thread, with a slow poll as fallback. */
#include "daemon/loop/store_watcher.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "store/backend/change_watch.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>

#define POLL_FALLBACK_MS 1000  /* while notifications are not available */
#define POLL_MS 10000      /* otherwise, in case a notification was lost */

struct store_watcher {
	const struct clock *clock;
	const char *where, *node;
	void (*on_news)(void *arg);
	void *arg;
	int stop_fd, news_fd;
	sd_event_source *source;
	pthread_t thread;
	bool runs;
};

/* False: the thread must end. */
static bool poll_for(struct store_watcher *w, int fd, int ms)
{
	struct pollfd fds[2] = {{.fd = w->stop_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	return (poll(fds, 2, ms) >= 0 || errno == EINTR) && !fds[0].revents;
}

/* Forwards notifications until they fail (true) or the thread must end (false). */
static bool receive_news(struct store_watcher *w, struct change_watch *from, struct err *e)
{
	usec_t told = clock_boot(w->clock);

	for (;;) {
		bool news, due;

		if (!poll_for(w, change_watch_fd(from), POLL_MS))
			return false;
		if (!change_watch_take(from, &news, e))
			return true;
		due = clock_boot(w->clock) - told >= POLL_MS * USEC_MSEC;
		if (news || due) {
			told = clock_boot(w->clock);
			eventfd_write(w->news_fd, 1);
		}
	}
}

static void *watch_changes(void *arg)
{
	struct store_watcher *w = arg;
	bool polling = false;

	for (;;) {
		AUTO(change_watch) *from = NULL;
		struct err e = {};

		if (change_watch_open(w->where, w->node, &from, &e)) {
			if (polling)
				log_info("change notifications of the store work again");
			polling = false;
			/* for changes before the notifications were enabled */
			eventfd_write(w->news_fd, 1);
			if (!receive_news(w, from, &e))
				return NULL;
		}
		if (!polling)
			log_warning(
				"no change notifications from the store, polling every second: %s",
				e.msg);
		polling = true;
		eventfd_write(w->news_fd, 1);
		if (!poll_for(w, -1,
			    POLL_FALLBACK_MS / 2 + (int)io_random_upto(POLL_FALLBACK_MS / 2)))
			return NULL;
	}
}

static int on_news_event(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct store_watcher *w = arg;
	eventfd_t count;

	(void)source;
	(void)events;
	while (eventfd_read(fd, &count) == 0)
		;
	w->on_news(w->arg);
	return 0;
}

bool store_watcher_new(struct sd_event *ev, const struct clock *clock, const char *where,
	const char *node, void (*on_news)(void *arg), void *arg, struct store_watcher **ret,
	struct err *e)
{
	AUTO(store_watcher) *w = xcalloc(1, sizeof(*w));
	int r;

	*w = (struct store_watcher){.clock = clock, .where = where, .node = node, .on_news = on_news, .arg = arg};
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->stop_fd < 0 || w->news_fd < 0)
		return err_errno(e, errno, "could not make an eventfd");
	r = sd_event_add_io(ev, &w->source, w->news_fd, EPOLLIN | EPOLLET, on_news_event, w);
	if (r < 0)
		return err_errno(e, -r, "could not watch for change notifications");
	r = pthread_create(&w->thread, NULL, watch_changes, w);
	if (r)
		return err_errno(e, r, "could not start the store watcher thread");
	w->runs = true;
	*ret = STEAL(w);
	return true;
}

void store_watcher_free(struct store_watcher *w)
{
	if (!w)
		return;
	if (w->runs) {
		eventfd_write(w->stop_fd, 1);
		pthread_join(w->thread, NULL);
	}
	sd_event_source_disable_unref(w->source);
	if (w->stop_fd >= 0)
		close(w->stop_fd);
	if (w->news_fd >= 0)
		close(w->news_fd);
	free(w);
}
