/* SPDX-License-Identifier: Apache-2.0 */
/* Templates as JSON: what must and may be given, and the job they make. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct err;
struct job_spec;
struct strv;
struct template;

#define TEMPLATE_BYTES_MAX (64 * 1024) /* of its definition and its parameters together */

/* {"host": null, "days": "7"} as host, days=7, in the order of names; and back. */
bool template_params_read(const json_t *o /* NULL: none */, struct strv *ret /* empty */, struct err *e);
json_t *template_params_write(const struct strv *params);

/* A template's definition, checked as far as it can be without values. */
bool template_read(const json_t *body, struct job_spec *spec /* initialised */, struct strv *params /* empty */,
	struct err *e);

/*
 * The job that a submission makes of it: its own members laid over the template's, its parameters over the declared
 * ones. 'spec' is initialised.
 */
bool template_apply(const struct template *t, const json_t *submission, struct job_spec *spec, struct err *e);

json_t *template_to_json(const struct template *t, bool whole); /* not whole: without the definition */
