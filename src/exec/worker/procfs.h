/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the processes of a spawner through /proc. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

/* The run of a process, from its environment. False: not of this spawner, or not known. */
bool procfs_owner(pid_t pid, const char *spawner, int64_t *ret_run, int64_t *ret_fence);

/* All children of the calling process, including reparented ones. */
int procfs_children_open(void); /* a descriptor, or -errno */
/* 'text' and *ret are reused by the next call. */
int procfs_children(int fd, struct buf *text, pid_t **ret, size_t *ret_n, size_t *cap);

/*
 * Kills every process that has this spawner's id in its environment and waits until all have
 * exited. Returns their number; -1: some did not exit within ten seconds, or could not be killed.
 */
int procfs_kill_all(const char *spawner);
