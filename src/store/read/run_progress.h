/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the progress of running runs, with an estimate of their end. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct job;
struct run;
struct store;

/* Fills in progress and estimated_end of the running runs among 'v'. Without one it reads nothing. */
bool run_progress_read(struct store *s, struct run *const *v, size_t n, usec_t now, struct err *e);
/* The same for the last run of each job. */
bool run_progress_read_jobs(struct store *s, struct job *const *v, size_t n, usec_t now, struct err *e);
