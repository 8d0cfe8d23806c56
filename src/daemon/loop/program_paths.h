/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the directories of a daemon (base/paths.h computes them) and finds the spawner's program. */
#pragma once
#include <stdbool.h>

struct err;
struct paths;

/* User mode: makes the directories, mode 0700. ERR_REFUSED: one of them belongs to another user. */
bool program_paths_prepare(const struct paths *p, struct err *e);

/*
 * The programs that a user's daemon starts: the one named in the environment ($JOBSCHED_SPAWNER_PATH, $JOBSCHED_NET_PATH),
 * the one beside this binary, or the installed one. The caller frees the result.
 */
char *program_paths_spawner(void);
char *program_paths_net(void);
