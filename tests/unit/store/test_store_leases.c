/* SPDX-License-Identifier: Apache-2.0 */
/* What a node may not do without its lease, when it is given up, and how it comes back. */
#include "base/buf.h"
#include "base/text.h"
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
	assert_int_equal(renew(s, NODE, "one"), 1); /* nobody gave it up meanwhile */
	assert_true(apply_one(s, claim));
	assert_int_equal(claim->claim.claimed.n, 1);
	assert_true(apply_one(s, plan));
	assert_int_equal(plan->plan.runs, 1);
}

/* Whoever is alone keeps no deadline at its spawner, and whoever is not must. */
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
	assert_int_equal(before->lease.others, 2);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, after));
	assert_int_equal(after->lease.others, 1);
	close->node_close = (struct op_node_close){.node = "node-three-engine", .now = T0};
	assert_true(apply_one(s, close));
	assert_true(apply_one(s, left));
	assert_int_equal(left->lease.others, 0);
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
	assert_int_equal(early->lead.dead, 0);
	assert_int_equal(early->lead.live, 2);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, late));
	assert_int_equal(late->lead.dead, 1);
	assert_int_equal(late->lead.live, 1);
	assert_int_equal(late->lead.lost.n, 1);
	assert_int_equal(late->lead.lost.v[0].run->id, run->id);
	ours = get_run(s, run->id);
	assert_string_equal(ours->node, NODE);
	assert_string_equal(ours->node_name, "one"); /* for people */
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
	early->lead.unguarded_wait = TTL;
	place_query(where_of(state), "UPDATE nodes SET alive_until = alive_until - 61000000, runs_until = runs_until - 61000000, guarded = 0 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, early));
	assert_int_equal(early->lead.dead, 0);
	assert_true(apply_one(s, late));
	assert_int_equal(late->lead.dead, 1);
}

static void runs_are_given_up_after_the_run_lease_and_not_before(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *lease = op_lease(OTHER, "two", false);
	AUTO(op) *early = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);
	AUTO(op) *claim = op_claim(1, T0 + 2);

	lease->lease.run_ttl = 2 * TTL;
	assert_true(apply_one(s, lease));
	assert_int_equal(renew(s, NODE, "one"), 1);
	place_query(where_of(state), "UPDATE nodes SET alive_until = 1 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, early));
	assert_int_equal(early->lead.dead, 0);
	assert_int_equal(early->lead.live, 1); /* so it plans nothing ... */
	assert_int_equal(early->lead.lost.n, 0);
	claim->claim.node = OTHER;
	assert_false(apply_one(s, claim)); /* ... and starts nothing */
	place_query(where_of(state), "UPDATE nodes SET runs_until = runs_until - 121000000 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, late));
	assert_int_equal(late->lead.dead, 1);
	assert_int_equal(late->lead.lost.n, 1);
	assert_int_equal(late->lead.lost.v[0].run->id, run->id);
}

static struct op *op_close_holding(int64_t run, bool guarded)
{
	struct op *op = op_new(OP_NODE_CLOSE, NULL, NULL);

	op->node_close = (struct op_node_close){.node = OTHER, .now = T0, .guarded = guarded, .run_ttl = TTL};
	op->node_close.held = xcalloc(1, sizeof(*op->node_close.held));
	op->node_close.held[0] = run;
	op->node_close.n_held = run != 0;
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
	claim->claim.node = OTHER;
	assert_true(apply_one(s, claim)); /* and never started */
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_true(apply_one(s, close));
	assert_true(apply_one(s, soon));
	assert_int_equal(soon->lead.lost.n, 1);
	assert_int_equal(soon->lead.lost.v[0].run->id, claim->claim.claimed.v[0].run->id);
	assert_int_equal(soon->lead.dead, 0);
	place_query(where_of(state), "UPDATE nodes SET runs_until = 1 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, late));
	assert_int_equal(late->lead.lost.n, 1);
	assert_int_equal(late->lead.lost.v[0].run->id, run->id);
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
	assert_int_equal(soon->lead.lost.n, 0);
}

static void a_leader_does_not_give_itself_up(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);

	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), NODE);
	assert_true(apply_one(s, lead));
	assert_int_equal(lead->lead.dead, 0);
}

static void whom_the_leader_spares_lives(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, OTHER, "two"), 1);
	leader_lease_ends(where_of(state));
	lead->lead.term = renew(s, NODE, "one");
	lease_ends(where_of(state), OTHER);
	lead->lead.spares = true;
	assert_true(apply_one(s, lead));
	assert_int_equal(lead->lead.dead, 0);
	assert_int_equal(renew(s, OTHER, "two"), 0);
}

static void who_was_given_up_renews_nothing_and_its_late_end_is_stale(void **state)
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
	assert_false(lease->lease.displaced);
	lost = op_ended(run, ATTEMPT_LOST, T0 + 5);
	assert_true(apply_one(s, lost));
	assert_int_equal(lost->ended.became, RUN_QUEUED);
	late = op_ended(run, ATTEMPT_SUCCEEDED, T0 + 9);
	late->ended.node = OTHER;
	assert_true(apply_one(s, late));
	assert_true(late->ended.stale);
	ours = get_run(s, run->id);
	assert_int_equal(ours->state, RUN_QUEUED);
	assert_true(store_attempts(s, run->id, &attempts, &e));
	assert_int_equal(attempts.n, 1);
	assert_int_equal(attempts.v[0]->outcome, ATTEMPT_STALE);
	assert_counts_true(s);
}

/* The fence stays the same until somebody claims it again: the node counts, too. */
static void who_was_given_up_starts_nothing_that_it_had_claimed(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(op) *back = op_new(OP_GIVE_BACK, NULL, NULL);
	AUTO(op) *start = NULL;
	AUTO(run) *now = NULL;

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	claim->claim.node = OTHER;
	assert_true(apply_one(s, claim));
	assert_int_equal(claim->claim.claimed.n, 1);
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, lead));
	assert_int_equal(lead->lead.lost.n, 1);
	start = op_started(claim->claim.claimed.v[0].run, T0 + 1);
	start->started.node = OTHER;
	assert_false(apply_one(s, start));
	assert_int_equal(start->err.kind, ERR_FENCED);
	back->give_back = (struct op_give_back){.node = OTHER, .run = start->started.run, .fence = 1, .due_at = T0, .now = T0};
	assert_false(apply_one(s, back));
	assert_int_equal(back->err.kind, ERR_FENCED);
	now = get_run(s, start->started.run);
	assert_int_equal(now->state, RUN_CLAIMED);
	assert_string_equal(now->node, NODE);
	assert_counts_true(s);
}

static void what_the_dead_had_running_is_counted_where_it_is_now(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO_DONE(buf) rows = {};

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	claim->claim.node = OTHER;
	assert_true(apply_one(s, claim));
	open_node(s, NODE, "one"); /* this connection counts as node 'one' from now on */
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, lead));
	assert_int_equal(lead->lead.lost.n, 1);
	place_query(where_of(state), "SELECT node, n FROM counters WHERE what = 3 AND n <> 0", &rows);
	assert_string_equal(rows.data, "one|1|\n");
}

static void who_left_in_peace_is_waited_for_and_not_for_ever(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *leave = op_close_holding(run->id, false);
	AUTO(op) *soon = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);

	assert_true(apply_one(s, leave));
	assert_int_equal(renew(s, NODE, "one"), 1);
	soon->lead.away_before = T0 - USEC_HOUR;
	assert_true(apply_one(s, soon));
	assert_int_equal(soon->lead.lost.n, 0);
	late->lead.away_before = T0 + USEC_HOUR;
	assert_true(apply_one(s, late));
	assert_int_equal(late->lead.lost.n, 1);
	assert_counts_true(s);
}

static void who_was_given_up_can_come_back(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(renew(s, OTHER, "two"), 0);
	lease_ends(where_of(state), OTHER);
	lead_once(s, NODE, 1);
	claim->claim.node = OTHER;
	assert_false(apply_one(s, claim));
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, OTHER, "two"), 0);
	add_job(s, NULL);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim->claim.claimed.n, 1);
}

/* As it is when a spawner is found again. The engine relies on the lease that it has, and must not be given up before. */
static void who_is_opened_again_keeps_the_longer_lease_and_hears_if_it_was_given_up(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *shorter = op_node_open(OTHER, "two", "spawner-two");
	AUTO(op) *again = op_node_open(OTHER, "two", "spawner-two");
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(run) *run = run_elsewhere(s);
	AUTO_DONE(node_list) l = {};
	struct err e = {};

	shorter->node_open.ttl = again->node_open.ttl = TTL / 4;
	assert_true(apply_one(s, shorter));
	assert_false(shorter->node_open.given_up);
	assert_int_equal(shorter->node_open.same_spawner.n + shorter->node_open.other_spawner.n, 0); /* it has that in its hands */
	assert_true(list_nodes_open(s, &l, &e));
	assert_int_equal(l.n, 2);
	assert_in_range(l.v[1].lease_remains, TTL / 2, TTL);
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, lead));
	assert_int_equal(lead->lead.dead, 1);
	assert_true(apply_one(s, again));
	assert_true(again->node_open.given_up);
	assert_int_equal(again->node_open.same_spawner.n + again->node_open.other_spawner.n, 0);
	node_list_done(&l);
	assert_true(list_nodes_open(s, &l, &e));
	assert_int_equal(l.n, 2);
	assert_in_range(l.v[1].lease_remains, 1, TTL / 4);
}

static void who_was_displaced_is_told_so(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lease = op_lease(NODE, "one", true);

	open_node(s, OTHER, "one");
	assert_false(apply_one(s, lease));
	assert_int_equal(lease->err.kind, ERR_FENCED);
	assert_true(lease->lease.displaced);
}

static bool open_on(struct store *s, const char *node, const char *boot)
{
	AUTO(op) *op = op_node_open(node, "one", "spawner-of-it");

	op->node_open.ttl = TTL;
	op->node_open.boot = boot;
	return apply_one(s, op);
}

/* Two machines by one name; in a file there is but one machine, which was booted again. */
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

	op->node_open.ttl = TTL;
	op->node_open.boot = boot;
	op->node_open.machine = "machine";
	op->node_open.uptime = uptime;
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

/* A restart need not wait for the lease of the life before. */
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
	assert_int_equal(plan->plan.runs, 1);
	assert_int_equal(renew(s, OTHER, "one"), 2);
	assert_false(apply_one(s, old));
	assert_int_equal(old->err.kind, ERR_FENCED);
}

static void a_boot_of_the_host_ends_the_leases_in_a_file(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_node_open(NODE, "one", SPAWNER);
	AUTO(op) *again = op_node_open(OTHER, "two", SPAWNER);

	first->node_open.boot = "boot-1";
	first->node_open.ttl = TTL;
	assert_true(apply_one(s, first));
	assert_int_equal(renew(s, NODE, "one"), 1);
	again->node_open.boot = "boot-2";
	again->node_open.ttl = TTL;
	assert_true(apply_one(s, again));
	if (s->db->ops->reconnects) { /* a server has a clock of its own */
		assert_int_equal(again->node_open.others, 1);
		return;
	}
	assert_int_equal(again->node_open.others, 0);
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
	STORE_TEST(who_was_given_up_renews_nothing_and_its_late_end_is_stale),
	STORE_TEST(who_was_given_up_starts_nothing_that_it_had_claimed),
	STORE_TEST(what_the_dead_had_running_is_counted_where_it_is_now),
	STORE_TEST(who_left_in_peace_is_waited_for_and_not_for_ever),
	STORE_TEST(who_was_given_up_can_come_back),
	STORE_TEST(who_is_opened_again_keeps_the_longer_lease_and_hears_if_it_was_given_up),
	STORE_TEST(who_was_displaced_is_told_so),
	STORE_TEST(a_name_that_is_alive_on_another_machine_is_not_taken),
	STORE_TEST(a_machine_that_was_booted_again_need_not_wait),
	STORE_TEST(a_new_engine_of_a_node_plans_and_leads_at_once),
	STORE_TEST(a_boot_of_the_host_ends_the_leases_in_a_file),
};
const struct suite_part store_leases_part = {tests, ELEMENTS(tests)};
