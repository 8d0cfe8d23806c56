/* SPDX-License-Identifier: Apache-2.0 */
/* Failpoints around batch commits, by the operations of the batch; test builds only. */
#include "store/ops/batch_failpoints.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "core/job/run.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/runs.h"

static bool always(const struct op *op)
{
	(void)op;
	return true;
}

static bool planned_runs(const struct op *op)
{
	return plan_op(op)->runs > 0;
}

static bool claimed_runs(const struct op *op)
{
	return claim_op(op)->claimed.n > 0;
}

static bool is_retry(const struct op *op)
{
	return run_ended_op(op)->became == RUN_QUEUED && run_ended_op(op)->failure;
}

static bool is_dead(const struct op *op)
{
	return run_ended_op(op)->dead;
}

static bool is_lost(const struct op *op)
{
	return run_ended_op(op)->lost;
}

static bool took_leader_lease(const struct op *op)
{
	return lease_op(op)->took;
}

static bool reaped_nodes(const struct op *op)
{
	return leader_op(op)->dead > 0;
}

static bool moved(const struct op *op)
{
	return leader_op(op)->moved > 0;
}

static const struct {
	enum op_kind kind;
	bool (*when)(const struct op *op);
	int pre, post; /* failpoints; -1: none */
} table[] = {
	{OP_JOB_ADD, always, FP_SUBMIT_PRE, FP_SUBMIT_POST},
	{OP_JOB_BULK, always, FP_SUBMIT_PRE, FP_SUBMIT_POST},
	{OP_JOB_APPLY, always, FP_SUBMIT_PRE, FP_SUBMIT_POST},
	{OP_TRIGGER, always, FP_SUBMIT_PRE, FP_SUBMIT_POST},
	{OP_PLAN, planned_runs, FP_MAT_PRE, FP_MAT_POST},
	{OP_CLAIM, claimed_runs, FP_GRANT_PRE, FP_GRANT_POST},
	{OP_STARTED, always, FP_START_PRE, FP_START_POST},
	{OP_ENDED, always, FP_RESULT_PRE, FP_RESULT_POST},
	{OP_ENDED, is_retry, FP_RETRY_PRE, FP_RETRY_POST},
	{OP_ENDED, is_dead, FP_DEAD_PRE, FP_DEAD_POST},
	{OP_ENDED, is_lost, FP_LOST_PRE, FP_LOST_POST},
	{OP_GIVE_BACK, always, FP_GIVE_BACK_PRE, FP_GIVE_BACK_POST},
	{OP_JOB_CANCEL, always, FP_CANCEL_PRE, FP_CANCEL_POST},
	{OP_RUN_CANCEL, always, FP_CANCEL_PRE, FP_CANCEL_POST},
	{OP_JOB_REMOVE, always, FP_DELETE_PRE, FP_DELETE_POST},
	{OP_PRUNE, always, FP_PRUNE_PRE, FP_PRUNE_POST},
	{OP_LEASE, always, FP_RENEW_PRE, FP_RENEW_POST},
	{OP_LEASE, took_leader_lease, -1, FP_LEAD_TAKEN},
	{OP_LEAD, reaped_nodes, FP_REAP_PRE, FP_REAP_POST},
	{OP_LEAD, moved, FP_SPREAD_PRE, FP_SPREAD_POST},
	{OP_NODE_OPEN, always, FP_ADOPT_PRE, FP_ADOPT_POST},
	{OP_NODE_CLOSE, always, FP_LEAVE_PRE, FP_LEAVE_POST},
};

static bool failpoint_concerns(struct op *const *ops, size_t n, size_t row)
{
	for (size_t i = 0; i < n; i++)
		if (ops[i]->ok && ops[i]->kind == table[row].kind && table[row].when(ops[i]))
			return true;
	return false;
}

/* Each row acts once per batch. An error after the commit becomes ERR_UNCERTAIN. */
bool batch_failpoints(struct op *const *ops, size_t n, bool committed, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; i < ELEMENTS(table); i++) {
		int point = committed ? table[i].post : table[i].pre;

		if (point >= 0 && failpoint_concerns(ops, n, i))
			ok = failpoint_ok((enum failpoint)point, e) && ok;
	}
	if (!ok && committed)
		e->kind = ERR_UNCERTAIN;
	return ok;
}
