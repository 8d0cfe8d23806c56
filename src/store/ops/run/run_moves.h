/* SPDX-License-Identifier: Apache-2.0 */
/* Records which runs have started and ended, for the event streams of other nodes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct err;
struct op;
struct store;

#define RUN_MOVES_MAX 2000 /* runs in one row; 0 instead of a run: there were more */

/*
 * Collects the runs that a batch has started and ended, and writes a row if the last one is 100 ms
 * old. 'kept' is the number of runs that were collected before the batch.
 */
bool run_moves_write(struct store *s, struct op *const *ops, size_t n, size_t kept, struct err *e);
