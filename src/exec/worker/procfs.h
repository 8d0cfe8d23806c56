/* SPDX-License-Identifier: Apache-2.0 */
/* Finds processes of ours that are not our direct workers, by what /proc says of them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

/* The worker a process belongs to. False: not of this spawner, or it does not say. */
bool procfs_owner(pid_t pid, const char *spawner, int64_t *ret_run, int64_t *ret_fence);

/* Our children, adopted ones too. */
int procfs_children_open(void); /* a descriptor, or -errno */
int procfs_children(int fd, struct buf *text /* reused */, pid_t **ret /* reused */, size_t *ret_n, size_t *cap);

/*
 * Kills every process that carries this spawner's id and waits until they are gone. Returns how many there were,
 * -1 when some would not go within ten seconds or may not be killed by us.
 */
int procfs_kill_all(const char *spawner);
