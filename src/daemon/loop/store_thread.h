/* SPDX-License-Identifier: Apache-2.0 */
/* The store threads: a writer that commits batches, a reader, a thread for long tasks. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/decide/fair_queue.h"
#include <stdbool.h>

struct err;
struct event_list;
struct metrics;
struct op;
struct sd_event;
struct store;
struct store_thread;
struct batch_wake;

struct store_health {
	bool busy;           /* operations are waiting or under way */
	/* Boottime: a thread has waited for the store since then; 0: none waits. */
	usec_t waits_since;
	usec_t answered;     /* boottime: end of the last successful batch */
	/* Boottime: every batch since then has failed; 0: the last one succeeded. */
	usec_t fails_since;
	char why[512];       /* with fails_since: the error of the last batch */
};

struct store_thread_options {
	const char *where;   /* borrowed; see store_options */
	const char *machine; /* borrowed; NULL: not checked */
	bool takeover;
	bool writer_only;    /* no reader thread */
	usec_t lease;        /* see store_options */
	bool no_checkpoint;  /* see store_options */
	bool note_all;       /* see store_options */
	struct metrics *metrics; /* borrowed; NULL: nothing is counted */
	const struct clock *clock;
	/* On the loop, after every batch, also a failed one. */
	void (*on_wake)(const struct batch_wake *w, void *arg);
	/* On the loop: the store must not be written to any more. */
	void (*on_fatal)(const struct err *e, void *arg);
	/* On the loop: committed events. */
	void (*on_events)(const struct event_list *l, void *arg);
	/* On the loop: every operation, before its own on_done. */
	void (*on_op)(const struct op *op, void *arg);
	/* On the loop: all callbacks of the operations and reads that were ready have been called. */
	void (*on_delivered)(void *arg);
	/* On the loop: an operation or a read was submitted. */
	void (*on_busy)(void *arg);
	void *arg;
};

bool store_thread_start(struct sd_event *ev, const struct store_thread_options *o,
	struct store_thread **ret, struct err *e);
/* Completes queued work first, unless the store does not answer. */
void store_thread_free(struct store_thread *t);
void store_thread_leave(struct store_thread *t); /* shortens the wait for operations under way */
AUTO_DEFINE(store_thread);

const char *store_thread_store_id(const struct store_thread *t);

/*
 * The op belongs to the thread until op->on_done is called on the loop, after the commit that
 * covers it.
 */
void store_thread_submit(struct store_thread *t, struct op *op /* moved */);
bool store_thread_stopping(const struct store_thread *t); /* no further read is served; for the loop */
/* The disk is full: submissions are refused. */
bool store_thread_no_room(const struct store_thread *t);
size_t store_thread_backlog(const struct store_thread *t); /* operations waiting or in the batch */

void store_thread_health(const struct store_thread *t, struct store_health *ret);
/* Fails the queued operations of clients at once. They have not been tried. */
void store_thread_refuse_waiting(struct store_thread *t, const struct err *why);
void store_thread_expect_term(struct store_thread *t, int64_t term); /* store_expect_term() */

/*
 * A read: 'work' is called on the reader thread, then 'done' on the loop. Reads are queued by the
 * key of 'item', the uid of the client (0: root or the daemon itself), and uids take turns.
 */
struct read_task {
	struct fair_item item;
	/* 's' is NULL if the connection of the thread for long tasks could not be opened. */
	void (*work)(struct store *s, struct read_task *t);
	void (*done)(struct read_task *t); /* owns the task */
	/* Set by 'work': bytes of the result, counted for the uid until store_thread_release(). */
	size_t charge;
};
void store_thread_read(struct store_thread *t, struct read_task *task /* moved */);
void store_thread_release(struct store_thread *t, int64_t uid, size_t bytes);
/*
 * Reads of a uid wait while its results use more than this, or more than is left of the total.
 * Total 0: no limit.
 */
void store_thread_bound_results(struct store_thread *t, int64_t per_uid, int64_t total);
/*
 * The same for long tasks, on a separate thread and connection, so that requests do not wait for
 * them.
 */
void store_thread_read_long(struct store_thread *t, struct read_task *task /* moved */);
