/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the process that holds the write lock of a SQLite file. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lock_holder {
	pid_t pid;
	uint64_t started; /* start time; with the pid it identifies the process */
	char state;       /* as ps(1) shows it: T is stopped */
	bool ours;        /* it runs this program as this user and has this file open */
};

/*
 * Reads /proc/locks. The files of the store are not opened, because closing them would drop the
 * locks of this process. False: no process, this process, or a process that is not visible. Always
 * false for PostgreSQL.
 */
bool lock_holder_find(const char *where, struct lock_holder *ret);
/*
 * Whether another process has the store open; *ret is 0 if its pid is not visible here. Opens a
 * file of the store, so it must be called before this process opens the store.
 */
bool lock_holder_user(const char *where, pid_t *ret);
/* Sends SIGKILL if the process still holds the lock, is stopped, and is 'ours'. */
bool lock_holder_kill(const char *where, const struct lock_holder *h);
