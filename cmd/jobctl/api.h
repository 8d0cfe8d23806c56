/* SPDX-License-Identifier: Apache-2.0 */
/* API requests used by the verbs. */
#pragma once
#include "jobctl/ref.h"
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct ctl;
struct err;

#define API_TIMEOUT_MS 60000
#define API_WAIT_MAX 3600 /* seconds that one request may wait for a run to end */

/* Appends ?key=value or &key=value, percent-encoded. */
void api_query_add(struct buf *path, const char *key, const char *value);

/*
 * Adds the trace context of the environment ($TRACEPARENT, $TRACESTATE, $BAGGAGE), if it is valid. Not for a job
 * from a template, whose body is compared as it is.
 */
void api_add_trace(json_t *body);

/*
 * Sends a request. It is repeated while the daemon is busy, and once more with a warrant if the
 * daemon requires one.
 */
bool api_call(struct ctl *c, const char *method, const char *path, const json_t *body, json_t **ret,
	struct err *e);

/* The message of ERR_NOT_FOUND suggests a similar name. A reference to a run gives its job. */
bool api_job(struct ctl *c, const struct ref *r, json_t **ret, struct err *e);
bool api_run(struct ctl *c, const struct ref *r /* of a run */, json_t **ret, struct err *e);
bool api_run_id(struct ctl *c, int64_t run, json_t **ret, struct err *e);
/* An array of a job's runs in these states (NULL: any), newest first. */
bool api_runs(struct ctl *c, int64_t job, const char *states, int limit, json_t **ret,
	struct err *e);
/* Returns when the run has ended or the time is over. */
bool api_run_wait(struct ctl *c, int64_t run, int seconds, json_t **ret, struct err *e);

/* A list that is read page by page. */
struct pages {
	const char *path;     /* with its filters */
	const char *member;   /* of the answer: "jobs", "runs" */
	bool (*row)(const json_t *row, void *arg); /* called for each row; false stops */
	void (*page)(void *arg); /* called after each page; may be NULL */
	void *arg;
	size_t limit;         /* rows of all pages; 0: no limit */
	char *next_cursor;    /* out, owned by the caller: where the limit was reached; NULL: at the end */
};
bool api_pages(struct ctl *c, struct pages *p, struct err *e);
