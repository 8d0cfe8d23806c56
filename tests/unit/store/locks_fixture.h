/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that wait for locks of others, and gates between a snapshot and its locks. PostgreSQL only. */
#pragma once
#include "unit/store/claim_fixture.h"
#include <pthread.h>

/* A batch that another thread applies. */
struct waiter {
	struct store *s;
	struct op *op, *second;
	pthread_t thread;
	bool ok;
};
/* 'second' is another operation of the batch; NULL: there is none. */
void waiter_start_both(struct waiter *w, struct store *s, struct op *op, struct op *second);
void waiter_start(struct waiter *w, struct store *s, struct op *op);
void waiter_end(struct waiter *w);  /* operations may be refused */
void waiter_join(struct waiter *w); /* all must have succeeded */
void wait_for_waiters(void **state, int n); /* returns when that many sessions wait for a lock */

/*
 * Makes the statement whose text contains 'text' wait between its snapshot and its locks of jobs, while the gate is
 * closed. 'pid': only in this session of the server; 0: in all.
 */
void add_gate(void **state, const char *text, int pid);
void gate_open(void **state);

/*
 * A job without a limit of its runs that has run 1, running; run 2, planned for T0 + USEC_MIN and not due; run 3, queued. Its
 * next and last slot is a second after run 2.
 */
int64_t add_busy(struct store *s, struct run **ret_running);
extern usec_t busy_end; /* for every_second() */
