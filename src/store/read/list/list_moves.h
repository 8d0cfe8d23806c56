/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the runs that other nodes have started or ended. */
#pragma once
#include "store/lists.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

#define LIST_MOVES_OVERLAP 64 /* PostgreSQL may commit a lower number after a higher one */

/* Where a reader of the moves is. Zero: nothing was read. */
struct move_place {
	int64_t after;                    /* highest number that was read */
	int64_t seen[LIST_MOVES_OVERLAP]; /* numbers that were read, by number modulo the size */
	bool known;                       /* false: the reader begins at the newest move */
	bool more;                        /* result: there may be further moves now */
};

/*
 * Reads the moves after the place and moves the place. 'ret' gets the runs as they are now, without
 * those that 'node' has moved; 'own' are further runs to read. *ret_missed: some moves are no longer known.
 */
bool list_moves_read(struct store *s, const char *node, struct move_place *place, const int64_t *own, size_t n_own,
	struct run_list *ret, bool *ret_missed, struct err *e);
