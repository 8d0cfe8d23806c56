/* SPDX-License-Identifier: Apache-2.0 */
/* Turns due slots into runs. */
#pragma once
#include "core/job/policy.h"
#include "core/job/run.h"
#include "store/ops/op.h"
#include <stddef.h>
#include <stdint.h>

struct store;

/* The planner's decision for one row of 'due'. Slots ascend. */
struct planned {
	struct planned_run {
		enum run_state state;     /* RUN_QUEUED, or RUN_SKIPPED for missed slots */
		usec_t slot, slot_last;
		int64_t slot_count;
		usec_t due_at;
		const char *reason;       /* static text, or NULL */
		bool caught_up;           /* the slot passed earlier; the run waits for the run before it */
	} *runs;                          /* owned; see plan_run_add */
	size_t n;
	struct start_policy policy;       /* of these runs */
	usec_t next_slot;                 /* 0: the schedule has ended; USEC_NEVER: waits for a run's end or a boot */
	const char *suspend;              /* static text: why the job is suspended; NULL: it is not */
	int64_t steps;                    /* slots that may be examined in this round; reduced by those that were */
	bool later;                       /* the steps did not suffice: the row is left for the next round */
};
void plan_run_add(struct planned *p, const struct planned_run *run);

struct due_job {
	int64_t job, revision;
	const char *name; /* NULL: none */
	const char *spec; /* JSON */
	usec_t slot;      /* its next slot, before the horizon */
	usec_t created_at;
};
/* Pure; called on the store thread inside the transaction. */
typedef void plan_fn(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg);

struct op_plan {
	struct op op;
	const char *node;    /* borrowed: this engine, which plans its segments; NULL: all segments, without a lease */
	usec_t now, horizon;
	size_t limit;        /* rows of 'due' in this round */
	int64_t steps;       /* slots that may be examined in all, which bounds the duration of the transaction */
	plan_fn *fn;
	void *fn_arg;
	/* results */
	size_t jobs, runs;   /* rows of 'due' that were handled, runs that were added */
};
OP_DEFINE(plan, plan, OP_PLAN, OP_PLAN)
