/* SPDX-License-Identifier: Apache-2.0 */
/* Job definitions in the job objects of the API. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

struct err;
struct job_spec;

/* Reads the members that belong to the definition. */
bool job_object_read_spec(const json_t *job, struct job_spec *s /* initialised */, struct err *e);
