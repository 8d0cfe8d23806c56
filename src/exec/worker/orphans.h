/* SPDX-License-Identifier: Apache-2.0 */
/* Children of the spawner other than the main processes of workers. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct workers;

struct orphan {
	pid_t pid;
	int64_t run, fence; /* run 0: not known */
	int looks;          /* tries to identify it */
	bool may_continue;  /* its run lets processes continue, unless the run is ended by force */
};

void orphans_add(struct workers *ws, const struct orphan *o /* copied */);
/* a helper of the spawner: reaped, but never killed */
void orphans_add_helper(struct workers *ws, pid_t pid);
/* reaps children and kills those that ended workers left behind */
void orphans_scan(struct workers *ws, usec_t now);
