/* SPDX-License-Identifier: Apache-2.0 */
/* Caches the credentials; fetches them from an endpoint when they expire. */
#include "net/aws/aws_credentials.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "net/aws/aws_sources.h"
#include "net/transfer.h"
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#define REFRESH_BEFORE (5 * USEC_MIN)  /* the expiry */
#define FILE_LIFETIME USEC_MIN         /* then the environment and the file are read again */
#define REFUSED_DELAY (10 * USEC_SEC)  /* between two readings because of refused keys */
#define ERROR_LIFETIME (5 * USEC_SEC)  /* during which an error is repeated without a new request */
#define CONNECT_TIMEOUT_MS 2000L
#define TIMEOUT_MS 5000L
#define RESPONSE_MAX ((size_t)64 << 10)
#define TOKEN_HEADER "X-aws-ec2-metadata-token"
#define NEXT_STEP "set AWS_SHARED_CREDENTIALS_FILE in its environment (see jobsched-net(8))"

struct waiter {
	aws_credentials_fn *fn;
	void *arg;
	struct waiter *next;
};

/* The requests to the metadata service follow each other. */
enum step { STEP_NONE, STEP_CONTAINER, STEP_TOKEN, STEP_ROLE, STEP_KEYS };

struct aws_credentials {
	struct transfer transfer;    /* the first member; 'easy' NULL: none is under way */
	struct transfers *transfers; /* owned */
	enum step step;
	struct curl_slist *headers;  /* owned */
	struct buf response;
	char *token, *role;          /* owned; of the metadata service */
	struct aws_keys keys;        /* id NULL: none */
	usec_t read_at;              /* boottime: when the keys were read */
	bool fetched;                /* from an endpoint */
	bool stale;                  /* a service has refused the keys */
	usec_t refused_at;           /* boottime; 0: never */
	struct err error;
	usec_t error_at;             /* boottime */
	struct waiter *waiters, **last;
};

void aws_keys_done(struct aws_keys *k)
{
	if (k->secret)
		explicit_bzero(k->secret, strlen(k->secret));
	if (k->token)
		explicit_bzero(k->token, strlen(k->token));
	free(k->id);
	free(k->secret);
	free(k->token);
	*k = (struct aws_keys){};
}

static bool keys_expired(const struct aws_credentials *c, usec_t margin)
{
	return c->keys.expires_at != USEC_NEVER && clock_now(&clock_system) >= c->keys.expires_at - margin;
}

static bool keys_fresh(const struct aws_credentials *c)
{
	if (!c->keys.id || c->stale || keys_expired(c, REFRESH_BEFORE))
		return false;
	return c->fetched || clock_boot(&clock_system) - c->read_at < FILE_LIFETIME;
}

/* ---- the end of a search ---- */

static void waiters_answer(struct aws_credentials *c, const struct err *e)
{
	struct waiter *list = STEAL(c->waiters), *w;
	const struct aws_keys *k = e ? NULL : &c->keys;

	c->last = &c->waiters;
	while ((w = list)) {
		list = w->next;
		w->fn(k, e, w->arg);
		free(w);
	}
}

static void search_end(struct aws_credentials *c)
{
	c->step = STEP_NONE;
	if (c->transfer.easy)
		transfer_done(&c->transfer);
	curl_slist_free_all(STEAL(c->headers));
	if (c->response.data)
		explicit_bzero(c->response.data, c->response.len);
	buf_done(&c->response);
	free(STEAL(c->token));
	free(STEAL(c->role));
}

static void search_found(struct aws_credentials *c, struct aws_keys *k /* moved */, bool fetched)
{
	search_end(c);
	aws_keys_done(&c->keys);
	c->keys = *k;
	c->fetched = fetched;
	c->stale = false;
	c->read_at = clock_boot(&clock_system);
	c->error = (struct err){};
	waiters_answer(c, NULL);
}

/* The keys of the last search are used until they expire. */
static void search_failed(struct aws_credentials *c, const struct err *e)
{
	struct err why = *e;

	search_end(c);
	c->error = why;
	c->error_at = clock_boot(&clock_system);
	if (c->keys.id && c->fetched && !keys_expired(c, 0)) {
		log_warning("could not renew the credentials, the present ones are still valid: %s", why.msg);
		waiters_answer(c, NULL);
		return;
	}
	aws_keys_done(&c->keys);
	waiters_answer(c, &why);
}

/* ---- endpoints ---- */

static size_t on_credentials_data(char *data, size_t size, size_t n, void *arg)
{
	struct aws_credentials *c = arg;

	if (c->response.len + size * n > RESPONSE_MAX)
		return 0;
	buf_add(&c->response, data, size * n);
	return size * n;
}

static void on_credentials_answer(struct transfer *t, int result);

static bool ask(struct aws_credentials *c, enum step step, const char *url, const char *method, struct err *e)
{
	CURL *easy = curl_easy_init();

	if (c->transfer.easy)
		transfer_done(&c->transfer);
	c->transfer = (struct transfer){.easy = easy, .on_end = on_credentials_answer};
	c->step = step;
	buf_clear(&c->response);
	if (easy && curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_credentials_data) == CURLE_OK &&
		curl_easy_setopt(easy, CURLOPT_WRITEDATA, c) == CURLE_OK && transfer_start(&c->transfer, c->transfers))
		return true;
	return err_set(e, ERR_INVALID, "cannot ask '%.120s' for credentials", url);
}

static void header_set(struct aws_credentials *c, const char *name, const char *value)
{
	AUTO_TEXT line = xprintf("%s: %s", name, value);

	curl_slist_free_all(STEAL(c->headers));
	c->headers = curl_slist_append(NULL, line);
	explicit_bzero(line, strlen(line));
}

static bool ask_container(struct aws_credentials *c, const char *url, struct err *e)
{
	AUTO_TEXT token = aws_sources_container_token(e);

	if (e->kind)
		return false;
	if (token)
		header_set(c, "Authorization", token);
	return ask(c, STEP_CONTAINER, url, "GET", e);
}

static bool ask_instance(struct aws_credentials *c, enum step step, struct err *e)
{
	static const char roles[] = "/latest/meta-data/iam/security-credentials/";
	AUTO_TEXT base = aws_sources_instance_url();
	AUTO_TEXT url = NULL;

	if (!base)
		return err_set(e, ERR_NOT_FOUND,
			"jobsched-net has no AWS credentials; " NEXT_STEP);
	if (step == STEP_TOKEN) {
		url = xprintf("%s/latest/api/token", base);
		header_set(c, TOKEN_HEADER "-ttl-seconds", "21600");
		return ask(c, step, url, "PUT", e);
	}
	url = xprintf("%s%s%s", base, roles, step == STEP_KEYS ? c->role : "");
	header_set(c, TOKEN_HEADER, c->token);
	return ask(c, step, url, "GET", e);
}

static bool first_line(const struct buf *response, char **ret)
{
	size_t len = response->data ? strcspn(response->data, "\r\n") : 0;

	for (size_t i = 0; i < len; i++)
		if (response->data[i] <= ' ' || response->data[i] > '~')
			return false;
	free(*ret);
	*ret = xstrndup(response->data, len);
	return len > 0 && len < 1024;
}

/* The answer of one step leads to the next one, or to the keys. */
static bool answer_use(struct aws_credentials *c, struct aws_keys *ret, bool *ret_found, struct err *e)
{
	*ret_found = false;
	switch (c->step) {
	case STEP_TOKEN:
		return first_line(&c->response, &c->token)
			? ask_instance(c, STEP_ROLE, e)
			: err_set(e, ERR_INVALID, "the metadata service sent no token");
	case STEP_ROLE:
		return first_line(&c->response, &c->role)
			? ask_instance(c, STEP_KEYS, e)
			: err_set(e, ERR_NOT_FOUND, "jobsched-net has no AWS credentials: the machine has no role that gives some; " NEXT_STEP);
	default:
		*ret_found = aws_sources_json(c->response.data ? c->response.data : "", ret, e);
		return *ret_found;
	}
}

static void on_credentials_answer(struct transfer *t, int result)
{
	struct aws_credentials *c = (struct aws_credentials *)t;
	const char *from = c->step == STEP_CONTAINER ? "container endpoint" : "metadata service";
	struct aws_keys k = {};
	struct err e = {};
	bool found = false;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK)
		err_set(&e, ERR_UNREACHABLE, "jobsched-net has no AWS credentials: no variables and no file are set in its environment, and the %s "
			"does not answer (%s); " NEXT_STEP, from, t->error[0] ? t->error : curl_easy_strerror((CURLcode)result));
	else if (status != 200)
		err_set(&e, status >= 500 ? ERR_UNREACHABLE : ERR_INVALID, "jobsched-net has no AWS credentials: the %s answered %ld; " NEXT_STEP,
			from, status);
	else if (!answer_use(c, &k, &found, &e) && !e.kind)
		err_set(&e, ERR_INTERNAL, "no AWS credentials from the %s", from);
	if (e.kind)
		search_failed(c, &e);
	else if (found)
		search_found(c, &k, true);
}

/* ---- the search ---- */

static void search_start(struct aws_credentials *c)
{
	AUTO_TEXT container = NULL;
	struct aws_keys k = {};
	struct err e = {};

	if (aws_sources_environment(&k, &e) || (!e.kind && aws_sources_file(&k, &e))) {
		search_found(c, &k, false);
		return;
	}
	if (e.kind) {
		search_failed(c, &e);
		return;
	}
	container = aws_sources_container_url();
	if (!(container ? ask_container(c, container, &e) : ask_instance(c, STEP_TOKEN, &e)))
		search_failed(c, &e);
}

void aws_credentials_get(struct aws_credentials *c, aws_credentials_fn *fn, void *arg)
{
	struct waiter *w;

	if (keys_fresh(c)) {
		fn(&c->keys, NULL, arg);
		return;
	}
	if (c->error.kind && c->step == STEP_NONE && clock_boot(&clock_system) - c->error_at < ERROR_LIFETIME) {
		bool usable = c->keys.id && !keys_expired(c, 0);

		fn(usable ? &c->keys : NULL, usable ? NULL : &c->error, arg);
		return;
	}
	w = xcalloc(1, sizeof(*w));
	*w = (struct waiter){.fn = fn, .arg = arg};
	*c->last = w;
	c->last = &w->next;
	if (c->step == STEP_NONE)
		search_start(c);
}

void aws_credentials_cancel(struct aws_credentials *c, const void *arg)
{
	for (struct waiter **at = &c->waiters; *at;) {
		struct waiter *w = *at;

		if (w->arg != arg) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
	c->last = &c->waiters;
	while (*c->last)
		c->last = &(*c->last)->next;
}

void aws_credentials_refused(struct aws_credentials *c)
{
	usec_t now = clock_boot(&clock_system);

	if (c->step != STEP_NONE || (c->refused_at && now - c->refused_at < REFUSED_DELAY))
		return;
	c->refused_at = now;
	c->stale = true;
}

bool aws_credentials_new(struct sd_event *ev, struct aws_credentials **ret, struct err *e)
{
	AUTO(aws_credentials) *c = xcalloc(1, sizeof(*c));

	c->last = &c->waiters;
	if (!transfers_new(ev, &c->transfers, e))
		return false;
	*ret = STEAL(c);
	return true;
}

void aws_credentials_free(struct aws_credentials *c)
{
	struct waiter *w;

	if (!c)
		return;
	search_end(c);
	while ((w = c->waiters)) {
		c->waiters = w->next;
		free(w);
	}
	transfers_free(c->transfers);
	aws_keys_done(&c->keys);
	free(c);
}
