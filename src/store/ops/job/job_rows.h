/* SPDX-License-Identifier: Apache-2.0 */
/* Operates on the locked row of a job. */
#pragma once
#include "base/clock.h"
#include "core/job/job.h"

struct buf;
struct err;
struct op;
struct set;
struct query;
struct store;

/* A job's row, locked until the commit. */
struct job_row {
	int64_t id;
	int64_t uid;
	char *owner, *name, *reason, *queue, *spec; /* owned */
	enum job_state state;
	int64_t revision, priority;
	usec_t created_at;
	bool sound; /* its digest is correct */
};
void job_row_done(struct job_row *j);
bool job_row_lock(struct store *s, int64_t uid, int64_t id, struct job_row *ret, struct err *e); /* id 0: no such job */
bool job_row_prefetch(struct store *s, int64_t uid, int64_t id, struct err *e);
void job_row_words(const struct job_row *j, struct buf *out); /* 12 'backup' */

bool job_row_is_live(enum job_state s); /* active, paused or suspended */
/* Refuses to revive a job whose queue was removed: op->ok is false. False: the database failed. */
bool job_row_check_queue(struct store *s, struct op *op, const struct job_row *j, struct err *e);
/* *ret: the live job of the same owner that has its name; 0: none. */
bool job_row_name_taken(struct store *s, const struct job_row *j, int64_t *ret, struct err *e);
/* Changes the state and the counters. */
bool job_row_set_state(struct store *s, struct job_row *j, enum job_state to, const char *reason, usec_t now,
	struct err *e);
/*
 * Deletes planned runs that are not due, and makes their first slot the next one to plan. The row
 * must be locked. The first function leaves the slot to the caller (USEC_NEVER: no run was deleted)
 * and sends 'next' in the same round trip, unless it is NULL.
 */
bool job_row_unplan_with(struct store *s, int64_t job, usec_t now, usec_t *ret_first, struct query *next, struct err *e);
bool job_row_unplan(struct store *s, int64_t job, usec_t now, struct err *e);
bool job_row_due_prefetch(struct store *s, int64_t job, struct err *e);
bool job_row_due_lock(struct store *s, int64_t job, usec_t *ret, struct err *e); /* locks its next slot; 0: none */
bool job_row_put_due(struct store *s, int64_t job, usec_t slot, struct err *e); /* sets its next slot */
/* Suspends active and paused jobs; 'set' has {job, reason}. */
bool job_rows_suspend(struct store *s, struct set *set, usec_t now, struct err *e);
