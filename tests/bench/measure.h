/* SPDX-License-Identifier: Apache-2.0 */
/* Measures time, CPU use and the limits of the machine. */
#pragma once

#include <sys/types.h>

double bench_now(void);         /* seconds, monotonic */
double bench_cpu(pid_t pid);    /* CPU seconds of a process; 0 if it has ended */
double bench_cpu_tree(pid_t pid); /* including its ended and running children */

/* Starts 'true' repeatedly with this number of concurrent processes. Returns the starts per second. */
double limit_spawn(int in_flight, double seconds);

/*
 * Commits transactions with this number of rows of about 200 bytes to a new file in 'dir', with synchronous=FULL.
 * Returns the rows per second.
 */
double limit_commit(const char *dir, int rows, double seconds);
