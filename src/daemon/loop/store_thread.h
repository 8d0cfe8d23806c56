/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that own the store: one writes batches, one reads; results come back on the loop. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/decide/fair_queue.h"
#include <stdbool.h>

struct err;
struct event_list;
struct op;
struct sd_event;
struct store;
struct store_thread;
struct batch_wake;

struct store_health {
	bool busy;           /* something is under way */
	usec_t waits_since;  /* boottime: one of the threads waits for the store; 0: none does */
	usec_t answered;     /* boottime: the end of the last batch that went through */
	usec_t fails_since;  /* boottime: no batch has gone through since then; 0: the last one has */
	char why[512];       /* with fails_since: what the last one met */
};

struct store_thread_options {
	const char *where;   /* borrowed; see store_options */
	const char *machine; /* borrowed; NULL: not asked */
	bool takeover;
	bool writer_only;    /* nobody reads through it */
	usec_t lease;        /* see store_options */
	bool no_checkpoint;  /* not before we lead: see db_ops */
	const struct clock *clock;
	void (*on_wake)(const struct batch_wake *w, void *arg);   /* on the loop, after every batch, failed ones too */
	void (*on_fatal)(const struct err *e, void *arg);         /* on the loop: the store must not be written any more */
	void (*on_events)(const struct event_list *l, void *arg); /* on the loop: these were committed */
	void (*on_op)(const struct op *op, void *arg);            /* on the loop: every operation, before its own on_done */
	void (*on_busy)(void *arg);                               /* on the loop: something is given to it */
	void *arg;
};

bool store_thread_start(struct sd_event *ev, const struct store_thread_options *o,
	struct store_thread **ret, struct err *e);
void store_thread_free(struct store_thread *t); /* what is queued is finished first, unless the store is away */
void store_thread_leave(struct store_thread *t); /* what is under way is not waited for much longer */
AUTO_DEFINE(store_thread);

const char *store_thread_store_id(const struct store_thread *t);

/* The op belongs to the thread until op->on_done is called on the loop, after the commit that covers it. */
void store_thread_submit(struct store_thread *t, struct op *op /* moved */);
bool store_thread_no_room(const struct store_thread *t);   /* the disk is full: submissions are refused */
size_t store_thread_backlog(const struct store_thread *t); /* operations waiting or in the batch */

void store_thread_health(const struct store_thread *t, struct store_health *ret);
/* Those who wait for a change that is not under way yet hear at once that nothing came of it. */
void store_thread_refuse_waiting(struct store_thread *t, const struct err *why);
void store_thread_expect_term(struct store_thread *t, int64_t term); /* store_expect_term() */

/*
 * A read: 'work' on the reader's thread with the reader's connection, then 'done' on the loop. Reads are queued by the
 * key of 'item', the uid that asks (0: root or the daemon itself), and uids take turns.
 */
struct read_task {
	struct fair_item item;
	void (*work)(struct store *s, struct read_task *t);
	void (*done)(struct read_task *t); /* owns the task */
	size_t charge; /* set by 'work': bytes of the result, charged to the uid until store_thread_release() */
};
void store_thread_read(struct store_thread *t, struct read_task *task /* moved */);
void store_thread_release(struct store_thread *t, int64_t uid, size_t bytes);
/* While results of a uid hold more than this, or more than is left of the total, its further reads wait; total 0: never. */
void store_thread_bound_results(struct store_thread *t, int64_t per_uid, int64_t total);
/* The same for what takes long, on a thread and a connection of its own, so that no question waits for it. */
void store_thread_read_long(struct store_thread *t, struct read_task *task /* moved */);
