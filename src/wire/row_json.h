/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the store as JSON: jobs, runs, attempts, events, pauses. */
#pragma once
#include <jansson.h>

struct attempt;
struct err;
struct event;
struct job;
struct pause_order;
struct run;

/* The fields of the job with id, state, owner and so on. */
json_t *row_json_job(const struct job *j, struct err *e);
/* The same in two steps: the fields of a definition, which take most of the time; then the others. */
json_t *row_json_job_spec(const char *text, struct err *e);
json_t *row_json_job_of(const struct job *j, json_t *spec /* moved */);
json_t *row_json_job_brief(const struct job *j); /* id, name, state and the state of its last run */
json_t *row_json_run(const struct run *r);
json_t *row_json_attempt(const struct attempt *a);
json_t *row_json_event(const struct event *ev);
json_t *row_json_pause(const struct pause_order *p);
json_t *row_json_job_pause(const struct job *j);      /* null unless the job is paused */
/* Null unless the job is active and will be paused. */
json_t *row_json_job_next_pause(const struct job *j);
