/* SPDX-License-Identifier: Apache-2.0 */
/* Route table: method, path, parameters, handler. */
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
};
extern const struct route routes[];
extern const size_t routes_count;

enum route_match { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_METHOD };

/* HEAD matches the routes of GET. ROUTE_NO_METHOD: *ret_allow lists the methods of the path. */
enum route_match route_find(const char *method, const char *path, const struct route **ret,
	char *params[ROUTE_PARAMS_MAX] /* set, owned */, struct buf *ret_allow);

/* Parses one query parameter. Unknown, invalid or duplicate: ERR_INVALID with its name. */
bool route_query_add(const struct route *route, struct query_value values[ROUTE_QUERY_MAX],
	const char *name, const char *value, struct err *e);

/* The handlers, by the noun they serve. */
void route_job_submit(struct request *r);
void route_node_list(struct request *r);
void route_node_drain(struct request *r);
void route_node_undrain(struct request *r);
void route_node_resign(struct request *r);
void route_dead_list(struct request *r);
void route_dead_many(struct request *r);
void route_dead_one(struct request *r);
void route_job_bulk(struct request *r);
void route_job_list(struct request *r);
void route_job_get(struct request *r);
void route_job_cancel(struct request *r);
void route_job_remove(struct request *r);
void route_job_pause(struct request *r);
void route_job_resume(struct request *r);
void route_job_run(struct request *r);
void route_pause_list(struct request *r);
void route_pause(struct request *r);
void route_resume(struct request *r);
void route_freeze(struct request *r);
void route_thaw(struct request *r);
void route_job_change(struct request *r);
void route_job_revisions(struct request *r);
void route_job_undo(struct request *r);
void route_template_list(struct request *r);
void route_template_get(struct request *r);
void route_template_put(struct request *r);
void route_template_remove(struct request *r);
void route_run_list(struct request *r);
void route_run_get(struct request *r);
void route_run_attempts(struct request *r);
void route_run_cancel(struct request *r);
void route_run_output(struct request *r);
void route_job_why(struct request *r);
void route_event_list(struct request *r);
void route_notice_list(struct request *r);
void route_notice_test(struct request *r);
void route_sandbox_list(struct request *r);
void route_status(struct request *r);
void route_db_prune(struct request *r);
void route_db_backup(struct request *r);
void route_db_check(struct request *r);
void route_queue_list(struct request *r);
void route_queue_get(struct request *r);
void route_queue_put(struct request *r);
void route_queue_remove(struct request *r);
void route_owner_list(struct request *r);
void route_owner_get(struct request *r);
void route_owner_put(struct request *r);
void route_owner_remove(struct request *r);
