/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares the directories of user mode; finds the programs that it starts. base/paths.h computes
 * the paths.
 */
#pragma once
#include <stdbool.h>

struct err;
struct paths;

/* Creates the directories with mode 0700. ERR_REFUSED: one of them belongs to another user. */
bool program_paths_prepare(const struct paths *p, struct err *e);

/*
 * The path from the environment ($JOBSCHED_SPAWNER_PATH, $JOBSCHED_NET_PATH), else beside this
 * program, else the installed one. The caller frees the result.
 */
char *program_paths_spawner(void);
char *program_paths_net(void);
