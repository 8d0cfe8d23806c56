/* SPDX-License-Identifier: Apache-2.0 */
/* Start plan: everything the spawner needs to start one attempt. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include "core/start/exec_spec.h"
#include "core/job/warrant.h"
#include <stdint.h>

struct job_spec;
struct run;

struct start_plan {
	struct exec_spec spec;     /* the same for all runs of the job; signed by the warrant */
	int64_t part;           /* 0: the command of the job; n: the n-th command of its notices */
	unsigned char warrant[WARRANT_LEN]; /* of the execution specification */
	bool has_warrant;

	/* specific to this attempt */
	int64_t run, fence;
	int64_t attempt;
	usec_t timeout;         /* 0: none */
	usec_t grace;
	bool ends_with_lease;   /* the job may not overlap: see exec/proto/frame.h */
	int64_t output_limit;   /* bytes of output to keep: the first tenth and the last nine tenths */
	struct strv vars;       /* JOBSCHED_NAME=value, and the trace context; checked by the spawner, which adds run, fence and attempt itself */
	int tree;               /* directory of the artifact, for part 0: a borrowed descriptor */
	struct blob stdin_data; /* absent: /dev/null; for part 0 it must match stdin_hash */
};
void start_plan_done(struct start_plan *p);

/* The input of a plan: the claimed run and this node. */
struct start_plan_source {
	const struct run *run;
	const struct job_spec *spec;
	const char *node;     /* name of this node */
	const char *store_id; /* makes JOBSCHED_KEY unique between stores */
	const struct strv *trace; /* TRACEPARENT and others, valid; NULL: none */
	const struct strv *params; /* NAME=value of a triggered run, which override those of the job; NULL: none */
};
void start_plan_build(struct start_plan *p, const struct start_plan_source *from);

const char *start_plan_path(int64_t uid); /* the PATH variable of a command, with the sbin directories for root */

/* Whether the spawner accepts the variable: JOBSCHED_[A-Z0-9_]+=TEXT, one line, or a variable of the trace context. */
#define START_PLAN_VAR_MAX 4096
#define START_PLAN_VARS_MAX 64
bool start_plan_var_valid(const char *var);
