/* SPDX-License-Identifier: Apache-2.0 */
/* The store handle: open, close, identity and counters. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/job.h"
#include "core/job/notice.h"
#include "core/job/run.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct store;

struct store_options {
	const char *where;    /* a path, or postgresql://… */
	bool read_only;       /* never creates, migrates or checkpoints; for the reader thread */
	bool no_checkpoint;   /* another process checkpoints this file */
	const char *machine;  /* ID of this machine: a file of another machine is refused; NULL: not checked */
	bool takeover;        /* a file of another machine becomes this machine's */
	const struct clock *clock; /* borrowed; for leases and records; NULL: the system clock. I/O timeouts always use that */
	bool note_all;        /* keep the last results of all jobs, not only of those that notify or have the tag of metrics */
	usec_t lease;         /* renewed through this handle, so that a failed renewal is noticed in time; 0: default timeouts */
};

/*
 * Must be opened after any fork and used by one thread. Creates or migrates the schema unless
 * read_only. ERR_REFUSED: the store is corrupt, not a store, unreadable or of a newer version;
 * nothing was changed (the daemon exits 78).
 */
bool store_open(const struct store_options *o, struct store **ret, struct err *e);
void store_free(struct store *s);
AUTO_DEFINE(store);

const char *store_id(const struct store *s); /* random, assigned with the schema, constant */

/*
 * Asked between the parts of a batch that is one bulk, on SQLite. true: the batch is rolled back and fails with ERR_BUSY;
 * store_gave_way() tells it from other failures, and the caller applies the operation again after others.
 */
typedef bool store_yield_fn(void *arg);
void store_set_yield(struct store *s, store_yield_fn *fn, void *arg);
bool store_gave_way(const struct store *s);

/* These three may be called by any thread. */
/* Boottime since when the store waits for a server, a lock of another process or the disk; 0: it does not wait. */
usec_t store_waits_since(const struct store *s);
int64_t store_round_trips(const struct store *s); /* replies of the server that were waited for; 0: there is no server */
void store_leave(struct store *s); /* the daemon is ending: do not wait for the outcome of an unknown commit */
/* A server with a lower term has lost commits; the store then refuses to write. */
void store_expect_term(struct store *s, int64_t term);

struct store_counts {
	int64_t jobs[JOB_STATE_MAX];
	int64_t runs[RUN_STATE_MAX];
	int64_t notices[NOTICE_STATE_MAX];
};
bool store_counts(struct store *s, struct store_counts *ret, struct err *e); /* from the table 'counters', without a scan */
