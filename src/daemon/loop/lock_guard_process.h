/* SPDX-License-Identifier: Apache-2.0 */
/* The process that guards the locks on the SQLite file (store/backend/lock_guard.h). */
#pragma once
#include "base/auto.h"

struct lock_guard_process;
struct sd_event;

struct lock_guard_process_options {
	const char *where;  /* borrowed: path of the open store */
	int shared;         /* descriptor of the file_lock */
	/* This process has lost its locks and must not write any more. */
	void (*on_missing)(void *arg);
	void *arg;
};

/*
 * A guard that cannot be started, or ends, is started again after 1 s. The daemon continues
 * meanwhile.
 */
struct lock_guard_process *lock_guard_process_new(struct sd_event *ev,
	const struct lock_guard_process_options *o);
/* Call it before the store is closed, or SQLite cannot delete the WAL. NULL is fine. */
void lock_guard_process_free(struct lock_guard_process *g);
AUTO_DEFINE(lock_guard_process);
