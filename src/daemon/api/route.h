/* SPDX-License-Identifier: Apache-2.0 */
/* A route: method, path, parameters, handler. */
#pragma once
#include "core/job/event.h"
#include "daemon/api/access.h"
#include "daemon/api/request.h"
#include <stdbool.h>
#include <stddef.h>

struct err;

enum query_type {
	QUERY_TEXT,
	QUERY_NUMBER,
	QUERY_BOOL,
	QUERY_TIME,       /* RFC 3339 or @epoch */
	QUERY_TAG,        /* KEY=VALUE */
	QUERY_JOB_STATES, /* separated by commas; may be repeated */
	QUERY_RUN_STATES,
	QUERY_TYPE_MAX
};

struct query_param {
	const char *name;
	enum query_type type;
	int64_t min, max; /* of QUERY_NUMBER */
	const char *help;
};

enum route_body { BODY_NONE, BODY_OPTIONAL, BODY_ONE, BODY_BULK };

struct route {
	const char *method;
	const char *path; /* a component in braces is a parameter */
	void (*handle)(struct request *r); /* responds now or later */
	enum access_verb verb;
	enum route_body body;
	const char *summary;
	struct query_param query[ROUTE_QUERY_MAX];
	enum event_what what; /* action in the audit trail; EVENT_NONE: the route changes nothing */
	bool storeless;       /* can respond while the store is unavailable */
	bool anonymous;       /* needs no token over TCP; has no caller */
};
extern const struct route routes[]; /* src/daemon/api/routes/routes.c */
extern const size_t routes_count;

enum route_match { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_METHOD };

/* HEAD matches the routes of GET. ROUTE_NO_METHOD: *ret_allow lists the methods of the path. */
enum route_match route_find(const char *method, const char *path, const struct route **ret,
	char *params[ROUTE_PARAMS_MAX] /* set, owned */, struct buf *ret_allow);

/* Parses one query parameter. Unknown, invalid or duplicate: ERR_INVALID with its name. */
bool route_query_add(const struct route *route, struct query_value values[ROUTE_QUERY_MAX],
	const char *name, const char *value, struct err *e);
