/* SPDX-License-Identifier: Apache-2.0 */
/* Posts webhooks with libcurl; reports whether the server accepted them. */
#include "net/webhook.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "net/transfer.h"
#include <curl/curl.h>
#include <string.h>

#define RESPONSE_SHOWN 200 /* bytes of a response that an error quotes */

struct webhooks {
	webhook_done_fn *fn;
	void *arg;
	struct transfers *transfers; /* owned */
	struct post *posts; /* unfinished */
};

struct post {
	struct transfer transfer;  /* the first member */
	struct webhooks *all;
	void *owner;
	struct curl_slist *headers; /* owned */
	struct buf response; /* its beginning */
	size_t response_len;       /* of the whole response */
	struct post *next;
};

static void post_free(struct post *p)
{
	transfer_done(&p->transfer);
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
}

/* ---- the end of a post ---- */

static void post_describe_error(const struct post *p, CURLcode result, struct buf *out)
{
	long status = 0;

	curl_easy_getinfo(p->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK)
		buf_str(out, p->transfer.error[0] ? p->transfer.error : curl_easy_strerror(result));
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

static void on_post_end(struct transfer *t, int result)
{
	struct post *p = (struct post *)t;
	struct webhooks *w = p->all;
	AUTO_DONE(buf) error = {};

	post_describe_error(p, (CURLcode)result, &error);
	post_remove(w, p);
	w->fn(p->owner, error.len ? error.data : NULL, w->arg);
	post_free(p);
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
	CURL *c = p->transfer.easy;

	return curl_easy_setopt(c, CURLOPT_URL, from->url) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(from->timeout / USEC_MSEC)) ==
		CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, p->headers) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)from->len) ==
		CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, from->body) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_response_data) == CURLE_OK &&
		curl_easy_setopt(c, CURLOPT_WRITEDATA, p) == CURLE_OK;
}

bool webhooks_post(struct webhooks *w, const struct webhook_post *from, struct err *e)
{
	struct post *p = xcalloc(1, sizeof(*p));

	p->owner = from->owner;
	p->all = w;
	p->transfer.on_end = on_post_end;
	for (size_t i = 0; i < from->headers_n; i++)
		p->headers = curl_slist_append(p->headers, from->headers[i]);
	p->transfer.easy = curl_easy_init();
	if (!p->transfer.easy || !post_set_options(p, from) ||
		!transfer_start(&p->transfer, w->transfers)) {
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
	AUTO(webhooks) *w = xcalloc(1, sizeof(*w));

	w->fn = fn;
	w->arg = arg;
	if (!transfers_new(ev, &w->transfers, e))
		return false;
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
	transfers_free(w->transfers);
	free(w);
}
