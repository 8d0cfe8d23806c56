/* SPDX-License-Identifier: Apache-2.0 */
/* The limits the product is measured against on the same machine, in the same run. */
#pragma once

double bench_now(void); /* seconds, monotonic */

/* Starts and waits for 'true', so many at a time; starts per second. */
double limit_spawn(int in_flight, double seconds);

/* Commits of so many rows of about 200 bytes each, synchronous=FULL, in a new file in 'dir'; rows per second. */
double limit_commit(const char *dir, int rows, double seconds);
