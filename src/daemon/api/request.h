/* SPDX-License-Identifier: Apache-2.0 */
/* One API request with its caller, as seen by a route. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "daemon/api/access.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct conn;
struct MHD_Connection;
struct MHD_Response;
struct op;
struct output_watch;
struct client_user;
struct request;
struct route;
struct token_row;
struct sd_event;
struct sd_event_source;
struct server;
struct server_context;
struct server_limits;
struct token_cache;
struct zone_cache;

#define ROUTE_PARAMS_MAX 1
#define ROUTE_QUERY_MAX 16

/* One query parameter. The type in the route table determines which member is used. */
struct query_value {
	bool given;
	char *text;      /* owned */
	int64_t number;  /* value of a number, boolean, time or set of states */
};

/* A response that is produced piece by piece. */
#define STREAM_END (-1)
#define STREAM_BROKEN (-2)
struct stream {
	/*
	 * Writes up to max bytes. Returns 0 if there is no data yet and request_wake() will be
	 * called; or STREAM_END or STREAM_BROKEN.
	 */
	ssize_t (*read)(struct stream *s, char *out, size_t max);
	void (*free)(struct stream *s);
	struct request *request;
};

/*
 * Refers to a request from an asynchronous operation. The request may end before the operation
 * does.
 */
struct ticket {
	struct request *request; /* NULL: the request has ended */
	bool writes;             /* the operation changes the store */
};

struct request {
	struct server *server;
	const struct server_context *context;
	struct conn *conn;
	int64_t as_number;                  /* owner number of as_name: core/job/owner.h */
	/* owned: the user that an administrator acts for; NULL: none */
	char *as_name;
	/* 'number' and 'denied' are set before the route is called */
	struct caller who;
	const struct route *route;
	char *params[ROUTE_PARAMS_MAX];     /* owned: the path component for {job} or {run} */
	struct query_value query[ROUTE_QUERY_MAX]; /* in the order of the route table */
	struct buf body;
	/* bytes received; more than kept if the body is too large */
	size_t body_seen;
	size_t body_charged;                /* bytes counted against the limit of 'body_user' */
	struct client_user *body_user;      /* NULL: nothing charged */
	/* the bodies of the user exceed their limit, so this one is discarded */
	bool body_refused;

	void *data;                         /* private to the route */
	void (*data_free)(void *data);
	/* the client disconnected while the request was waiting */
	void (*on_gone)(struct request *r);

	/* ---- over TCP ---- */
	bool authenticated;                 /* by a token; also true on the Unix socket */
	bool has_credentials, by_cookie;
	struct err auth_err;                /* if not authenticated */
	char token_id[TOKEN_ID_LEN + 1];    /* empty: none, or a JSON web token */
	char token_name[80];
	int64_t token_owner;                /* owner number of the token; -1: none */
	usec_t token_expires;               /* 0: never */
	char *jwt_user;                     /* owned: name of the user; NULL: known by uid */

	/* private to the server */
	struct client_user *user;           /* of the caller; its address before it is known */
	char *cookie;                       /* owned: Set-Cookie of the response; NULL: none */
	struct MHD_Connection *mhd;
	struct MHD_Response *response;      /* owned: to be queued */
	int status;
	usec_t begun;                       /* CLOCK_BOOTTIME */
	bool started, answered, suspended, gone, must_close;
	bool acted;                         /* an operation carries the audit information */
	size_t charged;                     /* bytes of the response charged to 'charged_to' */
	int64_t charged_to;                 /* uid */
	struct ticket *ticket;              /* of the operation in progress; NULL: none */
	struct stream *stream;              /* owned by the response */
	struct sd_event_source *watch;      /* detects a client that disconnects during a wait */
};

/* ---- responses: one per request, at once or later ---- */
void request_answer_typed(struct request *r, const char *type, struct buf *text /* moved */); /* 200 */
struct stream_header {
	const char *name, *value;
};
/* 'data' is static. A header replaces the default of the same name. */
void request_answer_bytes(struct request *r, int status, const char *type, const void *data,
	size_t len, const struct stream_header *headers, size_t n);
void request_answer_text(struct request *r, int status, struct buf *json /* moved */);
void request_answer_json(struct request *r, int status, json_t *json /* moved */);
void request_answer_err(struct request *r, const struct err *e);
void request_answer_stream(struct request *r, const char *type, const struct stream_header *headers,
	size_t n, struct stream *s /* moved */);
void request_wake(struct request *r); /* a stream that returned 0 has data again */

/*
 * Adds the audit information to an operation. Every operation that changes something for a request
 * passes through this function.
 */
void request_act(struct request *r, struct op *op);

/* Replaces the charge of the last read of this request; released when the request ends. */
void request_charge(struct request *r, int64_t uid, size_t bytes);

/* ---- waiting ---- */
struct ticket *request_ticket(struct request *r, bool writes);
/* NULL: the request has ended. */
struct request *request_ticket_redeem(struct ticket *t /* freed */);
void request_watch_client(struct request *r); /* calls on_gone if the client disconnects */

/* ---- head ---- */

/* ---- sessions, over TCP ---- */
/* The token of the caller is still valid; always true on the Unix socket. */
bool request_is_valid(const struct request *r);
/* The cookie of the session; call it before the response. */
void request_set_cookie(struct request *r, const char *value /* NULL: delete it */, usec_t life);
#define COOKIE_NAME_MAX 32
void request_cookie_name(const struct request *r, char out[COOKIE_NAME_MAX]);
/* The row of a valid token; NULL: none. */
const struct token_row *request_token_find(const struct request *r, const char *text, size_t len);
/* Counts a failed login. True: there were too many, *e is ERR_LIMIT. */
bool request_login_failed(struct request *r, struct err *e);
bool request_is_tcp(const struct request *r);
usec_t request_session_life(const struct request *r);
/* NULL: there is no listener, so the tokens are not in memory. */
struct token_cache *request_tokens(const struct request *r);

/* ---- parameters and caller ---- */
/* Copies the valid headers of the W3C trace context; the caller frees them. Without a valid traceparent all are NULL. */
void request_trace(const struct request *r, char **ret_parent, char **ret_state, char **ret_baggage);
const char *request_header(const struct request *r, const char *name); /* NULL: absent */
const struct query_value *request_query(const struct request *r, const char *name);
int64_t request_number(const struct request *r, const char *name, int64_t preset);
const char *request_text(const struct request *r, const char *name); /* NULL: absent */
int64_t request_scope(const struct request *r); /* see access_scope() */
enum access_role request_role(const struct request *r); /* towards its own objects */
/* The role shown for the caller, and the highest role of a token that it may create. */
enum token_role request_token_role(const struct request *r);
bool request_sees_all(const struct request *r); /* may see the jobs of all users */
/* Owner number of a submitted job: core/job/owner.h. */
int64_t request_owner(const struct request *r);
usec_t request_now(const struct request *r);
const struct server_limits *request_limits(const struct request *r);
struct sd_event *request_event(const struct request *r);
usec_t request_started(const struct request *r); /* CLOCK_BOOTTIME of the server's start */
struct client_user *request_client_user(const struct request *r);
struct zone_cache *request_zones(const struct request *r);        /* for the loop thread */
struct zone_cache *request_reader_zones(const struct request *r); /* for the reader thread */
/* NULL: *e has the error. */
struct output_watch *request_outputs(const struct request *r, struct err *e);
