/* SPDX-License-Identifier: Apache-2.0 */
/* Commits operations in batches: one batch, one transaction. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct event_list;
struct op;
struct store;

/* When the daemon must look at the store next; USEC_NEVER: nothing is waiting. */
struct batch_wake {
	usec_t next_slot;    /* first row of 'due' */
	usec_t next_due;     /* first queued run */
	usec_t next_notice;  /* first notice to be sent */
	usec_t pause_end;    /* first pause that begins or ends by itself: OP_PAUSES_END */
	usec_t expiry;       /* a queued run may not start after this time: OP_EXPIRE */
	bool no_room;        /* the disk is full: new work is refused */
	bool notify_pending; /* other nodes are notified with the next batch, which should follow soon */
};
#define BATCH_WAKE_NEVER \
	((struct batch_wake){USEC_NEVER, USEC_NEVER, USEC_NEVER, USEC_NEVER, USEC_NEVER, false, false})

/*
 * Applies all operations in one transaction and stores each result in its op. An operation that fails changes nothing
 * and does not affect the others. False: no operation was committed as far as is known; every op has the error.
 *   ERR_BUSY, ERR_FULL  nothing happened
 *   ERR_UNCERTAIN       it is unknown whether the batch was committed: the caller must stop (exit 75)
 *   ERR_REFUSED         the server has lost commits: the caller must stop (exit 78)
 */
bool batch_apply(struct store *s, struct op *const *ops, size_t n, struct batch_wake *ret, struct err *e);
