/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that a batch has locked until its commit. */
#pragma once
#include "base/clock.h"
#include "base/map.h"
#include "core/job/job.h"
#include "core/job/run.h"

struct err;
struct op;
struct query;
struct set;
struct store;

struct locked_run {
	int64_t id, job, uid, fence;
	enum run_state state;
	char *node, *queue, *reason;
	bool cancel_asked;
	const struct op *ended_by; /* the operation of this group that ended it; NULL: none */
	enum job_state job_state;
	usec_t slot;   /* slot_last */
	bool notifies;
	bool chained;  /* another job may run after this one */
	usec_t slot_first;
};
struct locked_runs {
	struct locked_run *v;
	size_t n;
	struct map by_id;
};
void locked_runs_done(struct locked_runs *l);
bool locked_runs_lock(struct store *s, struct set *ids, struct locked_runs *l, struct err *e);
bool locked_runs_take(struct query *q, size_t most, struct locked_runs *l); /* from the rows of runs_lock */

bool locked_run_is_ours(const struct locked_run *h, int64_t fence, const char *node);
/* A run is not queued again if its job was cancelled or its end was requested. */
bool locked_run_may_requeue(const struct locked_run *h);
