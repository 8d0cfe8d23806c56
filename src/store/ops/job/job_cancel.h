/* SPDX-License-Identifier: Apache-2.0 */
/* Stops the schedule of a job: cancel, remove. */
#pragma once
#include "core/job/job.h"
#include "store/lists.h"
#include "store/ops/op.h"
#include "store/store.h"

/* OP_JOB_CANCEL and OP_JOB_REMOVE */
struct op_job_cancel {
	struct op op;
	int64_t uid;         /* whose jobs may be used; -1: all */
	int64_t id;
	bool running;        /* also ask its running runs to end */
	usec_t now;
	/* The crontab that a job with this definition comes from; caller frees; NULL result: none. NULL: not checked. */
	char *(*origin)(const char *spec);
	/* results */
	char *name;          /* owned; NULL: none */
	enum job_state was;
	int64_t queued_cancelled;
	struct run_list open; /* its claimed and running runs */
};
OP_DEFINE(job_cancel, job_cancel, OP_JOB_CANCEL, OP_JOB_REMOVE)
