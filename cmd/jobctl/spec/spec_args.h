/* SPDX-License-Identifier: Apache-2.0 */
/* Converts 'add' options to a job definition. */
#pragma once
#include "core/job/job.h"
#include <stdbool.h>

struct args;
struct err;
struct job_field;

/* Sets one field as its option does: 'text' is a path for a blob, NAME=VALUE for a map. */
bool spec_args_set_field(struct job_spec *s, const struct job_field *f, const char *text,
	struct err *e);

/*
 * Reads the options of job_fields[] except 'but' (NULL: all), the schedule options and --env-file.
 */
bool spec_args_read_options(struct job_spec *s /* initialised */, const struct args *a,
	const char *but, struct err *e);

/* The same; the default of --cwd is the current directory. */
bool spec_args_read(struct job_spec *s /* initialised */, const struct args *a, struct err *e);

/* Sets the command, or the script if it is one word with shell syntax. */
void spec_args_set_command(struct job_spec *s, char *const *words, size_t n);
