/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the processes of a child plan. */
#pragma once
#include "exec/child/child.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;

/*
 * Stacks for the created processes. One object is enough, because the creator is suspended during
 * each setup.
 */
struct launch_stacks;
bool launch_stacks_new(struct launch_stacks **ret, struct err *e);
void launch_stacks_free(struct launch_stacks *s);

/*
 * Returns 0 when the command runs, or -errno of the step that *report names. Until exec() the child
 * shares the memory of the caller, and a file system of the job's owner can block it. So the
 * spawner calls this itself only for children that stay root and use trusted paths. The created
 * processes are not reaped.
 */
int launch_processes(
	struct launch_stacks *s, const struct child_plan *p, struct child_report *report);

struct child {
	pid_t pid;    /* to be reaped by the creator */
	int pidfd;    /* owned */
	pid_t pidns_init; /* to be killed after 'pid' has ended, and reaped; 0: no PID namespace */
};
/* launch_processes() for a child of the caller. The processes of a failed start are reaped. */
int launch_child(struct launch_stacks *s, const struct child_plan *p, struct child *ret,
	struct child_report *ret_report);
/* waits until the child exits; its status as of waitpid() */
int launch_child_reap(struct child *c);
