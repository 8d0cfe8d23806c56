/* SPDX-License-Identifier: Apache-2.0 */
/* Starts jobsched-spawner or jobsched-net in the background. */
#pragma once
#include <sys/types.h>

/*
 * Starts 'program' in a new session, with default signal handling and no descriptors except
 * standard error; input and output are /dev/null. argv contains --background: the program forks,
 * and the process *ret exits when its child listens or has failed. The caller reaps *ret. 0, or
 * -errno.
 */
int background_start(const char *program, char *const argv[], pid_t *ret);

enum background_result {
	BACKGROUND_LISTENS,
	BACKGROUND_OTHER, /* another process holds the lock of the directory; it may not listen yet */
	BACKGROUND_FAILED
};
enum background_result background_result(int status /* of waitpid() */);
