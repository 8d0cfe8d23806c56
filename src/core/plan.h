/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: everything the spawner needs to start one attempt, and nothing else. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include <stdint.h>

struct job_spec;
struct run;

struct plan {
	int64_t run, fence;
	int64_t attempt;
	usec_t timeout;         /* 0: none */
	usec_t grace;
	int64_t output_limit;   /* bytes of output to keep; a tenth of it from the start */
	int64_t umask;
	struct strv argv;
	struct strv env;        /* JOBSCHED_*, TZ, then the job's own; the spawner puts HOME … PATH before */
	char *cwd;              /* NULL: the user's home, or / with a note if that fails */
	struct blob stdin_data; /* absent: /dev/null */
};
void plan_done(struct plan *p);

/* Where a plan comes from: the run as claimed, and who is asking. */
struct plan_source {
	const struct run *run;
	const struct job_spec *spec;
	const char *node;     /* its name */
	const char *store_id; /* makes JOBSCHED_KEY unique between stores */
	const struct strv *params; /* NAME=value that the run was triggered with, over those of the job; NULL: none */
};
void plan_build(struct plan *p, const struct plan_source *from);
