/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests with several nodes. */
#include "base/text.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/runs.h"
#include "unit/store/nodes_fixture.h"

void open_node(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_node_open(node, name, "spawner-of-it");

	node_open_op(op)->ttl = TTL;
	assert_true(apply_one(s, op));
}

struct op *op_lease(const char *node, const char *name, bool stands)
{
	struct op *op = op_new(OP_LEASE, NULL, NULL);

	op_fill(lease_op(op), .node = node, .name = name, .ttl = TTL, .stands = stands, .guarded = true);
	return op;
}

int64_t renew(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_lease(node, name, true);

	assert_true(apply_one(s, op));
	return lease_op(op)->leads ? lease_op(op)->term : 0;
}

struct op *op_lead(const char *node, int64_t term)
{
	struct op *op = op_new(OP_LEAD, NULL, NULL);

	op_fill(leader_op(op), .node = node, .term = term, .now = T0 + USEC_SEC);
	return op;
}

void lead_once(struct store *s, const char *node, int64_t term)
{
	AUTO(op) *op = op_lead(node, term);

	assert_true(apply_one(s, op));
}

void lease_ends(const char *where, const char *node)
{
	AUTO_TEXT sql = xprintf("UPDATE nodes SET alive_until = 1, runs_until = 1 WHERE id = '%s'", node);

	place_query(where, sql, NULL);
}

void leader_lease_ends(const char *where)
{
	place_query(where, "UPDATE leases SET until = 1", NULL);
}

static void once(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot, .due_at = due->slot});
	ret->next_slot = due->slot + USEC_DAY;
}

struct op *op_plan_on(const char *node)
{
	struct op *op = op_new(OP_PLAN, NULL, NULL);

	op_fill(plan_op(op), .node = node, .now = T0, .horizon = T0 + 5 * USEC_SEC, .limit = 1000, .fn = once);
	return op;
}

struct run *run_elsewhere(struct store *s)
{
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *start = NULL;

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	claim_op(claim)->node = OTHER;
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	start = op_started(claim_op(claim)->claimed.v[0].run, T0 + 1);
	run_started_op(start)->node = OTHER;
	assert_true(apply_one(s, start));
	return STEAL(claim_op(claim)->claimed.v[0].run);
}
