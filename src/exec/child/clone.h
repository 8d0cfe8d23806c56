/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a child that is born in a control group: moving a process there afterwards would make the whole machine wait. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Like clone(2) with these flags (CLONE_VM, CLONE_VFORK, CLONE_PARENT, CLONE_PARENT_SETTID and namespaces), SIGCHLD at its end,
 * and the control group whose directory is 'cgroup'. -ENOSYS: not on this machine; the child has to move there itself.
 */
pid_t clone_into_cgroup(int (*fn)(void *), void *stack, size_t stack_size, uint64_t flags, void *arg, pid_t *tid,
	int cgroup); /* the child's number, or -errno */
pid_t clone_fork_into_cgroup(int cgroup); /* like fork(2); -errno */
