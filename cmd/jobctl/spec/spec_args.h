/* SPDX-License-Identifier: Apache-2.0 */
/* Converts 'add' options to a job definition. */
#pragma once
#include "core/job/job.h"
#include <stdbool.h>

struct args;
struct err;

/* Sets one field as its option would: 'text' is a file for a blob, a pair for a map. */
bool spec_args_set_field(struct job_spec *s, const struct job_field *f, const char *text, struct err *e);

/* Options of job_fields[] but one (NULL: all), WHEN, --env-file. */
bool spec_args_read_options(struct job_spec *s /* initialised */, const struct args *a, const char *but, struct err *e);

/* The same, in this directory unless another was given. */
bool spec_args_read(struct job_spec *s /* initialised */, const struct args *a, struct err *e);

/* A script or a command, by what the words look like. */
void spec_args_set_command(struct job_spec *s, char *const *words, size_t n);
