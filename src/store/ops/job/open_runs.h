/* SPDX-License-Identifier: Apache-2.0 */
/* The open runs of a locked job, for batches that write without waiting for replies. */
#pragma once
#include "core/job/run.h"
#include <stddef.h>

struct err;
struct set;
struct store;

struct open_run {
	int64_t id, uid, size; /* size: bytes of its row */
	enum run_state state;
	enum run_hold hold;
	usec_t slot;
	char *queue;           /* owned */
	bool planned;          /* not due, and without an attempt */
	bool ended;            /* by this operation: deleted or cancelled */
};

/*
 * Only the holder of the job's lock moves its runs, except from running to ended by itself, which
 * takes the lock, too. So these rows stay true until the commit. If a statement finds other rows
 * nevertheless, it fails, and the batch is repeated one operation at a time.
 */
struct open_runs {
	int64_t job;
	struct open_run *v; /* owned */
	size_t n;
};
void open_runs_done(struct open_runs *l);

bool open_runs_prefetch(struct store *s, int64_t job, usec_t now, struct err *e);
bool open_runs_read(struct store *s, int64_t job, usec_t now, struct open_runs *ret, struct err *e);
size_t open_runs_count(const struct open_runs *l); /* without those that have ended */

/* Deletes the planned runs; *ret_first: their first slot, USEC_NEVER: there is none. Returns false if the database failed. */
bool open_runs_unplan(struct store *s, struct open_runs *l, usec_t now, usec_t *ret_first, size_t *ret_n, struct err *e);
/* Cancels the queued ones; *ret_active gets the others. */
bool open_runs_cancel(struct store *s, struct open_runs *l, const char *reason, usec_t now, int64_t *ret_n, struct set *ret_active,
	struct err *e);
bool open_runs_release(struct store *s, struct open_runs *l, size_t *ret_n, struct err *e); /* those that a pause of the job holds */
/*
 * As job_finish_idle(): the job is active, its next slot is 'due' (0: none) and its owner 'uid'.
 * 'more': a run was added. *ret: the job has finished.
 */
bool open_runs_finish(struct store *s, const struct open_runs *l, bool more, usec_t due, int64_t uid, const char *queue, usec_t now, bool *ret,
	struct err *e);
