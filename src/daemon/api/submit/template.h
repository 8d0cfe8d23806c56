/* SPDX-License-Identifier: Apache-2.0 */
/* Templates as JSON; jobs made from them. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct err;
struct job_spec;
struct strv;
struct template;

#define TEMPLATE_BYTES_MAX (64 * 1024) /* definition and parameters together */

/* Converts {"host": null, "days": "7"} to host, days=7, sorted by name, and back. */
bool template_params_read(const json_t *o /* NULL: none */, struct strv *ret /* empty */,
	struct err *e);
json_t *template_params_write(const struct strv *params);

/*
 * Reads the definition of a template and checks what does not depend on the values of its
 * parameters.
 */
bool template_read(const json_t *body, struct job_spec *spec /* initialised */,
	struct strv *params /* empty */, struct err *e);

/*
 * Makes a job: the members of the submission replace those of the template, and its parameters the
 * defaults. 'spec' is initialised.
 */
bool template_apply(const struct template *t, const json_t *submission, struct job_spec *spec,
	struct err *e);

/* Not whole: without the definition. */
json_t *template_to_json(const struct template *t, bool whole);
