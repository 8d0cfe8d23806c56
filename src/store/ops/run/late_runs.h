/* SPDX-License-Identifier: Apache-2.0 */
/* Decides about planned runs again after downtime or a clock change. */
#pragma once
#include "store/ops/run/plans.h"

/* Queued runs of one job whose slots passed while no daemon was running. */
struct late_job {
	struct due_job job;   /* its slot is the next one without a run; 0: none */
	const usec_t *slots;  /* ascending */
	size_t n;
};
/*
 * Returns how many of the slots, from the oldest on, are missed. *ret_caught_up: the catch-up
 * policy is 'all', so the others run one after another. Pure; called on the store thread inside the
 * transaction.
 */
typedef size_t late_fn(const struct late_job *late, usec_t now, bool *ret_caught_up, void *arg);

struct op_late {
	struct op op;
	usec_t since, now;   /* slots after 'since' and up to 'now' passed unattended */
	int64_t after;       /* cursor: jobs up to this id were handled */
	bool set_back;       /* the clock was set back: runs beyond the look-ahead are planned again */
	late_fn *fn;
	void *fn_arg;
	/* results */
	size_t missed;       /* runs that were skipped */
	size_t undone;       /* runs that are planned again */
	int64_t more;        /* the next 'after'; 0: all jobs were handled */
};
OP_DEFINE(late_runs, late, OP_LATE, OP_LATE)
