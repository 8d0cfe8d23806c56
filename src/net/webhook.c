/* SPDX-License-Identifier: Apache-2.0 */
/* Runs libcurl transfers on an sd-event loop. */
#include "net/webhook.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#define RESPONSE_SHOWN 200 /* bytes of a response that an error quotes */

struct webhooks {
	sd_event *ev;      /* borrowed */
	webhook_done_fn *fn;
	void *arg;
	CURLM *multi;      /* owned */
	sd_event_source *timer;
	struct post *posts; /* unfinished */
};

struct post {
	void *owner;
	CURL *easy;                /* owned */
	struct curl_slist *headers; /* owned */
	struct buf response; /* its beginning */
	size_t response_len;       /* of the whole response */
	char error[CURL_ERROR_SIZE];
	struct post *next;
};

static void post_free(struct post *p)
{
	curl_easy_cleanup(p->easy);
	curl_slist_free_all(p->headers);
	buf_done(&p->response);
	free(p);
}

static void post_remove(struct webhooks *w, struct post *p)
{
	for (struct post **at = &w->posts; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	curl_multi_remove_handle(w->multi, p->easy);
}

/* ---- the end of a post ---- */

static void post_describe_error(const struct post *p, CURLcode result, struct buf *out)
{
	long status = 0;

	curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK)
		buf_str(out, p->error[0] ? p->error : curl_easy_strerror(result));
	else if (status >= 300 && status < 400)
		buf_printf(out,
			"the server answered %ld; redirects are not followed, use the final URL",
			status);
	else if (status < 200 || status > 299)
		buf_printf(out, "the server answered %ld", status);
	if (out->len > 0 && result == CURLE_OK && p->response.len > 0) {
		buf_str(out, ": ");
		text_escape(out, p->response.data, p->response.len);
	}
}

static void post_finish(struct webhooks *w, struct post *p, CURLcode result)
{
	AUTO_DONE(buf) error = {};

	post_describe_error(p, result, &error);
	post_remove(w, p);
	w->fn(p->owner, error.len ? error.data : NULL, w->arg);
	post_free(p);
}

static void finished_posts_collect(struct webhooks *w)
{
	const CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(w->multi, &left)))
		if (m->msg == CURLMSG_DONE) {
			CURLcode result = m->data.result;
			void *p = NULL;

			curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &p);
			post_finish(w, p, result);
		}
}

/* ---- libcurl's sockets and its timer ---- */

static int on_curl_socket(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct webhooks *w = arg;
	int mask = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		(events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		(events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
	    running;

	(void)source;
	curl_multi_socket_action(w->multi, fd, mask, &running);
	finished_posts_collect(w);
	return 0;
}

static int on_curl_socket_change(CURL *easy, curl_socket_t fd, int what, void *arg, void *mine)
{
	struct webhooks *w = arg;
	sd_event_source *source = mine;
	uint32_t events =
		(what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(source);
		curl_multi_assign(w->multi, fd, NULL);
	} else if (source) {
		sd_event_source_set_io_events(source, events);
	} else {
		if (sd_event_add_io(w->ev, &source, fd, events, on_curl_socket, w) < 0)
			return -1;
		curl_multi_assign(w->multi, fd, source);
	}
	return 0;
}

static int on_curl_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct webhooks *w = arg;
	int running;

	(void)source;
	(void)usec;
	curl_multi_socket_action(w->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	finished_posts_collect(w);
	return 0;
}

static int on_curl_timer_change(CURLM *multi, long ms, void *arg)
{
	struct webhooks *w = arg;

	(void)multi;
	if (ms >= 0)
		sd_event_source_set_time_relative(w->timer, (uint64_t)ms * 1000);
	sd_event_source_set_enabled(w->timer, ms < 0 ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
	return 0;
}

/* ---- one post ---- */

static size_t on_response_data(char *data, size_t size, size_t n, void *arg)
{
	struct post *p = arg;
	size_t len = size * n;

	p->response_len += len;
	if (p->response.len < RESPONSE_SHOWN)
		buf_add(&p->response, data,
			len < RESPONSE_SHOWN - p->response.len ? len
							       : RESPONSE_SHOWN - p->response.len);
	return p->response_len > WEBHOOK_RESPONSE_MAX ? 0 : len;
}

static bool post_set_options(struct post *p, const struct webhook_post *from)
{
	CURL *c = p->easy;

	return curl_easy_setopt(c, CURLOPT_URL, from->url) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(from->timeout / USEC_MSEC)) ==
		CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, p->headers) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)from->len) ==
		CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, from->body) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_USERAGENT, "jobsched/" PACKAGE_VERSION) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_response_data) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEDATA, p) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_ERRORBUFFER, p->error) == CURLE_OK &&
#if LIBCURL_VERSION_NUM >= 0x075700
		/* cleanup does not wait for a pending name resolution */
		curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
#endif
		curl_easy_setopt(c, CURLOPT_PRIVATE, p) == CURLE_OK;
}

bool webhooks_post(struct webhooks *w, const struct webhook_post *from, struct err *e)
{
	struct post *p = xcalloc(1, sizeof(*p));

	p->owner = from->owner;
	for (size_t i = 0; i < from->headers_n; i++)
		p->headers = curl_slist_append(p->headers, from->headers[i]);
	p->easy = curl_easy_init();
	if (!p->easy || !post_set_options(p, from) ||
		curl_multi_add_handle(w->multi, p->easy) != CURLM_OK) {
		post_free(p);
		return err_set(e, ERR_INVALID, "cannot send to '%.80s'", from->url);
	}
	p->next = w->posts;
	w->posts = p;
	return true;
}

void webhooks_cancel(struct webhooks *w, const void *owner)
{
	struct post *p = w->posts;

	while (p && p->owner != owner)
		p = p->next;
	if (!p)
		return;
	post_remove(w, p);
	post_free(p);
}

/* ---- start and stop ---- */

bool webhooks_new(
	struct sd_event *ev, webhook_done_fn *fn, void *arg, struct webhooks **ret, struct err *e)
{
	AUTO(webhooks) *w = NULL;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_INTERNAL, "could not start libcurl");
	w = xcalloc(1, sizeof(*w));
	w->ev = ev;
	w->fn = fn;
	w->arg = arg;
	w->multi = curl_multi_init();
	r = sd_event_add_time(ev, &w->timer, CLOCK_BOOTTIME, 0, 1, on_curl_timer, w);
	if (!w->multi || r < 0 || (r = sd_event_source_set_enabled(w->timer, SD_EVENT_OFF)) < 0)
		return err_errno(e, r < 0 ? -r : ENOMEM, "could not set up webhooks");
	curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket_change);
	curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
	curl_multi_setopt(w->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer_change);
	curl_multi_setopt(w->multi, CURLMOPT_TIMERDATA, w);
	*ret = STEAL(w);
	return true;
}

void webhooks_free(struct webhooks *w)
{
	struct post *p;

	if (!w)
		return;
	while ((p = w->posts)) {
		post_remove(w, p);
		post_free(p);
	}
	curl_multi_cleanup(w->multi);
	sd_event_source_disable_unref(w->timer);
	free(w);
	curl_global_cleanup();
}
