/* SPDX-License-Identifier: Apache-2.0 */
/* One request, as the routes see it: what was asked, who asked, and the ways to answer. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "daemon/api/access.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct conn;
struct err;
struct MHD_Connection;
struct MHD_Response;
struct op;
struct output_watch;
struct client_user;
struct request;
struct route;
struct sd_event;
struct sd_event_source;
struct server;
struct server_context;
struct server_limits;
struct zone_cache;

#define ROUTE_PARAMS_MAX 1
#define ROUTE_QUERY_MAX 12

/* One query parameter as given; which member counts is said by the type in the route's table. */
struct query_value {
	bool given;
	char *text;      /* owned */
	int64_t number;  /* of a number, a boolean, an instant, a set of states */
};

/* An answer that is produced piece by piece. */
#define STREAM_END (-1)
#define STREAM_BROKEN (-2)
struct stream {
	/* Up to max bytes into out; 0: nothing now, request_wake() will say; or STREAM_END, STREAM_BROKEN. */
	ssize_t (*read)(struct stream *s, char *out, size_t max);
	void (*free)(struct stream *s);
	struct request *request;
};

/* Stands for a request while somebody else works for it; the request may be gone when that is done. */
struct ticket {
	struct request *request; /* NULL: nobody waits for the answer any more */
	bool writes;             /* the store is being changed */
};

struct request {
	struct server *server;
	const struct server_context *context;
	struct conn *conn;
	int64_t as_number;                  /* with as_name: core/job/owner.h */
	char *as_name;                      /* owned: whom an administrator acts for; NULL: nobody else */
	struct caller who;                  /* its number and what the lists say are known once it is handled */
	const struct route *route;
	char *params[ROUTE_PARAMS_MAX];     /* owned: what stood for {job} or {run} in the path */
	struct query_value query[ROUTE_QUERY_MAX]; /* in the order of the route's table */
	struct buf body;
	size_t body_seen;                   /* more than was kept when it is too large */
	size_t body_charged;                /* bytes of it that count for its user */
	bool body_refused;                  /* the user's bodies take too much memory: it is not kept */

	void *data;                         /* of the route */
	void (*data_free)(void *data);
	void (*on_gone)(struct request *r); /* the client left while it was waiting; then nothing is awaited */

	/* the server's own */
	struct MHD_Connection *mhd;
	struct MHD_Response *response;      /* owned: to be queued */
	int status;
	bool started, answered, suspended, gone, must_close;
	bool acted;                         /* an operation carries what is audited */
	size_t charged;                     /* bytes of its answer that are charged to 'charged_to' */
	int64_t charged_to;                 /* uid */
	struct ticket *ticket;              /* the open one; NULL: none */
	struct stream *stream;              /* owned by the response */
	struct sd_event_source *watch;      /* of the client's end while waiting */
};

/* ---- answers: one per request, at once or later ---- */
void request_answer_text(struct request *r, int status, struct buf *json /* moved */);
void request_answer_json(struct request *r, int status, json_t *json /* moved */);
void request_answer_err(struct request *r, const struct err *e);
struct stream_header {
	const char *name, *value;
};
void request_answer_stream(struct request *r, const char *type, const struct stream_header *headers,
	size_t n, struct stream *s /* moved */);
void request_wake(struct request *r); /* a stream that said "nothing now" has more to say */

/* Every operation that changes something on somebody's request passes here on its way to the store. */
void request_act(struct request *r, struct op *op);

/* Replaces what the last read of this request was charged with; released when the request ends. */
void request_charge(struct request *r, int64_t uid, size_t bytes);

/* ---- waiting ---- */
struct ticket *request_ticket(struct request *r, bool writes);
struct request *request_ticket_redeem(struct ticket *t /* freed */); /* NULL: the request is gone */
void request_watch_client(struct request *r); /* notices a client that leaves: on_gone */

/* ---- what was asked ---- */
const struct query_value *request_query(const struct request *r, const char *name);
int64_t request_number(const struct request *r, const char *name, int64_t preset);
const char *request_text(const struct request *r, const char *name); /* NULL: not given */
int64_t request_scope(const struct request *r); /* whose jobs its verb reaches: a uid, or -1 */
enum access_role request_role(const struct request *r); /* to what is his own */
bool request_sees_all(const struct request *r); /* everybody's jobs */
int64_t request_owner(const struct request *r); /* whose job a submission becomes: core/job/owner.h */
usec_t request_now(const struct request *r);
const struct server_limits *request_limits(const struct request *r);
struct sd_event *request_event(const struct request *r);
usec_t request_started(const struct request *r); /* CLOCK_BOOTTIME of the server's start */
struct client_user *request_client_user(const struct request *r);
struct zone_cache *request_zones(const struct request *r);        /* for use on the loop */
struct zone_cache *request_reader_zones(const struct request *r); /* for use on the reader's thread */
struct output_watch *request_outputs(const struct request *r, struct err *e); /* NULL: could not be made */
