/* SPDX-License-Identifier: Apache-2.0 */
/* Connects libcurl's sockets and its timer with an sd-event loop. */
#include "net/transfer.h"
#include "base/err.h"
#include "base/text.h"
#include <curl/curl.h>
#include <errno.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#define EVENTS_PER_TURN 128
/* libcurl's default is four per unfinished transfer, which closes most connections in a pause between calls */
#define IDLE_CONNECTIONS_MAX 512L
#define IDLE_MAX 256 /* handles that are kept for later transfers */

struct transfers {
	sd_event *ev;            /* borrowed */
	CURLM *multi;            /* owned */
	int epoll;               /* libcurl's sockets; one event source for all of them */
	sd_event_source *ready, *timer, *now;
	uint64_t timer_at, wanted_at; /* boottime; the timer may be early. UINT64_MAX: none */
	struct transfer *first;  /* unfinished */
	CURL *idle[IDLE_MAX];    /* owned */
	size_t idle_n;
};

_Static_assert(sizeof(((struct transfer *)0)->error) >= CURL_ERROR_SIZE, "libcurl writes that much");

static void transfer_remove(struct transfer *t)
{
	struct transfers *all = t->all;

	if (!all)
		return;
	*t->at = t->next;
	if (t->next)
		t->next->at = t->at;
	curl_multi_remove_handle(all->multi, t->easy);
	t->all = NULL;
}

static void finished_transfers_collect(struct transfers *all)
{
	const CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(all->multi, &left)))
		if (m->msg == CURLMSG_DONE) {
			CURLcode result = m->data.result;
			struct transfer *t = NULL;

			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
			transfer_remove(t);
			t->on_end(t, (int)result);
		}
}

static int on_curl_sockets(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct transfers *all = arg;
	struct epoll_event ready[EVENTS_PER_TURN];
	int n = epoll_wait(fd, ready, EVENTS_PER_TURN, 0), running;

	(void)source;
	(void)events;
	/* libcurl ignores an event of a socket that it has closed meanwhile */
	for (int i = 0; i < n; i++) {
		uint32_t e = ready[i].events;

		curl_multi_socket_action(all->multi, ready[i].data.fd,
			(e & EPOLLIN ? CURL_CSELECT_IN : 0) | (e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
				(e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
			&running);
	}
	finished_transfers_collect(all);
	return 0;
}

static int on_curl_socket_change(CURL *easy, curl_socket_t fd, int what, void *arg, void *mine)
{
	struct transfers *all = arg;
	struct epoll_event e = {.data.fd = fd,
		.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0)};

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(all->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (epoll_ctl(all->epoll, mine ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e) < 0)
		return -1;
	if (!mine)
		curl_multi_assign(all->multi, fd, all);
	return 0;
}

static void curl_timers_run(struct transfers *all)
{
	int running;

	curl_multi_socket_action(all->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	finished_transfers_collect(all);
}

static void timer_set(struct transfers *all)
{
	all->timer_at = all->wanted_at;
	sd_event_source_set_time(all->timer, all->timer_at);
	sd_event_source_set_enabled(all->timer, SD_EVENT_ONESHOT);
}

static int on_curl_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct transfers *all = arg;

	(void)source;
	all->timer_at = UINT64_MAX;
	if (all->wanted_at <= usec || all->wanted_at <= (uint64_t)clock_boot(&clock_system)) {
		all->wanted_at = UINT64_MAX;
		curl_timers_run(all);
	} else if (all->wanted_at != UINT64_MAX)
		timer_set(all);
	return 0;
}

static int on_curl_now(sd_event_source *source, void *arg)
{
	(void)source;
	curl_timers_run(arg);
	return 0;
}

/*
 * Called by libcurl for each transfer that starts (0 ms) or ends. Transfers that start together are started by one
 * call of libcurl, and the timer is not changed if it expires early enough.
 */
static int on_curl_timer_change(CURLM *multi, long ms, void *arg)
{
	struct transfers *all = arg;

	(void)multi;
	if (ms == 0) {
		sd_event_source_set_enabled(all->now, SD_EVENT_ONESHOT);
		return 0;
	}
	all->wanted_at = ms < 0 ? UINT64_MAX : (uint64_t)clock_boot(&clock_system) + (uint64_t)ms * 1000;
	if (all->wanted_at < all->timer_at)
		timer_set(all);
	return 0;
}

bool transfer_open(struct transfer *t, struct transfers *all, struct err *e)
{
	t->easy = all->idle_n > 0 ? all->idle[--all->idle_n] : curl_easy_init();
	return t->easy || err_set(e, ERR_INTERNAL, "could not start libcurl");
}

bool transfer_start(struct transfer *t, struct transfers *all)
{
	CURL *c = t->easy;

	if (!c || curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) != CURLE_OK ||
		curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK ||
		curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) != CURLE_OK ||
		curl_easy_setopt(c, CURLOPT_USERAGENT, "jobsched/" PACKAGE_VERSION) != CURLE_OK ||
		curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->error) != CURLE_OK ||
#if LIBCURL_VERSION_NUM >= 0x075700
		/* cleanup does not wait for a pending name resolution */
		curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L) != CURLE_OK ||
#endif
		curl_easy_setopt(c, CURLOPT_PRIVATE, t) != CURLE_OK ||
		curl_multi_add_handle(all->multi, c) != CURLM_OK)
		return false;
	t->all = all;
	t->next = all->first;
	t->at = &all->first;
	if (t->next)
		t->next->at = &t->next;
	all->first = t;
	return true;
}

int transfer_status(const struct transfer *t, usec_t *ret_retry_after)
{
	curl_off_t wait = 0;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &wait);
	*ret_retry_after = wait > 0 ? (wait < 86400 ? wait : 86400) * USEC_SEC : 0;
	return status >= 0 && status <= 999 ? (int)status : 0;
}

void transfer_done(struct transfer *t)
{
	transfer_remove(t);
	curl_easy_cleanup(t->easy);
	t->easy = NULL;
}

void transfer_give_back(struct transfer *t, struct transfers *all)
{
	transfer_remove(t);
	if (t->easy && all->idle_n < IDLE_MAX) {
		curl_easy_reset(t->easy);
		all->idle[all->idle_n++] = STEAL(t->easy);
	}
	transfer_done(t);
}

bool transfers_new(struct sd_event *ev, struct transfers **ret, struct err *e)
{
	AUTO(transfers) *all = NULL;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_INTERNAL, "could not start libcurl");
	all = xcalloc(1, sizeof(*all));
	all->ev = ev;
	all->timer_at = all->wanted_at = UINT64_MAX;
	all->multi = curl_multi_init();
	all->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = all->epoll < 0 ? -errno : sd_event_add_io(ev, &all->ready, all->epoll, EPOLLIN, on_curl_sockets, all);
	if (r >= 0)
		r = sd_event_add_time(ev, &all->timer, CLOCK_BOOTTIME, 0, 1, on_curl_timer, all);
	if (r >= 0)
		r = sd_event_add_defer(ev, &all->now, on_curl_now, all);
	if (!all->multi || r < 0 || (r = sd_event_source_set_enabled(all->timer, SD_EVENT_OFF)) < 0 ||
		(r = sd_event_source_set_enabled(all->now, SD_EVENT_OFF)) < 0)
		return err_errno(e, r < 0 ? -r : ENOMEM, "could not set up transfers");
	curl_multi_setopt(all->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket_change);
	curl_multi_setopt(all->multi, CURLMOPT_SOCKETDATA, all);
	curl_multi_setopt(all->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer_change);
	curl_multi_setopt(all->multi, CURLMOPT_TIMERDATA, all);
	curl_multi_setopt(all->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MAX);
	*ret = STEAL(all);
	return true;
}

void transfers_free(struct transfers *all)
{
	if (!all)
		return;
	while (all->first)
		transfer_remove(all->first);
	while (all->idle_n > 0)
		curl_easy_cleanup(all->idle[--all->idle_n]);
	curl_multi_cleanup(all->multi);
	sd_event_source_disable_unref(all->ready);
	sd_event_source_disable_unref(all->timer);
	sd_event_source_disable_unref(all->now);
	auto_fd_close(&all->epoll);
	free(all);
	curl_global_cleanup();
}
