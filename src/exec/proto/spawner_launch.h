/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a spawner for a user instance unless one runs. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct err;

/*
 * Starts a spawner in a new session and waits until it listens. No effect if one holds the lock of
 * runtime_dir.
 */
bool spawner_launch(const char *program, const char *runtime_dir, const char *output_dir,
	struct err *e);
/*
 * The same in two steps, for a loop that must not block: the process *ret exits when a spawner
 * listens.
 */
bool spawner_launch_begin(const char *program, const char *runtime_dir, const char *output_dir,
	pid_t *ret, struct err *e);
/*
 * 'status' is the wait status of the process. *ret_other: another spawner has the lock and may not
 * listen yet.
 */
bool spawner_launch_end(int status, const char *program, const char *runtime_dir, bool *ret_other,
	struct err *e);
