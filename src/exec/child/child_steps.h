/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by child.c, which has the setup steps, with launch.c, which creates the processes. */
#pragma once
#include "exec/child/child.h"

enum launch_role {
	LAUNCH_ALONE,        /* the worker, which runs all steps */
	/* creates the namespaces, then their init process and the worker, and exits */
	LAUNCH_PIDNS_HELPER,
	LAUNCH_PIDNS_WORKER, /* the worker inside these namespaces */
};
#define LAUNCH_INIT_VARS 3

struct launch {
	const struct child_plan *plan;
	struct child_report *report;
	char *stack;  /* top of the second stack, for the processes that a helper creates */
	enum launch_role role;
	bool moves;   /* into its control group: it could not be created there */
	char *init_env[LAUNCH_INIT_VARS + 1]; /* environment of the init process */
};

enum { STAGE_CLONE = -1, STAGE_PIDNS_INIT = -2 };

/*
 * False: a step failed, see the report. True is returned in a helper only; in a worker the last
 * step calls exec().
 */
bool child_steps(const struct launch *o);
