/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of node leases: what a node without a lease is refused, when it is reaped, how it returns. */
#include "base/buf.h"
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_nodes.h"
#include "store/read/single.h"
#include "unit/store/nodes_fixture.h"

static void without_a_lease_nothing_is_claimed_or_planned(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(5, T0);
	AUTO(op) *plan = op_plan_on(NODE);

	add_job(s, NULL);
	add_due(s, NULL, T0);
	lead_once(s, NODE, renew(s, NODE, "one"));
	lease_ends(where_of(state), NODE);
	assert_false(apply_one(s, claim));
	assert_int_equal(claim->err.kind, ERR_FENCED);
	assert_false(apply_one(s, plan));
	assert_int_equal(plan->err.kind, ERR_FENCED);
	assert_int_equal(renew(s, NODE, "one"), 1); /* it was not reaped meanwhile */
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, 1);
}

/* The spawner of a single node has no deadline; with other nodes it must have one. */
static void those_without_a_lease_are_no_company(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *before = op_lease(NODE, "one", true);
	AUTO(op) *after = op_lease(NODE, "one", true);
	AUTO(op) *left = op_lease(NODE, "one", true);
	AUTO(op) *close = op_new(OP_NODE_CLOSE, NULL, NULL);

	open_node(s, OTHER, "two");
	open_node(s, "node-three-engine", "three");
	assert_true(apply_one(s, before));
	assert_int_equal(lease_op(before)->others, 2);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, after));
	assert_int_equal(lease_op(after)->others, 1);
	op_fill(node_close_op(close), .node = "node-three-engine", .now = T0);
	assert_true(apply_one(s, close));
	assert_true(apply_one(s, left));
	assert_int_equal(lease_op(left)->others, 0);
}

static void a_node_is_given_up_only_after_its_lease(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *early = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);
	AUTO(run) *ours = NULL;

	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(renew(s, OTHER, "two"), 0);
	assert_true(apply_one(s, early));
	assert_int_equal(leader_op(early)->dead, 0);
	assert_int_equal(leader_op(early)->live, 2);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, late));
	assert_int_equal(leader_op(late)->dead, 1);
	assert_int_equal(leader_op(late)->live, 1);
	assert_int_equal(leader_op(late)->lost.n, 1);
	assert_int_equal(leader_op(late)->lost.v[0].run->id, run->id);
	ours = get_run(s, run->id);
	assert_string_equal(ours->node, NODE);
	assert_string_equal(ours->node_name, "one"); /* shown in lists */
	assert_int_equal(ours->fence, run->fence);
	assert_counts_true(s);
}

static void a_node_without_a_guard_is_waited_for_longer(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *early = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);

	assert_int_equal(renew(s, NODE, "one"), 1);
	leader_op(early)->unguarded_wait = TTL;
	place_query(where_of(state), "UPDATE nodes SET alive_until = alive_until - 61000000, runs_until = runs_until - 61000000, guarded = 0 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, early));
	assert_int_equal(leader_op(early)->dead, 0);
	assert_true(apply_one(s, late));
	assert_int_equal(leader_op(late)->dead, 1);
}

static void runs_are_given_up_after_the_run_lease_and_not_before(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *lease = op_lease(OTHER, "two", false);
	AUTO(op) *early = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);
	AUTO(op) *claim = op_claim(1, T0 + 2);

	lease_op(lease)->run_ttl = 2 * TTL;
	assert_true(apply_one(s, lease));
	assert_int_equal(renew(s, NODE, "one"), 1);
	place_query(where_of(state), "UPDATE nodes SET alive_until = 1 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, early));
	assert_int_equal(leader_op(early)->dead, 0);
	assert_int_equal(leader_op(early)->live, 1); /* so it plans nothing ... */
	assert_int_equal(leader_op(early)->lost.n, 0);
	claim_op(claim)->node = OTHER;
	assert_false(apply_one(s, claim)); /* ... and starts nothing */
	place_query(where_of(state), "UPDATE nodes SET runs_until = runs_until - 121000000 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, late));
	assert_int_equal(leader_op(late)->dead, 1);
	assert_int_equal(leader_op(late)->lost.n, 1);
	assert_int_equal(leader_op(late)->lost.v[0].run->id, run->id);
}

static struct op *op_close_holding(int64_t run, bool guarded)
{
	struct op *op = op_new(OP_NODE_CLOSE, NULL, NULL);

	op_fill(node_close_op(op), .node = OTHER, .now = T0, .guarded = guarded, .run_ttl = TTL);
	node_close_op(op)->held = xcalloc(1, sizeof(*node_close_op(op)->held));
	node_close_op(op)->held[0] = run;
	node_close_op(op)->n_held = run != 0;
	return op;
}

static void a_node_that_left_is_waited_for_only_with_what_its_spawner_holds(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *close = op_close_holding(run->id, true);
	AUTO(op) *soon = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);

	add_job(s, NULL);
	claim_op(claim)->node = OTHER;
	assert_true(apply_one(s, claim)); /* claimed but not started */
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_true(apply_one(s, close));
	assert_true(apply_one(s, soon));
	assert_int_equal(leader_op(soon)->lost.n, 1);
	assert_int_equal(leader_op(soon)->lost.v[0].run->id, claim_op(claim)->claimed.v[0].run->id);
	assert_int_equal(leader_op(soon)->dead, 0);
	place_query(where_of(state), "UPDATE nodes SET runs_until = 1 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, late));
	assert_int_equal(leader_op(late)->lost.n, 1);
	assert_int_equal(leader_op(late)->lost.v[0].run->id, run->id);
	assert_counts_true(s);
}

static void a_node_that_left_without_a_deadline_is_waited_for_longer(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *close = op_close_holding(run->id, false);
	AUTO(op) *soon = op_lead(NODE, 1);

	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_true(apply_one(s, close));
	place_query(where_of(state), "UPDATE nodes SET runs_until = 1 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, soon));
	assert_int_equal(leader_op(soon)->lost.n, 0);
}

static void a_leader_does_not_give_itself_up(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);

	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), NODE);
	assert_true(apply_one(s, lead));
	assert_int_equal(leader_op(lead)->dead, 0);
}

static void whom_the_leader_spares_lives(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, OTHER, "two"), 1);
	leader_lease_ends(where_of(state));
	leader_op(lead)->term = renew(s, NODE, "one");
	lease_ends(where_of(state), OTHER);
	leader_op(lead)->spares = true;
	assert_true(apply_one(s, lead));
	assert_int_equal(leader_op(lead)->dead, 0);
	assert_int_equal(renew(s, OTHER, "two"), 0);
}

static void a_lost_node_renews_nothing_and_its_late_end_is_stale(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *lost = NULL;
	AUTO(op) *late = NULL;
	AUTO(op) *lease = op_lease(OTHER, "two", true);
	AUTO(run) *ours = NULL;
	AUTO_DONE(attempt_list) attempts = {};
	struct err e = {};

	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(renew(s, OTHER, "two"), 0);
	lease_ends(where_of(state), OTHER);
	lead_once(s, NODE, 1);
	assert_false(apply_one(s, lease));
	assert_int_equal(lease->err.kind, ERR_FENCED);
	assert_false(lease_op(lease)->displaced);
	lost = op_ended(run, ATTEMPT_LOST, T0 + 5);
	assert_true(apply_one(s, lost));
	assert_int_equal(run_ended_op(lost)->became, RUN_QUEUED);
	late = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 9);
	run_ended_op(late)->node = OTHER;
	assert_true(apply_one(s, late));
	assert_true(run_ended_op(late)->stale);
	ours = get_run(s, run->id);
	assert_int_equal(ours->state, RUN_QUEUED);
	assert_true(store_attempts(s, run->id, &attempts, &e));
	assert_int_equal(attempts.n, 1);
	assert_int_equal(attempts.v[0]->outcome, ATTEMPT_STALE);
	assert_counts_true(s);
}

/* The fence does not change until the run is claimed again, so the node is compared as well. */
static void a_lost_node_starts_none_of_its_claimed_runs(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(op) *back = op_new(OP_GIVE_BACK, NULL, NULL);
	AUTO(op) *start = NULL;
	AUTO(run) *now = NULL;

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	claim_op(claim)->node = OTHER;
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, lead));
	assert_int_equal(leader_op(lead)->lost.n, 1);
	start = op_started(claim_op(claim)->claimed.v[0].run, T0 + 1);
	run_started_op(start)->node = OTHER;
	assert_false(apply_one(s, start));
	assert_int_equal(start->err.kind, ERR_FENCED);
	op_fill(run_give_back_op(back), .node = OTHER, .run = run_started_op(start)->run, .fence = 1, .due_at = T0, .now = T0);
	assert_false(apply_one(s, back));
	assert_int_equal(back->err.kind, ERR_FENCED);
	now = get_run(s, run_started_op(start)->run);
	assert_int_equal(now->state, RUN_CLAIMED);
	assert_string_equal(now->node, NODE);
	assert_counts_true(s);
}

static void runs_of_a_dead_node_are_counted_on_their_new_node(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO_DONE(buf) rows = {};

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	claim_op(claim)->node = OTHER;
	assert_true(apply_one(s, claim));
	open_node(s, NODE, "one"); /* this connection counts as node 'one' from now on */
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, lead));
	assert_int_equal(leader_op(lead)->lost.n, 1);
	place_query(where_of(state), "SELECT node, n FROM counters WHERE what = 3 AND n <> 0", &rows);
	assert_string_equal(rows.data, "one|1|\n");
}

static void a_node_that_left_is_waited_for_but_not_forever(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *leave = op_close_holding(run->id, false);
	AUTO(op) *soon = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);

	assert_true(apply_one(s, leave));
	assert_int_equal(renew(s, NODE, "one"), 1);
	leader_op(soon)->away_before = T0 - USEC_HOUR;
	assert_true(apply_one(s, soon));
	assert_int_equal(leader_op(soon)->lost.n, 0);
	leader_op(late)->away_before = T0 + USEC_HOUR;
	assert_true(apply_one(s, late));
	assert_int_equal(leader_op(late)->lost.n, 1);
	assert_counts_true(s);
}

static void a_node_that_was_given_up_can_come_back(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(renew(s, OTHER, "two"), 0);
	lease_ends(where_of(state), OTHER);
	lead_once(s, NODE, 1);
	claim_op(claim)->node = OTHER;
	assert_false(apply_one(s, claim));
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, OTHER, "two"), 0);
	add_job(s, NULL);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
}

/* As after reconnecting to a spawner. The engine relies on its current lease and must not be reaped before it ends. */
static void a_reopened_node_keeps_the_longer_lease_and_learns_of_its_loss(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *shorter = op_node_open(OTHER, "two", "spawner-two");
	AUTO(op) *again = op_node_open(OTHER, "two", "spawner-two");
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(run) *run = run_elsewhere(s);
	AUTO_DONE(node_list) l = {};
	struct err e = {};

	node_open_op(shorter)->ttl = node_open_op(again)->ttl = TTL / 4;
	assert_true(apply_one(s, shorter));
	assert_false(node_open_op(shorter)->given_up);
	assert_int_equal(node_open_op(shorter)->same_spawner.n + node_open_op(shorter)->other_spawner.n, 0); /* the engine still has them */
	assert_true(list_nodes_open(s, &l, &e));
	assert_int_equal(l.n, 2);
	assert_in_range(l.v[1].lease_remains, TTL / 2, TTL);
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, lead));
	assert_int_equal(leader_op(lead)->dead, 1);
	assert_true(apply_one(s, again));
	assert_true(node_open_op(again)->given_up);
	assert_int_equal(node_open_op(again)->same_spawner.n + node_open_op(again)->other_spawner.n, 0);
	node_list_done(&l);
	assert_true(list_nodes_open(s, &l, &e));
	assert_int_equal(l.n, 2);
	assert_in_range(l.v[1].lease_remains, 1, TTL / 4);
}

static void a_displaced_node_is_told_so(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lease = op_lease(NODE, "one", true);

	open_node(s, OTHER, "one");
	assert_false(apply_one(s, lease));
	assert_int_equal(lease->err.kind, ERR_FENCED);
	assert_true(lease_op(lease)->displaced);
}

static bool open_on(struct store *s, const char *node, const char *boot)
{
	AUTO(op) *op = op_node_open(node, "one", "spawner-of-it");

	node_open_op(op)->ttl = TTL;
	node_open_op(op)->boot = boot;
	return apply_one(s, op);
}

/* Two machines with one node name. With SQLite there is only one machine, which was rebooted. */
static void a_name_that_is_alive_on_another_machine_is_not_taken(void **state)
{
	struct store *s = store_of(state);
	bool server = text_starts(where_of(state), "postgres");
	AUTO(op) *lease = op_lease("first", "one", true);

	assert_true(open_on(s, "first", "boot-one"));
	assert_int_equal(open_on(s, "second", "boot-two"), !server);
	assert_int_equal(apply_one(s, lease), server);
	lease_ends(where_of(state), "first");
	assert_true(open_on(s, "second", "boot-two"));
	assert_true(open_on(s, "third", "boot-two"));
}

static bool open_booted(struct store *s, const char *node, const char *boot, usec_t uptime)
{
	AUTO(op) *op = op_node_open(node, "one", "spawner-of-it");

	node_open_op(op)->ttl = TTL;
	node_open_op(op)->boot = boot;
	node_open_op(op)->machine = "machine";
	node_open_op(op)->uptime = uptime;
	return apply_one(s, op);
}

/* The node renewed long before this machine booted: it is the same machine. A clone that runs beside it has an older boot. */
static void a_machine_that_was_booted_again_need_not_wait(void **state)
{
	struct store *s = store_of(state);
	bool server = text_starts(where_of(state), "postgres");

	assert_true(open_booted(s, "first", "boot-one", USEC_HOUR));
	assert_int_equal(open_booted(s, "clone", "boot-two", USEC_HOUR), !server);
	place_query(where_of(state), "UPDATE nodes SET renewed_at = renewed_at - 10000000", NULL);
	assert_true(open_booted(s, "second", "boot-three", 5 * USEC_SEC));
}

/* A restarted engine need not wait for the lease of the earlier one. */
static void a_new_engine_of_a_node_plans_and_leads_at_once(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *plan = op_plan_on(OTHER);
	AUTO(op) *old = op_lead(NODE, 1);

	add_due(s, NULL, T0);
	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	open_node(s, OTHER, "one");
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, 1);
	assert_int_equal(renew(s, OTHER, "one"), 2);
	assert_false(apply_one(s, old));
	assert_int_equal(old->err.kind, ERR_FENCED);
}

static void a_boot_of_the_host_ends_the_leases_in_a_file(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_node_open(NODE, "one", SPAWNER);
	AUTO(op) *again = op_node_open(OTHER, "two", SPAWNER);

	node_open_op(first)->boot = "boot-1";
	node_open_op(first)->ttl = TTL;
	assert_true(apply_one(s, first));
	assert_int_equal(renew(s, NODE, "one"), 1);
	node_open_op(again)->boot = "boot-2";
	node_open_op(again)->ttl = TTL;
	assert_true(apply_one(s, again));
	if (s->db->ops->reconnects) { /* PostgreSQL has its own clock */
		assert_int_equal(node_open_op(again)->others, 1);
		return;
	}
	assert_int_equal(node_open_op(again)->others, 0);
	assert_int_equal(renew(s, OTHER, "two"), 2);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(without_a_lease_nothing_is_claimed_or_planned),
	STORE_TEST(those_without_a_lease_are_no_company),
	STORE_TEST(a_node_is_given_up_only_after_its_lease),
	STORE_TEST(a_node_without_a_guard_is_waited_for_longer),
	STORE_TEST(a_leader_does_not_give_itself_up),
	STORE_TEST(runs_are_given_up_after_the_run_lease_and_not_before),
	STORE_TEST(a_node_that_left_is_waited_for_only_with_what_its_spawner_holds),
	STORE_TEST(a_node_that_left_without_a_deadline_is_waited_for_longer),
	STORE_TEST(whom_the_leader_spares_lives),
	STORE_TEST(a_lost_node_renews_nothing_and_its_late_end_is_stale),
	STORE_TEST(a_lost_node_starts_none_of_its_claimed_runs),
	STORE_TEST(runs_of_a_dead_node_are_counted_on_their_new_node),
	STORE_TEST(a_node_that_left_is_waited_for_but_not_forever),
	STORE_TEST(a_node_that_was_given_up_can_come_back),
	STORE_TEST(a_reopened_node_keeps_the_longer_lease_and_learns_of_its_loss),
	STORE_TEST(a_displaced_node_is_told_so),
	STORE_TEST(a_name_that_is_alive_on_another_machine_is_not_taken),
	STORE_TEST(a_machine_that_was_booted_again_need_not_wait),
	STORE_TEST(a_new_engine_of_a_node_plans_and_leads_at_once),
	STORE_TEST(a_boot_of_the_host_ends_the_leases_in_a_file),
};
const struct suite_part store_leases_part = {tests, ELEMENTS(tests)};
