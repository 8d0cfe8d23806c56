/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a run as a flat JSON object of strings. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct err;
struct strv;

/* Names are checked; text that is not UTF-8 is refused. */
bool params_json_read(const json_t *o, struct strv *ret /* empty */, struct err *e);
bool params_json_from_text(const char *text /* NULL: none */, struct strv *ret /* empty */,
	struct err *e);

/*
 * Reads the stored parameters of a run. The member with the empty name is its warrant, and the one
 * with PARAMS_JSON_TRACE is the trace context of the trigger as lines NAME=VALUE.
 */
#define PARAMS_JSON_TRACE ".trace" /* no parameter can have this name */
#define PARAMS_JSON_PARENT ".parent" /* lines NAME=VALUE about the run that this one follows */
char *params_json_of_parent(const char *lines);                    /* the JSON text; caller frees */
char *params_json_parent(const char *text /* NULL: none */);       /* the lines; caller frees; NULL: none */
bool params_json_run_from_text(const char *text /* NULL: none */, struct strv *ret /* empty */,
	char **ret_warrant, char **ret_trace, struct err *e);
/* Caller frees; NULL: *e has the error. */
char *params_json_to_text(const struct strv *params, struct err *e);
