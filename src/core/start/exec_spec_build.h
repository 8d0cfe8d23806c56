/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the execution specification from a job definition. */
#pragma once
#include <stdint.h>

struct exec_spec;
struct job_spec;
struct strv;

/* A job, and the parameters of a triggered run (NULL: none). */
struct exec_spec_source {
	const struct job_spec *spec;
	int64_t uid;
	const char *owner;
	const struct strv *params;
};
void exec_spec_build(struct exec_spec *o, const struct exec_spec_source *from);
