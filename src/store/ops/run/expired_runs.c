/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expires queued runs after the last time at which they may start, whether or not something holds
 * them back.
 */
#include "store/ops/run/expired_runs.h"
#include "core/decide/claim.h"
#include "core/job/run.h"
#include "store/ops/job/job_finish.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "store/set.h"
#include "store/store_private.h"

/*
 * Runs per transaction; the next transaction follows at once. Other operations wait for it, so it is
 * short at first. While more runs are late than one transaction ends, it grows up to the number of
 * slots that a transaction plans, so that planning does not outrun it.
 */
#define STEP_MIN 500
#define STEP_MAX 4000
#define LOOK_AGAIN (10 * USEC_MSEC) /* after a step that found all jobs of late runs locked */

static const char *hold_reason(const struct store *s, const char *reason, const char *queue, int64_t uid, usec_t due_at)
{
	return reason ? reason : claim_lane_closed_at(s, queue, uid) >= due_at ? "limit" : NULL;
}

/*
 * In a shared batch the jobs are locked first. Runs of jobs that another batch has locked are left
 * to a later step.
 */
static struct query expired_runs_start(struct store *s, const struct op_expire *o, struct query *hold, struct err *e)
{
	bool shared = s->writers_lock == WRITERS_SHARED;
	struct query q = query_start(s->db, shared ? Q_RUNS_EXPIRED : Q_RUNS_TOO_LATE, e);

	query_int(&q, o->now);
	if (!shared) {
		query_int(&q, s->expiry_step);
		return q;
	}
	*hold = query_start(s->db, Q_RUNS_EXPIRED_HOLD, e);
	query_int(hold, o->now);
	query_int(hold, s->expiry_step);
	q.failed = !query_ahead(hold) || !query_ahead(&q) || !query_finish(hold);
	return q;
}

static void step_adapt(struct store *s, size_t found)
{
	bool full = found >= (size_t)s->expiry_step;

	s->expiry_step = !full ? STEP_MIN : s->expiry_step < STEP_MAX ? s->expiry_step * 2 : STEP_MAX;
}

static bool expired_runs_find(struct store *s, const struct op_expire *o, struct set *ret, struct err *e)
{
	AUTO_QUERY hold = {};
	AUTO_QUERY q = expired_runs_start(s, o, &hold, e);

	while (query_row(&q)) {
		struct start_policy policy = {};
		AUTO_TEXT queue = NULL;
		int64_t run, uid, attempt;
		usec_t slot, due_at;
		bool expires;

		run = query_get_int(&q);
		uid = query_get_int(&q);
		queue = query_get_copy(&q);
		slot = query_get_int(&q);
		due_at = query_get_int(&q);
		attempt = query_get_int(&q);
		policy.deadline = query_get_int(&q);
		policy.expires = query_get_int(&q);
		claim_last_start(&policy, slot, attempt, &expires);
		runs_describe_end(ret, run, RUN_EXPIRED, claim_expiry_reason(hold_reason(s, query_get_text(&q), queue, uid, due_at), expires));
	}
	return !q.failed;
}

bool expired_runs_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_expire *o = expired_runs_op(ops[i]);
		AUTO_SET runs = {};
		AUTO_SET jobs = {};

		if (s->expiry_step == 0)
			s->expiry_step = STEP_MIN;
		if (!expired_runs_find(s, o, &runs, e))
			return false;
		step_adapt(s, runs.n);
		s->expiry_after = runs.n > 0 ? 0 : o->now + LOOK_AGAIN;
		if (!runs_end_queued(s, &runs, o->now, &o->expired, &jobs, e) ||
		    (jobs.n > 0 && !job_finish_idle(s, set_json(&jobs), o->now, NULL, e)))
			return false;
	}
	return true;
}

void expired_runs_reset(struct op *op)
{
	run_changes_done(&expired_runs_op(op)->expired);
}
