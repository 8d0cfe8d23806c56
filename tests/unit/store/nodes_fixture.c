/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of several nodes share. */
#include "unit/store/nodes_fixture.h"
#include "base/text.h"

void open_node(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_node_open(node, name, "spawner-of-it");

	op->node_open.ttl = TTL;
	assert_true(apply_one(s, op));
}

struct op *op_lease(const char *node, const char *name, bool stands)
{
	struct op *op = op_new(OP_LEASE, NULL, NULL);

	op->lease = (struct op_lease){.node = node, .name = name, .ttl = TTL, .stands = stands, .guarded = true};
	return op;
}

int64_t renew(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_lease(node, name, true);

	assert_true(apply_one(s, op));
	return op->lease.leads ? op->lease.term : 0;
}

struct op *op_lead(const char *node, int64_t term)
{
	struct op *op = op_new(OP_LEAD, NULL, NULL);

	op->lead = (struct op_lead){.node = node, .term = term, .now = T0 + USEC_SEC};
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

	op->plan = (struct op_plan){.node = node, .now = T0, .horizon = T0 + 5 * USEC_SEC, .limit = 1000, .fn = once};
	return op;
}

struct run *run_elsewhere(struct store *s)
{
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *start = NULL;

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	claim->claim.node = OTHER;
	assert_true(apply_one(s, claim));
	assert_int_equal(claim->claim.claimed.n, 1);
	start = op_started(claim->claim.claimed.v[0].run, T0 + 1);
	start->started.node = OTHER;
	assert_true(apply_one(s, start));
	return STEAL(claim->claim.claimed.v[0].run);
}
