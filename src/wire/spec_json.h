/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and our structs, both ways, driven by the field tables. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct attempt;
struct buf;
struct err;
struct event;
struct job;
struct job_spec;
struct pause_order;
struct run;
struct strv;

#define JSON_DEPTH_MAX 64
#define JSON_MEMBERS_MAX 10000 /* of one request that is no bulk */

/*
 * Strict: UTF-8, no NUL, no duplicate member, depth bounded. 'max' bounds len.
 * NULL and ERR_INVALID or ERR_TOO_LARGE otherwise. Caller json_decref()s.
 */
json_t *json_read(const char *text, size_t len, size_t max, struct err *e);

/* The same for what a stranger sent: the values (members and elements, at any depth) are counted first. */
json_t *json_read_bounded(const char *text, size_t len, size_t max, size_t members, struct err *e);

void json_value_write(const json_t *j, struct buf *out); /* compact, sorted: equal values give equal text */

/* A submission: spec members plus "key". Unknown member, wrong type, out of range: ERR_INVALID with e->field. */
bool spec_json_read(const json_t *o, struct job_spec *s /* initialised */, char **ret_key, struct err *e);
json_t *spec_json_write(const struct job_spec *s);          /* members that differ from the default */
json_t *spec_json_write_all(const struct job_spec *s);       /* with the members that have their default, too */
char *spec_json_to_text(const struct job_spec *s);            /* canonical JSON text: sorted, compact; caller frees */
bool spec_json_from_text(const char *text, struct job_spec *s /* initialised */, struct err *e);

/*
 * Members laid over a definition (RFC 7386): null resets one to its default, an object goes into a map member by
 * member, a command takes the script away and the other way round.
 */
bool spec_json_merge(const json_t *patch, struct job_spec *s, struct err *e);

/* Parameters as a flat object of texts, as a run keeps them; names are checked. Text that is no UTF-8 is refused. */
bool params_json_read(const json_t *o, struct strv *ret /* empty */, struct err *e);
bool params_json_from_text(const char *text /* NULL: none */, struct strv *ret /* empty */, struct err *e);
/* Those of a run, which may have a warrant of its own beside them: the member whose name is empty. */
bool params_json_run_from_text(const char *text /* NULL: none */, struct strv *ret /* empty */, char **ret_warrant,
	struct err *e);
char *params_json_to_text(const struct strv *params, struct err *e); /* caller frees; NULL: *e says why */

json_t *row_json_job(const struct job *j, struct err *e); /* the spec's members beside id, state, owner … */
json_t *row_json_run(const struct run *r);
json_t *row_json_attempt(const struct attempt *a);
json_t *row_json_event(const struct event *ev);
json_t *row_json_pause(const struct pause_order *p);
json_t *row_json_job_pause(const struct job *j);           /* null unless it is paused */
json_t *row_json_job_next_pause(const struct job *j); /* of an active job that will be paused; else null */
json_t *error_json_write(const struct err *e);              /* {"error":{"code","message","field"}} */
bool error_json_read(const json_t *o, struct err *e);    /* fills e; false when it is no error object */

/* A string for an answer; NULL gives null, bytes that are not UTF-8 are shown escaped. */
json_t *json_value_text(const char *s);
json_t *json_value_time(int64_t t /* usec_t; 0 gives null */);
json_t *json_value_seconds(int64_t d /* usec_t */);
