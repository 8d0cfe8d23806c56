/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes old history in small steps. */
#include "store/ops/retention.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job/job.h"
#include "store/counters.h"
#include "store/ops/notices.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/ops/run/run_states.h"
#include "store/read/prune_candidates.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"

#define EVENTS_STEP 500

static void describe_ids(struct set *set, const int64_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		set_id(set, ids[i]);
}

/* Deletes runs or jobs and decreases their counters. */
static bool delete_counted(struct store *s, int query, enum count_what what, struct set *set, int64_t *ret_n, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, query, e);
	set_bind(&q, set);
	while (query_row(&q)) {
		int64_t state, uid;

		query_get_int(&q);
		state = query_get_int(&q);
		counter_change(s, what, state, query_get_text(&q), -1);
		uid = query_get_int(&q);
		owner_quota_add(s, uid, -query_get_int(&q));
		if (query_get_int(&q))
			counter_change(s, COUNT_DEAD, 0, "", -1);
		++*ret_n;
	}
	return !q.failed;
}

static bool delete_attempts(struct store *s, struct op_prune *p, struct set *runs, struct err *e)
{
	AUTO_QUERY q = {};

	if (runs->n == 0)
		return true;
	q = query_start(s->db, Q_ATTEMPTS_PRUNE, e);
	set_bind(&q, runs);
	while (query_row(&q)) {
		struct kept_output o = {};

		o.run = query_get_int(&q);
		o.attempt = query_get_int(&q);
		o.bytes = query_get_int(&q);
		o.uid = query_get_int(&q);
		if (o.bytes <= 0)
			continue;
		counter_change(s, COUNT_OUTPUT, o.uid, "", -o.bytes);
		p->outputs = xgrow(p->outputs, p->n_outputs, sizeof(*p->outputs));
		p->outputs[p->n_outputs++] = o;
	}
	return !q.failed;
}

static bool delete_events(struct store *s, struct op_prune *p, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_EVENTS_PRUNE, e);

	query_int(&q, p->events_before);
	query_int(&q, EVENTS_STEP);
	while (query_row(&q)) {
		query_get_int(&q);
		p->events++;
	}
	return !q.failed;
}

static bool delete_sized(struct store *s, int query, struct set *set, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, query, e);
	set_bind(&q, set);
	return owner_quota_subtract_rows(s, &q);
}

static bool retention_prune(struct store *s, struct op_prune *p, struct err *e)
{
	static const int of_jobs[] = {Q_TAGS_PRUNE, Q_JOB_PAUSES_PRUNE, Q_HEALTH_PRUNE, Q_BUCKETS_PRUNE, Q_CHAINS_PRUNE};
	AUTO_SET runs = {};
	AUTO_SET jobs = {};

	describe_ids(&runs, p->list->runs, p->list->n_runs);
	describe_ids(&jobs, p->list->jobs, p->list->n_jobs);
	if (!set_execute(s, Q_PROGRESS_PRUNE, &runs, e) || !run_states_sweep(s, e) ||
	    !delete_sized(s, Q_RUN_STATES_PRUNE, &runs, e))
		return false;
	/* attempts, tails and revisions first: the row of the run or job has their owner */
	if (!delete_attempts(s, p, &runs, e) || !delete_sized(s, Q_OUTPUTS_PRUNE, &runs, e) ||
	    !delete_sized(s, Q_RESULTS_PRUNE, &runs, e) ||
	    !delete_counted(s, Q_RUNS_PRUNE, COUNT_RUNS, &runs, &p->runs, e) || !delete_sized(s, Q_REVISIONS_PRUNE, &jobs, e) ||
	    !delete_counted(s, Q_JOBS_PRUNE, COUNT_JOBS, &jobs, &p->jobs, e) || !notices_prune(s, &jobs, e))
		return false;
	for (size_t i = 0; i < ELEMENTS(of_jobs); i++)
		if (!set_execute(s, of_jobs[i], &jobs, e))
			return false;
	return delete_events(s, p, e);
}

bool retention_prune_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!retention_prune(s, retention_prune_op(ops[i]), e))
			return false;
	return true;
}

bool retention_forget_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	AUTO_SET set = {};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < retention_forget_op(ops[i])->n; k++) {
			const struct kept_output *o = &retention_forget_op(ops[i])->v[k];

			set_item(&set);
			set_int(&set, "run", o->run);
			set_int(&set, "fence", o->fence);
			counter_change(s, COUNT_OUTPUT, o->uid, "", -o->bytes);
		}
	return set_execute(s, Q_OUTPUTS_FORGET, &set, e);
}

void retention_prune_reset(struct op *op)
{
	struct op_prune *p = retention_prune_op(op);

	free(STEAL(p->outputs));
	p->n_outputs = 0;
	p->runs = p->jobs = p->events = 0;
}

void retention_prune_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	const struct op_prune *p = retention_prune_op(op);

	describe_ids(jobs, p->list->jobs, p->list->n_jobs);
	describe_ids(runs, p->list->runs, p->list->n_runs);
}

void retention_forget_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	const struct op_forget *o = retention_forget_op(op);

	(void)jobs;
	for (size_t i = 0; i < o->n; i++)
		set_id(runs, o->v[i].run);
}
