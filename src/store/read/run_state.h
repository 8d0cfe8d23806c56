/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the state that a run takes to another node. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct store;

/* The archive of the last attempt that stored one, as written by OP_STATE_PUT; empty: there is none. */
bool run_state_read(struct store *s, int64_t run, struct buf *ret, struct err *e);
