/* SPDX-License-Identifier: Apache-2.0 */
/* Between child.c, which has the steps, and launch.c, which makes the processes that take them. */
#pragma once
#include "exec/child/child.h"

enum launch_role {
	LAUNCH_ALONE, /* the worker takes all steps */
	LAUNCH_PIDNS_HELPER,  /* makes the namespaces, then their keeper and the worker, and leaves */
	LAUNCH_PIDNS_WORKER, /* the worker in them */
};
#define LAUNCH_MARKS 3

struct launch {
	const struct child_plan *plan;
	struct child_report *word;
	char *stack;  /* the top of another one, for those a host makes */
	enum launch_role role;
	bool moves;   /* into its control group: it could not be born there */
	char *marks[LAUNCH_MARKS + 1]; /* the environment of a keeper */
};

enum { STAGE_CLONE = -1, STAGE_PIDNS_INIT = -2 };

bool child_steps(const struct launch *o); /* false: one failed, the word says which; true: by a host only */
