/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the guard of the SQLite file's locks (store/backend/lock_guard.h) and ends the daemon when its own locks are gone. */
#pragma once
#include "base/auto.h"

struct lock_guard_process;
struct sd_event;

struct lock_guard_process_options {
	const char *where;  /* borrowed: the store, which is open */
	int shared;         /* the descriptor of the file_lock */
	void (*on_missing)(void *arg); /* this process has lost its locks: not one more write */
	void *arg;
};

/* A guard that cannot be started, or ends, is started again a little later; the daemon works meanwhile. */
struct lock_guard_process *lock_guard_process_new(struct sd_event *ev, const struct lock_guard_process_options *o);
void lock_guard_process_free(struct lock_guard_process *g); /* before the store is closed: SQLite could not delete the log then. NULL is fine */
AUTO_DEFINE(lock_guard_process);
