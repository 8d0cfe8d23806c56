/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels runs. */
#include "store/ops/run/run_cancel.h"
#include "base/err.h"
#include "core/job/event.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/op_private.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"

bool run_cancel_queued(struct store *s, struct set *set, const char *reason, usec_t now, int64_t *ret_n,
	struct err *e)
{
	AUTO_QUERY q = {};

	*ret_n = 0;
	if (set->n == 0)
		return true;
	q = query_start(s->db, Q_RUNS_CANCEL_QUEUED, e);
	set_bind(&q, set);
	query_text(&q, reason);
	query_int(&q, now);
	while (query_row(&q)) {
		query_get_int(&q);
		counter_move(s, COUNT_RUNS, RUN_QUEUED, RUN_CANCELLED, query_get_text(&q));
		counter_slots(s, RUN_CANCELLED, reason, 1);
		++*ret_n;
	}
	return !q.failed;
}

static bool run_cancel_one(struct store *s, struct op *op, struct err *e)
{
	struct op_run_cancel *c = run_cancel_op(op);
	AUTO_SET run = {};
	AUTO_SET job = {};
	int64_t n;

	set_id(&run, c->id);
	set_id(&job, c->run->job);
	if (!run_cancel_queued(s, &run, "cancelled", c->now, &n, e) || !set_execute(s, Q_RUNS_ASK_CANCEL, &run, e) ||
	    (n > 0 && !job_finish_idle(s, set_json(&job), c->now, NULL, e)))
		return false;
	event_add(s, &(struct event_new){.at = c->now, .by = &op->act.by, .what = EVENT_RUN_CANCEL,
		.object = c->run->job_name, .job = c->run->job, .run = c->id, .owner = c->run->uid,
		.detail = n > 0 ? NULL : "asked to end"});
	run_free(STEAL(c->run));
	return row_run_read(s, c->uid, c->id, &c->run, e);
}

/*
 * Reads the run. Its job is locked with the batch, unless the run was added after that. Then the
 * job is locked here if no other batch has it; waiting for it now could end in a deadlock.
 */
static bool cancel_read(struct store *s, struct op_run_cancel *c, struct err *e)
{
	AUTO_QUERY job = query_start(s->db, Q_RUN_JOB_LOCK, e);

	query_int(&job, c->id);
	if (!query_ahead(&job) || !row_run_read(s, c->uid, c->id, &c->run, e))
		return false;
	if (s->writers_lock != WRITERS_SHARED || !c->run || run_state_final(c->run->state) || query_row(&job))
		return true;
	return !job.failed && batch_needs_exclusive(s, e);
}

bool run_cancel_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_run_cancel *c = run_cancel_op(ops[i]);

		if (!cancel_read(s, c, e))
			return false;
		if (!c->run) {
			op_refuse(ops[i], ERR_NOT_FOUND, "no run %lld", (long long)c->id);
			continue;
		}
		c->was_final = run_state_final(c->run->state);
		if (!c->was_final && !run_cancel_one(s, ops[i], e))
			return false;
	}
	return true;
}

void run_cancel_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)jobs;
	set_id(runs, run_cancel_op(op)->id);
}

void run_cancel_reset(struct op *op)
{
	struct op_run_cancel *c = run_cancel_op(op);

	run_free(STEAL(c->run));
	c->was_final = false;
}
