/* SPDX-License-Identifier: Apache-2.0 */
/* Ends pauses on request; revives suspended or cancelled jobs. */
#pragma once
#include "core/job/job.h"
#include "core/job/pause.h"
#include "store/ops/run/plans.h"

struct op_resume {
	struct op op;
	int64_t uid;         /* whose jobs may be used; -1: all */
	int64_t job;         /* with scope PAUSE_JOB */
	enum pause_scope scope;
	const char *key;     /* borrowed, as in a pause */
	int64_t of_uid;      /* whose jobs the pause was for; -1: all */
	const char *reason;  /* borrowed, for the events and the next pause; NULL: none */
	usec_t now;
	usec_t until;        /* the pause begins again then; 0: it does not */
	int64_t by_uid;      /* sets the next pause */
	const char *by_name; /* borrowed */
	plan_fn *fn;         /* finds the next slot of a job that was suspended or cancelled */
	void *fn_arg;
	int64_t limit;       /* live jobs the owner may have, including this one; 0: no limit */
	/* results */
	bool found;          /* there was such a pause, or the job was paused, suspended or cancelled */
	char *name;          /* of a job, owned; NULL: none */
	enum job_state was;  /* of a job */
	size_t released;     /* runs that were held back */
};
OP_DEFINE(resume, resume, OP_RESUME, OP_RESUME)

/* Release the queued runs that a pause held back; *ret is increased by their number. */
bool resume_release_jobs(struct store *s, const char *ids, size_t *ret, struct err *e);
bool resume_release_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid, size_t *ret,
	struct err *e);
