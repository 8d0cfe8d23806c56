/* SPDX-License-Identifier: Apache-2.0 */
/* Sends responses: immediate, delayed, streamed. */
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "daemon/api/request_private.h"
#include "daemon/api/route.h"
#include "daemon/api/server_private.h"
#include "daemon/api/submit/zone_caches.h"
#include "daemon/loop/output_watch.h"
#include "daemon/loop/store_thread.h"
#include "wire/error_json.h"
#include "wire/json_value.h"
#include <stdio.h>
#include <string.h>

#define PIECE (32 * 1024) /* bytes of a stream per read */

/* ---- sending ---- */

enum MHD_Result request_queue(struct request *r)
{
	enum MHD_Result done;

	if (!r->response)
		return MHD_YES;
	if (r->must_close)
		MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
	done = MHD_queue_response(r->mhd, (unsigned)r->status, r->response);
	MHD_destroy_response(STEAL(r->response));
	return done;
}

void request_resume(struct request *r)
{
	if (!r->suspended)
		return;
	r->suspended = false;
	r->watch = sd_event_source_disable_unref(r->watch);
	MHD_resume_connection(r->mhd);
	server_resumed(r->server);
}

/* Headers of every answer over TCP; a route may have set its own value. */
static const struct stream_header tcp_headers[] = {
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	{"Cache-Control", "private, no-cache"},
};

static void add_tcp_headers(struct request *r, int status, struct MHD_Response *response)
{
	for (size_t i = 0; i < ELEMENTS(tcp_headers); i++)
		if (!MHD_get_response_header(response, tcp_headers[i].name))
			MHD_add_response_header(response, tcp_headers[i].name,
				tcp_headers[i].value);
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
			"Bearer realm=\"jobsched\"");
	if (r->cookie)
		MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, r->cookie);
}

void request_set_cookie(struct request *r, const char *value, usec_t life)
{
	char name[COOKIE_NAME_MAX];

	request_cookie_name(r, name);
	free(r->cookie);
	r->cookie = xprintf("%s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s", name,
		value ? value : "", value ? (long long)(life / USEC_SEC) : 0,
		r->conn->tls ? "; Secure" : "");
}

static void set_response(struct request *r, int status, struct MHD_Response *response,
	const char *type)
{
	r->answered = true;
	r->status = status;
	request_count(r);
	r->response = response;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE ||
		status == MHD_HTTP_GATEWAY_TIMEOUT)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	if (r->conn->tcp)
		add_tcp_headers(r, status, response);
	request_resume(r);
}

void request_answer_bytes(struct request *r, int status, const char *type, const void *data,
	size_t len, const struct stream_header *headers, size_t n)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, (void *)data, MHD_RESPMEM_PERSISTENT);

	for (size_t i = 0; i < n; i++)
		MHD_add_response_header(response, headers[i].name, headers[i].value);
	set_response(r, status, response, type);
}

/* ---- conditional requests, over TCP ---- */

#define ETAG_MAX 40

static void write_etag(const struct buf *body, char out[ETAG_MAX])
{
	unsigned char digest[SHA256_LEN];
	char hex[SHA256_HEX];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, body->data ? body->data : "", body->len);
	sha256_end(&s, digest);
	snprintf(out, ETAG_MAX, "\"%.32s\"", sha256_hex(digest, hex));
}

/* The header is a list of ETags, or "*". A weak ETag is compared like a strong one. */
static bool etag_matches(const char *list, const char *etag)
{
	return list && (strcmp(list, "*") == 0 || strstr(list, etag));
}

static bool has_etag(const struct request *r, int status)
{
	return r->conn->tcp && status == MHD_HTTP_OK && r->route && !r->route->anonymous &&
	       strcmp(r->route->method, "GET") == 0;
}

void request_answer_text(struct request *r, int status, struct buf *json)
{
	struct MHD_Response *response;
	char etag[ETAG_MAX] = "";
	size_t len = json->len;

	if (has_etag(r, status))
		write_etag(json, etag);
	if (etag[0] && etag_matches(request_header(r, MHD_HTTP_HEADER_IF_NONE_MATCH), etag)) {
		status = MHD_HTTP_NOT_MODIFIED;
		response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	} else {
		response = MHD_create_response_from_buffer(len, buf_steal(json), MHD_RESPMEM_MUST_FREE);
	}
	if (etag[0])
		MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, etag);
	set_response(r, status, response, "application/json");
}

void request_answer_typed(struct request *r, const char *type, struct buf *text)
{
	size_t len = text->len;

	set_response(r, MHD_HTTP_OK, MHD_create_response_from_buffer(len, buf_steal(text), MHD_RESPMEM_MUST_FREE), type);
}

void request_answer_json(struct request *r, int status, json_t *json)
{
	AUTO_DONE(buf) b = {};

	json_value_write(json, &b);
	buf_char(&b, '\n');
	json_decref(json);
	request_answer_text(r, status, &b);
}

void request_answer_err(struct request *r, const struct err *e)
{
	if (e->kind == ERR_INTERNAL || e->kind == ERR_UNCERTAIN)
		log_error("%s %s: %s", r->route ? r->route->method : "request",
			r->route ? r->route->path : "", e->msg);
	request_refused(r, e);
	request_answer_json(r, err_kind_info(e->kind)->http, error_json_write(e));
}

/* ---- streams ---- */

static ssize_t on_stream_read(void *arg, uint64_t pos, char *out, size_t max)
{
	struct request *r = arg;
	ssize_t n;

	(void)pos;
	if (r->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = r->stream->read(r->stream, out, max);
	if (n == STREAM_END)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == STREAM_BROKEN)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0) {
		/* MHD would call this function again without a pause */
		r->suspended = true;
		MHD_suspend_connection(r->mhd);
		request_watch_client(r);
	}
	return n;
}

void request_answer_stream(struct request *r, const char *type, const struct stream_header *headers,
	size_t n, struct stream *s)
{
	struct MHD_Response *response =
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, on_stream_read, r, NULL);

	s->request = r;
	r->stream = s;
	for (size_t i = 0; i < n; i++)
		MHD_add_response_header(response, headers[i].name, headers[i].value);
	set_response(r, MHD_HTTP_OK, response, type);
}

void request_wake(struct request *r)
{
	request_resume(r);
}

/* ---- waiting ---- */

struct ticket *request_ticket(struct request *r, bool writes)
{
	struct ticket *t = xcalloc(1, sizeof(*t));

	*t = (struct ticket){ .request = r, .writes = writes };
	r->ticket = t;
	return t;
}

struct request *request_ticket_redeem(struct ticket *t)
{
	struct request *r = t->request;

	if (r)
		r->ticket = NULL;
	free(t);
	return r;
}

/* Ends a wait without a response, because the client has left. */
static void request_end_waiting(struct request *r)
{
	r->gone = true;
	if (r->on_gone)
		r->on_gone(r);
	if (r->ticket)
		r->ticket->request = NULL;
	r->ticket = NULL;
	request_resume(r);
}

static int on_client_gone(sd_event_source *src, int fd, uint32_t events, void *arg)
{
	(void)src;
	(void)fd;
	(void)events;
	request_end_waiting(arg);
	return 0;
}

void request_watch_client(struct request *r)
{
	int e;

	if (r->watch)
		return;
	e = sd_event_add_io(r->server->event, &r->watch, r->conn->fd, EPOLLRDHUP | EPOLLET,
		on_client_gone, r);
	if (e < 0)
		log_warning("could not detect whether a waiting client disconnects, it is dropped "
			    "after its timeout: %s",
			strerror(-e));
}

/* Detaches the operation from the request. */
static void detach_and_answer_err(struct request *r, const struct err *e)
{
	if (r->on_gone)
		r->on_gone(r);
	if (r->ticket)
		r->ticket->request = NULL;
	r->ticket = NULL;
	request_answer_err(r, e);
}

void request_abandon(struct request *r)
{
	struct err e = {};

	if (!r->suspended)
		return;
	if (r->answered) {
		request_end_waiting(r);
		return;
	}
	if (r->ticket && r->ticket->writes)
		err_set(&e, ERR_UNCERTAIN,
			"the daemon is stopping; check later whether this was done");
	else
		err_set(&e, ERR_BUSY, "the daemon is stopping; try again");
	r->must_close = true;
	detach_and_answer_err(r, &e);
}

void request_refuse_waiting(struct request *r, const struct err *why, bool unknown)
{
	struct err e = *why;

	if (!r->suspended || r->answered || !r->ticket || (r->ticket->writes && !unknown))
		return;
	if (r->route->storeless) {
		r->ticket->request = NULL;
		r->ticket = NULL;
		r->route->handle(r);
		return;
	}
	if (r->ticket->writes) {
		e.kind = ERR_UNCERTAIN;
		err_wrap(&e, "this may still be done; check later, or repeat it with a key");
	}
	detach_and_answer_err(r, &e);
}

void request_charge(struct request *r, int64_t uid, size_t bytes)
{
	if (r->charged)
		store_thread_release(r->context->store, r->charged_to, r->charged);
	r->charged = bytes;
	r->charged_to = uid;
}

void request_free(struct request *r)
{
	request_charge(r, 0, 0);
	if (r->ticket)
		r->ticket->request = NULL;
	sd_event_source_disable_unref(r->watch);
	if (r->response)
		MHD_destroy_response(r->response);
	if (r->stream)
		r->stream->free(r->stream);
	if (r->data_free)
		r->data_free(r->data);
	for (size_t i = 0; i < ROUTE_PARAMS_MAX; i++)
		free(r->params[i]);
	for (size_t i = 0; i < ROUTE_QUERY_MAX; i++)
		free(r->query[i].text);
	free(r->as_name);
	free(r->jwt_user);
	free(r->cookie);
	request_drop_body(r);
	r->conn->request = NULL;
	free(r);
}

/* ---- parameters and caller ---- */

const struct query_value *request_query(const struct request *r, const char *name)
{
	for (size_t i = 0; i < ROUTE_QUERY_MAX && r->route->query[i].name; i++)
		if (strcmp(r->route->query[i].name, name) == 0)
			return r->query[i].given ? &r->query[i] : NULL;
	return NULL;
}

int64_t request_number(const struct request *r, const char *name, int64_t preset)
{
	const struct query_value *v = request_query(r, name);

	return v ? v->number : preset;
}

const char *request_text(const struct request *r, const char *name)
{
	const struct query_value *v = request_query(r, name);

	return v ? v->text : NULL;
}

int64_t request_scope(const struct request *r)
{
	return access_scope(&r->server->access, &r->who, r->route->verb);
}

enum access_role request_role(const struct request *r)
{
	return access_role(&r->server->access, &r->who, r->who.number);
}

enum token_role request_token_role(const struct request *r)
{
	return access_token_role(&r->server->access, &r->who);
}

bool request_sees_all(const struct request *r)
{
	return access_scope(&r->server->access, &r->who, VERB_SEE) < 0;
}

/* In user mode every job belongs to the user of the daemon, also if root submits it. */
int64_t request_owner(const struct request *r)
{
	return r->as_name	       ? r->as_number
	       : r->context->user_mode ? r->server->access.self
				       : r->who.number;
}

usec_t request_now(const struct request *r)
{
	return clock_now(r->context->clock);
}

const struct server_limits *request_limits(const struct request *r)
{
	return &r->server->limits;
}

struct sd_event *request_event(const struct request *r)
{
	return r->server->event;
}

usec_t request_started(const struct request *r)
{
	return r->server->started;
}

struct client_user *request_client_user(const struct request *r)
{
	return r->user;
}

bool request_is_tcp(const struct request *r)
{
	return r->conn->tcp;
}

usec_t request_session_life(const struct request *r)
{
	return r->server->tcp->session_life;
}

struct token_cache *request_tokens(const struct request *r)
{
	return r->server->tcp ? r->server->tcp->tokens : NULL;
}

struct zone_cache *request_zones(const struct request *r)
{
	return r->context->zones->loop;
}

struct zone_cache *request_reader_zones(const struct request *r)
{
	return r->context->zones->reader;
}

struct output_watch *request_outputs(const struct request *r, struct err *e)
{
	struct server *s = r->server;

	if (!s->outputs && !output_watch_new(s->event, s->context.output_dir, &s->outputs, e))
		return NULL;
	return s->outputs;
}
