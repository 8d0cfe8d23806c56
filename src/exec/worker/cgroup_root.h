/* SPDX-License-Identifier: Apache-2.0 */
/* The delegated control group: location, removal of stale groups. */
#pragma once
#include <stdbool.h>

struct err;

/* *ret NULL: there is none; see cgroups_open() */
bool cgroup_root_find(const char *where, char **ret, struct err *e);
/* kills all processes below the directory and removes its groups */
void cgroup_root_clear(int dir, const char *path);
void cgroup_root_remove_below(int dir);
