/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a child inside a control group. */
/* Moving a running process there would make the kernel wait for all processors. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Like clone(2) with these flags (CLONE_VM, CLONE_VFORK, CLONE_PARENT, CLONE_PARENT_SETTID and
 * namespaces). The exit signal is SIGCHLD. 'cgroup' is the directory of the control group. Returns
 * the child's pid or -errno; -ENOSYS: not supported by this machine, so the child has to move into
 * the group itself.
 */
pid_t clone_into_cgroup(int (*fn)(void *), void *stack, size_t stack_size, uint64_t flags,
	void *arg, pid_t *tid, int cgroup);
pid_t clone_fork_into_cgroup(int cgroup); /* like fork(2); -errno */
