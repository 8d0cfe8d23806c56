/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the definition of a job. */
#pragma once
#include "core/job/job.h"
#include "store/ops/job/jobs.h"

/* A finished job with a new schedule becomes active again. */
struct op_job_change {
	struct op op;
	int64_t uid;         /* whose jobs may be used; -1: all */
	int64_t id;
	int64_t expect;      /* the revision that the change is based on; 0: any */
	const char *what;    /* description of the change */
	int64_t origin;      /* the earlier revision that is restored; 0: none */
	bool reschedule;     /* 'to' has other slots: planned runs that are not due are deleted, next_slot is used */
	bool follows;        /* with reschedule: while a run is open, the first slot depends on its end */
	struct job_new to;   /* name, spec, tags, queue, policy, slots, now; its results are not used */
	/* results */
	int64_t revision;
	enum job_state was, state;
	int64_t unplanned;   /* queued runs that were deleted; their slots do not exist any more, or are planned again */
	int64_t run;         /* run that was queued at once; 0: none */
	bool stale;          /* refused, because the job is not at revision 'expect' */
};
OP_DEFINE(job_change, job_change, OP_JOB_CHANGE, OP_JOB_CHANGE)

/* A refusal is in *why, and nothing was changed. False: the database failed. */
bool job_change(struct store *s, struct op_job_change *c, const struct actor *by, struct err *why, struct err *e);
/* Has the refusals and results of OP_JOB_CHANGE, but changes nothing. */
bool job_change_dry_run(struct store *s, struct op_job_change *c, struct err *e);
