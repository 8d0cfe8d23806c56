/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the results of runs. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;
struct run;
struct store;

/* Fills in 'results' of each run. */
bool run_results_read(struct store *s, struct run *const *v, size_t n, struct err *e);
