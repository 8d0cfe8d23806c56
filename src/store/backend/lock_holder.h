/* SPDX-License-Identifier: Apache-2.0 */
/* Who keeps others from writing a store's file, seen from outside: in /proc, never by opening the file's parts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lock_holder {
	pid_t pid;
	uint64_t started; /* with the pid: which process it is */
	char state;       /* as ps(1) shows it: T is stopped */
	bool ours;        /* our program, run by our user, with this very file */
};

/* Who holds the right to write. False: nobody, we ourselves, or it cannot be seen. A server's store has none. */
bool lock_holder_find(const char *where, struct lock_holder *ret);
/* Whether another process has it open; 0: one that has no number here. Only for a process that has not: this opens a part. */
bool lock_holder_user(const char *where, pid_t *ret);
/* Ends it with SIGKILL if it still is the one that holds the file, stopped, and ours. */
bool lock_holder_kill(const char *where, const struct lock_holder *h);
