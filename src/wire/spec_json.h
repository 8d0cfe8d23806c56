/* SPDX-License-Identifier: Apache-2.0 */
/* Job definitions in JSON. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct err;
struct job_spec;

/*
 * Reads a submission: the fields of a job and "key". ERR_INVALID with e->field for an unknown
 * member, a wrong type or a value out of range.
 */
bool spec_json_read(const json_t *o, struct job_spec *s /* initialised */, char **ret_key,
	struct err *e);
json_t *spec_json_write(const struct job_spec *s);     /* members that differ from their defaults */
json_t *spec_json_write_all(const struct job_spec *s); /* all members */
/* Canonical JSON: sorted, compact; caller frees. */
char *spec_json_to_text(const struct job_spec *s);
bool spec_json_from_text(const char *text, struct job_spec *s /* initialised */, struct err *e);

/*
 * Applies a merge patch (RFC 7386): null resets a member to its default, an object is merged into a
 * map, a command replaces a script and a script replaces a command.
 */
bool spec_json_merge(const json_t *patch, struct job_spec *s, struct err *e);
