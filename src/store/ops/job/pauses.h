/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses single jobs or all jobs of a scope. */
#pragma once
#include "core/job/pause.h"
#include "store/lists.h"
#include "store/ops/op.h"
#include "store/store.h"

struct job_row;

struct op_pause {
	struct op op;
	int64_t uid;         /* whose jobs may be used; -1: all */
	int64_t job;         /* with scope PAUSE_JOB */
	struct pause_order pause;  /* its texts are borrowed */
	int64_t limit;       /* scope pauses for the jobs of its uid, including this one; 0: no limit */
	/* results, for a job */
	char *name;          /* owned; NULL: none */
	enum job_state was;
	struct run_list open; /* its claimed and running runs, which are not affected */
};
OP_DEFINE(pause, pause, OP_PAUSE, OP_PAUSE)

struct job_pause {
	int64_t job, by_uid; /* by_uid -1: the system */
	const char *by_name, *reason;
	usec_t now, until;   /* until 0: until it is resumed */
};
/* Pauses an active job. *ret: whether it was active; other jobs are not changed. */
bool job_pause(struct store *s, const struct job_pause *p, bool *ret, struct err *e);
/*
 * Reads the pause of a job that is paused, or will be ('later'). Without a row it has only the
 * reason of the job.
 */
bool pause_row_of_job(struct store *s, const struct job_row *j, struct pause_order *ret, struct err *e);
bool pause_row_prefetch(struct store *s, int64_t job, struct err *e);
/*
 * Finds the pause of this job that an administrator set and that has not ended. 'uid' is the scope
 * of an operation: an administrator (below 0) may end it, so *ret_found is false. The row outlives
 * a cancellation by the owner.
 */
bool pause_imposed_on_job(struct store *s, int64_t uid, const struct job_row *j, usec_t now, struct pause_order *ret,
	bool *ret_found, struct err *e);
bool pause_is_imposed_on(const struct pause_order *p, int64_t uid, const struct job_row *j, usec_t now); /* the same with its row */
/*
 * Sets "job 12 is paused by root since ...: reason; only an administrator can end that"; returns
 * false.
 */
bool pause_deny(struct err *e, const char *subject, const struct pause_order *p);
/* The same for an operation; returns true. */
bool pause_deny_op(struct op *op, const struct job_row *j, const struct pause_order *p);
/*
 * Refuses an ordinary user ('uid' 0 or more) who would change or end a pause that an administrator
 * set.
 */
bool pause_check_scope(struct store *s, struct op *op, int64_t uid, const struct pause_order *wanted, struct err *e);
/* Adds the audit event of a pause that began or ended; 'by' NULL: at its time. */
void pause_event(struct store *s, const struct actor *by, enum event_what what, const struct pause_order *p, usec_t now,
	const char *detail);
/* Keep pauses that are about to end: they still apply to the slots inside them. */
bool pause_keep_jobs(struct store *s, const char *ids, usec_t now, struct err *e);
bool pause_keep_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid, usec_t now, struct err *e);
