/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured beside the product on the same machine, in the same run. */
#pragma once

#include <sys/types.h>

double bench_now(void);         /* seconds, monotonic */
double bench_cpu(pid_t pid);    /* seconds of CPU a process has used; 0 when it is gone */
double bench_cpu_tree(pid_t pid); /* with its children: those it has waited for and those it has */

/* Starts and waits for 'true', so many at a time; starts per second. */
double limit_spawn(int in_flight, double seconds);

/* Commits of so many rows of about 200 bytes each, synchronous=FULL, in a new file in 'dir'; rows per second. */
double limit_commit(const char *dir, int rows, double seconds);
