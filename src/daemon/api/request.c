/* SPDX-License-Identifier: Apache-2.0 */
/* Validates the request head, reads the body, calls the route. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/decide/fair_share.h"
#include "daemon/api/request_private.h"
#include "daemon/api/route.h"
#include "daemon/api/server_private.h"
#include "daemon/loop/store_outage.h"
#include <inttypes.h>
#include <string.h>

/* ---- head ---- */

struct framing {
	size_t lengths, encodings;
	bool other_encoding, odd_name;
};

/*
 * "Content-Length : 5" is an unknown header to this server, but another parser might take it as the
 * length.
 */
static bool is_token(const char *name)
{
	static const char odd[] = " \t\"(),/:;<=>?@[\\]{}";

	for (; *name; name++)
		if (*name <= ' ' || *name >= 127 || strchr(odd, *name))
			return false;
	return true;
}

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *name,
	const char *value)
{
	struct framing *f = arg;

	(void)kind;
	f->odd_name |= !is_token(name);
	if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0)
		f->lengths++;
	if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
		f->encodings++;
		f->other_encoding |= !value || strcasecmp(value, "chunked") != 0;
	}
	return MHD_YES;
}

/* The length of a body must be unambiguous, so that every parser of the request agrees. */
static bool check_framing(struct request *r, struct err *e)
{
	struct framing f = {};

	MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, count_header, &f);
	r->must_close = f.lengths + f.encodings > 1 || f.other_encoding || f.odd_name;
	if (f.odd_name)
		return err_set(e, ERR_INVALID,
			"the name of a header has a character that is not allowed");
	if (r->must_close)
		return err_set(e, ERR_INVALID,
			"the length of the body is ambiguous: send one Content-Length or "
			"'Transfer-Encoding: chunked'");
	return true;
}

static uint64_t declared_length(struct request *r)
{
	const char *text = MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND,
		MHD_HTTP_HEADER_CONTENT_LENGTH);
	int64_t n = 0;

	if (!text)
		return 0;
	return text_parse_int(text, 0, INT64_MAX, &n) ? (uint64_t)n : UINT64_MAX;
}

static bool has_body(struct request *r)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND,
		       MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
	       declared_length(r) > 0;
}

static size_t body_limit(const struct request *r)
{
	return r->route->body == BODY_BULK ? r->server->limits.bulk_body : r->server->limits.body;
}

static bool body_too_large(struct request *r, struct err *e)
{
	r->must_close = true;
	return err_set(e, ERR_TOO_LARGE, "the body is too large: the limit is %zu bytes%s",
		body_limit(r),
		r->route->body == BODY_BULK ? "; split the request"
					    : "; 'body-limit' in jobschedd.conf(5) sets it");
}

struct query_read {
	struct request *r;
	struct err *e;
	bool bad;
};

static enum MHD_Result read_query(void *arg, enum MHD_ValueKind kind, const char *name,
	const char *value)
{
	struct query_read *q = arg;
	const char *v = value ? value : "";

	(void)kind;
	if (!text_utf8_valid(name, strlen(name)) || !text_utf8_valid(v, strlen(v)))
		q->bad = !err_set(q->e, ERR_INVALID, "a query parameter is not valid UTF-8");
	else
		q->bad = !route_query_add(q->r->route, q->r->query, name, v, q->e);
	return q->bad ? MHD_NO : MHD_YES;
}

static bool check_target(struct request *r, const char *method, const char *url, struct err *e)
{
	struct query_read q = { .r = r, .e = e };
	AUTO_DONE(buf) allow = {};
	enum route_match match;

	if (r->conn->bad_escape || !text_utf8_valid(url, strlen(url)))
		return err_set(e, ERR_INVALID,
			"the target of the request has an invalid %%XX escape");
	match = route_find(method, url, &r->route, r->params, &allow);
	if (!request_auth_admit(r, r->route, e))
		return false;
	switch (match) {
	case ROUTE_NO_PATH:
		return err_set(e, ERR_NOT_FOUND, "there is nothing at '%.200s'", url);
	case ROUTE_NO_METHOD:
		err_set(e, ERR_INVALID, "'%.20s' is not allowed for '%.200s'; allowed are %s",
			method, url, allow.data);
		request_answer_err(r, e);
		r->status = MHD_HTTP_METHOD_NOT_ALLOWED;
		MHD_add_response_header(r->response, MHD_HTTP_HEADER_ALLOW, allow.data);
		return false;
	case ROUTE_FOUND:
		break;
	}
	MHD_get_connection_values(r->mhd, MHD_GET_ARGUMENT_KIND, read_query, &q);
	return !q.bad;
}

static bool check_body(struct request *r, struct err *e)
{
	uint64_t len = declared_length(r);

	if (len > 0 && r->route->body == BODY_NONE) {
		r->must_close = true;
		return err_set(e, ERR_INVALID, "this request must not have a body");
	}
	if (len > body_limit(r))
		return body_too_large(r, e);
	return request_auth_body(r, has_body(r), e);
}

static bool check_head(struct request *r, const char *method, const char *url, const char *version,
	struct err *e)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	if (info && info->header_size > HEAD_MAX) {
		r->must_close = true;
		err_set(e, ERR_TOO_LARGE,
			"the head of the request is too large: the limit is %d bytes", HEAD_MAX);
		request_answer_err(r, e);
		r->status = MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
		return false;
	}
	if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0 &&
		strcmp(version, MHD_HTTP_VERSION_1_0) != 0) {
		r->must_close = true;
		return err_set(e, ERR_INVALID, "only HTTP/1.1 and HTTP/1.0 are supported");
	}
	return check_framing(r, e) && request_auth_begin(r, method, e) &&
	       check_target(r, method, url, e) && check_body(r, e);
}

static struct request *request_new(struct server *s, struct conn *c, struct MHD_Connection *mhd)
{
	struct request *r = xcalloc(1, sizeof(*r));

	r->server = s;
	r->context = &s->context;
	r->conn = c;
	r->user = c->user;
	r->authenticated = !c->tcp;
	r->token_owner = -1;
	r->who = (struct caller){.uid = c->user->uid,
		.number = c->user->number,
		.admin = !c->tcp && server_conn_is_admin(c),
		.token = c->tcp};
	r->mhd = mhd;
	r->begun = clock_boot(s->context.clock);
	c->request = r;
	return r;
}

static enum MHD_Result begin_request(struct server *s, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, void **state)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *c = info ? info->socket_context : NULL;
	struct request *r;
	struct err e = {};

	if (!c)
		return MHD_NO;
	*state = r = request_new(s, c, mhd);
	server_conn_enter(c, PHASE_BODY);
	if (check_head(r, method, url, version, &e))
		return MHD_YES;
	if (!r->answered)
		request_answer_err(r, &e);
	r->started = true;
	/*
	 * MHD closes the connection after a response that is queued before the body was read.
	 * Without a body the response is queued on the next call, and the connection stays open.
	 */
	return r->must_close || has_body(r) ? request_queue(r) : MHD_YES;
}

/* ---- body ---- */

void request_drop_body(struct request *r)
{
	buf_done(&r->body);
	if (!r->body_user)
		return;
	r->body_user->body_bytes -= r->body_charged;
	r->server->body_bytes -= r->body_charged;
	r->body_charged = 0;
}

/* A single body of the maximum size always fits. */
static int64_t bodies_per_uid(const struct server_limits *l)
{
	return (int64_t)(l->bodies_per_uid > l->bulk_body ? l->bodies_per_uid : l->bulk_body);
}

/*
 * Whether the bodies of the user may take 'len' more bytes. Requests of root and in user mode are
 * not counted.
 */
static bool charge_body(struct request *r, size_t len)
{
	struct server *s = r->server;
	struct client_user *p = r->body_user ? r->body_user : r->user;
	struct fair_share share = {.total = (int64_t)s->limits.bodies_total,
		.used = (int64_t)s->body_bytes,
		.per_owner = bodies_per_uid(&s->limits)};

	if (p->uid == 0 || s->context.user_mode)
		return true;
	if (!fair_share_allows(&share, (int64_t)p->body_bytes, (int64_t)len))
		return false;
	r->body_user = p;
	r->body_charged += len;
	p->body_bytes += len;
	s->body_bytes += len;
	return true;
}

/*
 * A body over a limit is read to its end but discarded, so that the client receives the response.
 */
static void add_body(struct request *r, const char *data, size_t len)
{
	r->body_seen += len;
	if (r->body_refused || r->body_seen > body_limit(r))
		return;
	r->body_refused = !charge_body(r, len);
	if (r->body_refused)
		request_drop_body(r);
	else
		buf_add(&r->body, data, len);
}

static bool refuse_body(struct request *r, struct err *e)
{
	return err_set(e, ERR_LIMIT,
		"the bodies of your concurrent requests need too much memory: the limit is %" PRId64
		" bytes per user ('bodies-per-uid'), or less if little is free; send fewer at a "
		"time, or try again",
		bodies_per_uid(&r->server->limits));
}

static bool check_whole_body(struct request *r, struct err *e)
{
	if (r->body_seen > body_limit(r))
		return body_too_large(r, e);
	if (r->body_refused)
		return refuse_body(r, e);
	if (r->body_seen > 0 && r->route->body == BODY_NONE)
		return err_set(e, ERR_INVALID, "this request must not have a body");
	if (r->body_seen == 0 && (r->route->body == BODY_ONE || r->route->body == BODY_BULK))
		return err_set(e, ERR_INVALID,
			"the request has no body; a JSON object is required");
	if (r->server->stopping)
		return err_set(e, ERR_BUSY, "the daemon is stopping; try again");
	return r->route->storeless || !store_outage_since(r->context->store_outage, e);
}

static void start_request(struct request *r)
{
	struct err e = {};

	r->started = true;
	server_conn_enter(r->conn, PHASE_BUSY);
	if (check_whole_body(r, &e))
		request_handle(r);
	else
		request_answer_err(r, &e);
	if (!r->answered) {
		r->suspended = true;
		MHD_suspend_connection(r->mhd);
	}
}

enum MHD_Result request_on_call(void *arg, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len,
	void **state)
{
	struct request *r = *state;

	if (!r)
		return begin_request(arg, mhd, url, method, version, state);
	if (*upload_len > 0) {
		add_body(r, upload, *upload_len);
		*upload_len = 0;
		return MHD_YES;
	}
	if (!r->started)
		start_request(r);
	if (r->gone)
		return MHD_NO;
	return r->answered ? request_queue(r) : MHD_YES;
}

void request_on_completed(void *arg, struct MHD_Connection *mhd, void **state,
	enum MHD_RequestTerminationCode why)
{
	struct request *r = *state;

	(void)mhd;
	/* MHD closes an aborted connection only on its next run */
	if (why != MHD_REQUEST_TERMINATED_COMPLETED_OK)
		server_resumed(arg);
	if (!r)
		return;
	*state = NULL;
	r->conn->bad_escape = false;
	server_conn_enter(r->conn, PHASE_IDLE);
	request_free(r);
}
