/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the daemon in the words of the verbs. */
#pragma once
#include "jobctl/ref.h"
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct ctl;
struct err;

#define API_TIMEOUT_MS 60000
#define API_WAIT_MAX 3600 /* seconds that one question may wait for a run */

void api_query_add(struct buf *path, const char *key, const char *value); /* ?key=value, &key=value */

bool api_call(struct ctl *c, const char *method, const char *path, const json_t *body, json_t **ret,
	struct err *e);

/* ERR_NOT_FOUND comes with a suggestion. */
bool api_job(struct ctl *c, const struct ref *r, json_t **ret, struct err *e); /* of a run: its job */
bool api_run(struct ctl *c, const struct ref *r /* of a run */, json_t **ret, struct err *e);
bool api_run_id(struct ctl *c, int64_t run, json_t **ret, struct err *e);
/* The newest runs of a job, newest first, in these states (NULL: any); an array. */
bool api_runs(struct ctl *c, int64_t job, const char *states, int limit, json_t **ret, struct err *e);
/* Answers when the run is final or the time (in seconds) is over. */
bool api_run_wait(struct ctl *c, int64_t run, int seconds, json_t **ret, struct err *e);

/* Every row of a paged list; 'row' returns false to stop, 'page' (may be NULL) follows each page. */
struct pages {
	const char *path;     /* with its filters */
	const char *member;   /* "jobs" or "runs" */
	bool (*row)(const json_t *row, void *arg);
	void (*page)(void *arg);
	void *arg;
	size_t limit;         /* rows of all pages; 0: no limit */
	char *next_cursor;    /* out: where the limit ended it; NULL: at the end. Owned by the caller */
};
bool api_pages(struct ctl *c, struct pages *p, struct err *e);
