/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the duration statistics of jobs from their newest runs. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;
struct job;
struct store;

/* Fills in job->durations of each job. Reads at most DURATIONS_RUNS runs per job. */
bool run_durations_read(struct store *s, struct job *const *v, size_t n, struct err *e);
