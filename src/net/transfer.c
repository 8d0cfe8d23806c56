/* SPDX-License-Identifier: Apache-2.0 */
/* Connects libcurl's sockets and its timer with an sd-event loop. */
#include "net/transfer.h"
#include "base/err.h"
#include "base/text.h"
#include <curl/curl.h>
#include <errno.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

struct transfers {
	sd_event *ev;           /* borrowed */
	CURLM *multi;           /* owned */
	sd_event_source *timer;
	struct transfer *first; /* unfinished */
};

_Static_assert(sizeof(((struct transfer *)0)->error) >= CURL_ERROR_SIZE, "libcurl writes that much");

static void transfer_remove(struct transfer *t)
{
	struct transfers *all = t->all;

	if (!all)
		return;
	for (struct transfer **at = &all->first; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
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

static int on_curl_socket(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct transfers *all = arg;
	int mask = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		(events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		(events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
	    running;

	(void)source;
	curl_multi_socket_action(all->multi, fd, mask, &running);
	finished_transfers_collect(all);
	return 0;
}

static int on_curl_socket_change(CURL *easy, curl_socket_t fd, int what, void *arg, void *mine)
{
	struct transfers *all = arg;
	sd_event_source *source = mine;
	uint32_t events =
		(what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(source);
		curl_multi_assign(all->multi, fd, NULL);
	} else if (source) {
		sd_event_source_set_io_events(source, events);
	} else {
		if (sd_event_add_io(all->ev, &source, fd, events, on_curl_socket, all) < 0)
			return -1;
		curl_multi_assign(all->multi, fd, source);
	}
	return 0;
}

static int on_curl_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct transfers *all = arg;
	int running;

	(void)source;
	(void)usec;
	curl_multi_socket_action(all->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	finished_transfers_collect(all);
	return 0;
}

static int on_curl_timer_change(CURLM *multi, long ms, void *arg)
{
	struct transfers *all = arg;

	(void)multi;
	if (ms >= 0)
		sd_event_source_set_time_relative(all->timer, (uint64_t)ms * 1000);
	sd_event_source_set_enabled(all->timer, ms < 0 ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
	return 0;
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

bool transfers_new(struct sd_event *ev, struct transfers **ret, struct err *e)
{
	AUTO(transfers) *all = NULL;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_INTERNAL, "could not start libcurl");
	all = xcalloc(1, sizeof(*all));
	all->ev = ev;
	all->multi = curl_multi_init();
	r = sd_event_add_time(ev, &all->timer, CLOCK_BOOTTIME, 0, 1, on_curl_timer, all);
	if (!all->multi || r < 0 || (r = sd_event_source_set_enabled(all->timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, r < 0 ? -r : ENOMEM, "could not set up transfers");
	curl_multi_setopt(all->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket_change);
	curl_multi_setopt(all->multi, CURLMOPT_SOCKETDATA, all);
	curl_multi_setopt(all->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer_change);
	curl_multi_setopt(all->multi, CURLMOPT_TIMERDATA, all);
	*ret = STEAL(all);
	return true;
}

void transfers_free(struct transfers *all)
{
	if (!all)
		return;
	while (all->first)
		transfer_remove(all->first);
	curl_multi_cleanup(all->multi);
	sd_event_source_disable_unref(all->timer);
	free(all);
	curl_global_cleanup();
}
