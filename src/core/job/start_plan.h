/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: everything the spawner needs to start one attempt, and nothing else. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include "core/job/exec_spec.h"
#include "core/job/warrant.h"
#include <stdint.h>

struct job_spec;
struct run;

struct start_plan {
	struct exec_spec spec;     /* the same in all runs of the job; what a warrant covers */
	int64_t part;           /* of the order: 0 its command, n the n-th command of its notices */
	unsigned char warrant[WARRANT_LEN]; /* root's word for the order */
	bool has_warrant;

	/* of this attempt alone */
	int64_t run, fence;
	int64_t attempt;
	usec_t timeout;         /* 0: none */
	usec_t grace;
	bool ends_with_lease;   /* it must not run twice: see frame.h */
	int64_t output_limit;   /* bytes of output to keep; a tenth of it from the start */
	struct strv vars;       /* JOBSCHED_NAME=value; the spawner checks them, and puts run, fence and attempt itself */
	int tree;               /* of the order's artifact, with part 0: a descriptor, borrowed */
	struct blob stdin_data; /* absent: /dev/null; of part 0 it must have the order's hash */
};
void start_plan_done(struct start_plan *p);

/* Where a plan comes from: the run as claimed, and who is asking. */
struct start_plan_source {
	const struct run *run;
	const struct job_spec *spec;
	const char *node;     /* its name */
	const char *store_id; /* makes JOBSCHED_KEY unique between stores */
	const struct strv *params; /* NAME=value that the run was triggered with, over those of the job; NULL: none */
};
void start_plan_build(struct start_plan *p, const struct start_plan_source *from);

const char *start_plan_path(int64_t uid); /* PATH of a command: with the sbin directories for root */

/* Whether a variable of the run part is one the spawner takes: JOBSCHED_[A-Z0-9_]+=text of one line. */
#define START_PLAN_VAR_MAX 4096
#define START_PLAN_VARS_MAX 64
bool start_plan_var_valid(const char *var);
