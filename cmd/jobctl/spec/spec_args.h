/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line of 'add' to a job's spec, and back. */
#pragma once
#include "core/job/job.h"
#include <jansson.h>
#include <stdbool.h>

struct args;
struct buf;
struct err;

/* Sets one field as its option would: 'text' is a file for a blob, a pair for a map. */
bool spec_args_set_field(struct job_spec *s, const struct job_field *f, const char *text, struct err *e);

/* Options of job_fields[] but one (NULL: all), WHEN, --env-file. */
bool spec_args_read_options(struct job_spec *s /* initialised */, const struct args *a, const char *but, struct err *e);

/* The same, in this directory unless another was given. */
bool spec_args_read(struct job_spec *s /* initialised */, const struct args *a, struct err *e);

/* A script or a command, by what the words look like. */
void spec_args_set_command(struct job_spec *s, char *const *words, size_t n);

/* The spec of a job object of the API. */
bool job_object_read_spec(const json_t *job, struct job_spec *s /* initialised */, struct err *e);

/* The command that makes this spec, for a shell. 'secret' tells which variables to mask; NULL: none. */
void spec_command_write(const struct job_spec *s, bool (*secret)(const char *pair), struct buf *out);
