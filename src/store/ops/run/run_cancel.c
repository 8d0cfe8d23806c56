/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels runs. */
#include "store/ops/run/run_cancel.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/run.h"
#include "store/counters.h"
#include "store/events.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/op_private.h"
#include "store/prefetch.h"
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

static bool cancel_write(struct store *s, const struct op_run_cancel *c, int64_t *ret_n, struct err *e)
{
	AUTO_SET run = {};
	AUTO_SET job = {};

	set_id(&run, c->id);
	set_id(&job, c->run->job);
	return run_cancel_queued(s, &run, "cancelled", c->now, ret_n, e) && set_execute(s, Q_RUNS_ASK_CANCEL, &run, e) &&
	       (*ret_n == 0 || job_finish_idle(s, set_json(&job), c->now, NULL, e));
}

static struct query job_facts_query(struct store *s, struct set *run, struct err *e)
{
	struct query q = query_start(s->db, Q_ENDS_FACTS, e);

	query_text(&q, set_json(run));
	return q;
}

/* Cancels the queued run, and finishes its job if that is idle then. Fails if it is not queued. */
static bool cancel_queued_known(struct store *s, const struct op_run_cancel *c, struct set *run, struct err *e)
{
	AUTO_DONE(map) finished = {};
	AUTO_SET job = {};
	AUTO_QUERY q = query_start(s->db, Q_RUNS_CANCEL_ALL, e);
	AUTO_QUERY facts = job_facts_query(s, run, e);

	query_text(&q, set_json(run));
	query_text(&q, "cancelled");
	query_int(&q, c->now);
	query_int(&q, 1);
	counter_move(s, COUNT_RUNS, RUN_QUEUED, RUN_CANCELLED, c->run->queue);
	counter_slots(s, RUN_CANCELLED, "cancelled", 1);
	set_id(&job, c->run->job);
	return query_ahead(&facts) && query_finish(&q) &&
	       job_finish_known(s, set_json(&job), c->now, &facts, &(struct map){}, &finished, e);
}

/* The same as cancel_write() without waiting for replies: the job is locked, so the run stays as it was read. */
static bool cancel_write_known(struct store *s, const struct op_run_cancel *c, int64_t *ret_n, struct err *e)
{
	AUTO_SET run = {};

	set_id(&run, c->id);
	*ret_n = c->run->state == RUN_QUEUED;
	return *ret_n ? cancel_queued_known(s, c, &run, e) : set_execute(s, Q_RUNS_ASK_CANCEL, &run, e);
}

/* Gives the run that was read the changes that were written. */
static void run_update(struct run *r, bool cancelled, usec_t now)
{
	if (!cancelled) {
		r->cancel_asked = true;
		return;
	}
	r->state = RUN_CANCELLED;
	free(r->reason);
	r->reason = xstrdup("cancelled");
	r->ended_at = now;
	r->hold = HOLD_NONE;
}

static bool run_cancel_one(struct store *s, struct op *op, struct err *e)
{
	struct op_run_cancel *c = run_cancel_op(op);
	int64_t n;

	if (!(s->db->defer ? cancel_write_known : cancel_write)(s, c, &n, e))
		return false;
	event_add(s, &(struct event_new){.at = c->now, .by = &op->act.by, .what = EVENT_RUN_CANCEL,
		.object = c->run->job_name, .job = c->run->job, .run = c->id, .owner = c->run->uid,
		.detail = n > 0 ? NULL : "asked to end"});
	run_update(c->run, n > 0, c->now);
	return true;
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

/* The job is known only now, so an earlier operation of the batch may have written it after the run was read. */
static bool cancel_read_again(struct store *s, struct op_run_cancel *c, struct err *e)
{
	if (!c->run || !prefetch_job(s, c->run->job))
		return true;
	run_free(STEAL(c->run));
	return cancel_read(s, c, e);
}

bool run_cancel_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_run_cancel *c = run_cancel_op(ops[i]);

		if (!cancel_read(s, c, e) || !cancel_read_again(s, c, e))
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

bool run_cancel_prefetch(struct store *s, const struct op *op, struct err *e)
{
	const struct op_run_cancel *c = run_cancel_op(op);
	AUTO_SET run = {};
	AUTO_QUERY job = query_start(s->db, Q_RUN_JOB_LOCK, e);
	AUTO_QUERY facts = {};

	query_int(&job, c->id);
	set_id(&run, c->id);
	facts = job_facts_query(s, &run, e);
	return query_prefetch(&job) && row_run_prefetch(s, c->uid, c->id, e) && query_prefetch(&facts);
}

void run_cancel_reset(struct op *op)
{
	struct op_run_cancel *c = run_cancel_op(op);

	run_free(STEAL(c->run));
	c->was_final = false;
}
