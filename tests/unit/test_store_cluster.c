/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes on one store: leases, the leader, segments, and what those may not do who lost theirs. */
#include "base/text.h"
#include "store_suite.h"
#include <pthread.h>
#include <string.h>
#include <time.h>

#define OTHER "node-two-engine"
#define TTL (60 * USEC_SEC)

static void open_node(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_node_open(node, name, "spawner-of-it");

	op->node_open.ttl = TTL;
	assert_true(apply_one(s, op));
}

static struct op *op_lease(const char *node, const char *name, bool stands)
{
	struct op *op = op_new(OP_LEASE, NULL, NULL);

	op->lease = (struct op_lease){.node = node, .name = name, .ttl = TTL, .stands = stands, .guarded = true};
	return op;
}

/* Renews; the term if it leads, else 0. */
static int64_t renew(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_lease(node, name, true);

	assert_true(apply_one(s, op));
	return op->lease.leads ? op->lease.term : 0;
}

static struct op *op_lead(const char *node, int64_t term)
{
	struct op *op = op_new(OP_LEAD, NULL, NULL);

	op->lead = (struct op_lead){.node = node, .term = term, .now = T0 + USEC_SEC, .unguarded_wait = TTL};
	return op;
}

static void lead_once(struct store *s, const char *node, int64_t term)
{
	AUTO(op) *op = op_lead(node, term);

	assert_true(apply_one(s, op));
}

static void lease_ends(const char *where, const char *node)
{
	AUTO_TEXT sql = xprintf("UPDATE nodes SET alive_until = 1 WHERE id = '%s'", node);

	place_query(where, sql, NULL);
}

static void office_ends(const char *where)
{
	place_query(where, "UPDATE leases SET until = 1", NULL);
}

static void once(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	planned_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot, .due_at = due->slot});
	ret->next_slot = due->slot + USEC_DAY;
}

static struct op *op_plan_on(const char *node)
{
	struct op *op = op_new(OP_PLAN, NULL, NULL);

	op->plan = (struct op_plan){.node = node, .now = T0, .horizon = T0 + 5 * USEC_SEC, .limit = 1000, .fn = once};
	return op;
}

/* ---- leader ---- */

static void one_node_leads_and_its_term_stays(void **state)
{
	struct store *s = store_of(state);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(renew(s, OTHER, "two"), 0);
	assert_int_equal(renew(s, NODE, "one"), 1);
}

static void another_leads_only_after_the_lease_and_with_a_greater_term(void **state)
{
	struct store *s = store_of(state);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	office_ends(where_of(state));
	assert_int_equal(renew(s, OTHER, "two"), 2);
	assert_int_equal(renew(s, NODE, "one"), 0);
	office_ends(where_of(state));
	assert_int_equal(renew(s, NODE, "one"), 3);
}

static void a_leader_that_nobody_replaced_goes_on_under_its_term(void **state)
{
	struct store *s = store_of(state);

	assert_int_equal(renew(s, NODE, "one"), 1);
	office_ends(where_of(state));
	assert_int_equal(renew(s, NODE, "one"), 1);
}

static void who_does_not_stand_does_not_lead(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_lease(NODE, "one", false);

	assert_true(apply_one(s, op));
	assert_false(op->lease.leads);
}

static void those_who_follow_see_whether_the_leader_works(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *alone = op_lead(NODE, 1);
	AUTO(op) *watched = op_lead(NODE, 1);
	AUTO(op) *before = op_lease(OTHER, "two", true);
	AUTO(op) *after = op_lease(OTHER, "two", true);
	usec_t taken;

	assert_int_equal(renew(s, NODE, "one"), 1);
	alone->lead.now = T0 + 2 * USEC_SEC;
	assert_true(apply_one(s, alone)); /* nobody watches, nothing is written */
	open_node(s, OTHER, "two");
	assert_true(apply_one(s, before));
	assert_string_equal(before->lease.leader, "one");
	taken = before->lease.worked;
	assert_true(taken < alone->lead.now);
	watched->lead.now = T0 + 3 * USEC_SEC;
	assert_true(apply_one(s, watched));
	assert_true(apply_one(s, after));
	assert_int_equal(after->lease.worked, T0 + 3 * USEC_SEC);
	office_ends(where_of(state));
	assert_int_equal(renew(s, OTHER, "two"), 2);
}

static void the_first_slot_of_all_names_the_node_that_is_to_plan_it(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_lease(OTHER, "two", true);

	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	add_due(s, NULL, T0 + USEC_MIN);
	add_due(s, NULL, T0 + USEC_SEC);
	open_node(s, OTHER, "two");
	assert_true(apply_one(s, op));
	assert_int_equal(op->lease.first_slot, T0 + USEC_SEC);
	assert_string_equal(op->lease.planner, "one");
}

static void a_leader_that_resigns_is_followed_at_once(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *resign = op_lease(NODE, "one", true);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	resign->lease.resigns = true;
	assert_true(apply_one(s, resign));
	assert_false(resign->lease.leads);
	assert_int_equal(renew(s, OTHER, "two"), 2);
}

static void a_leader_that_leaves_is_followed_at_once(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *leave = op_new(OP_NODE_CLOSE, NULL, NULL);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	leave->node_close = (struct op_node_close){.node = NODE, .now = T0};
	assert_true(apply_one(s, leave));
	assert_int_equal(renew(s, OTHER, "two"), 2);
}

static void a_deposed_leader_changes_nothing(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *old = op_lead(NODE, 1);
	AUTO(op) *wrong = op_lead(OTHER, 1);
	AUTO_DONE(buf) rows = {};

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	office_ends(where_of(state));
	assert_false(apply_one(s, old)); /* even before there is another one */
	assert_int_equal(old->err.kind, ERR_FENCED);
	assert_int_equal(renew(s, OTHER, "two"), 2);
	lease_ends(where_of(state), NODE);
	assert_false(apply_one(s, old));
	assert_int_equal(old->err.kind, ERR_FENCED);
	assert_false(apply_one(s, wrong)); /* the right node with the wrong term */
	place_query(where_of(state), "SELECT count(*) FROM segments", &rows);
	assert_string_equal(rows.data, "0|\n");
}

/* ---- nodes whose lease is over ---- */

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

/* The run of a job that OTHER has started. */
static struct run *run_elsewhere(struct store *s)
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
	place_query(where_of(state), "UPDATE nodes SET alive_until = alive_until - 61000000, guarded = 0 WHERE id = '" OTHER "'", NULL);
	assert_true(apply_one(s, early));
	assert_int_equal(early->lead.dead, 0);
	late->lead.unguarded_wait = 0;
	assert_true(apply_one(s, late));
	assert_int_equal(late->lead.dead, 1);
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

static void who_left_in_peace_is_waited_for_and_not_for_ever(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *leave = op_new(OP_NODE_CLOSE, NULL, NULL);
	AUTO(op) *soon = op_lead(NODE, 1);
	AUTO(op) *late = op_lead(NODE, 1);

	leave->node_close = (struct op_node_close){.node = OTHER, .now = T0};
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

/* ---- segments ---- */

static void each_node_plans_its_own_segments_only(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *one = op_plan_on(NODE);
	AUTO(op) *two = op_plan_on(OTHER);
	AUTO(op) *again = op_plan_on(NODE);

	for (int i = 0; i < 200; i++)
		add_due(s, NULL, T0);
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_true(apply_one(s, one));
	assert_int_equal(one->plan.runs, 0); /* nobody has segments before the leader gave them */
	lead_once(s, NODE, 1);
	assert_true(apply_one(s, one));
	assert_in_range(one->plan.runs, 60, 140);
	assert_true(apply_one(s, two));
	assert_int_equal(one->plan.runs + two->plan.runs, 200);
	assert_true(apply_one(s, again));
	assert_int_equal(again->plan.runs, 0);
	assert_counts_true(s);
}

static void the_segments_of_the_dead_are_planned_by_the_living(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(op) *plan = op_plan_on(NODE);
	AUTO(op) *old = op_plan_on(OTHER);

	for (int i = 0; i < 50; i++)
		add_due(s, NULL, T0);
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(renew(s, OTHER, "two"), 0);
	lead_once(s, NODE, 1);
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, lead));
	assert_int_equal(lead->lead.moved, 32);
	assert_true(apply_one(s, plan));
	assert_int_equal(plan->plan.runs, 50);
	assert_false(apply_one(s, old));
}

static void the_next_slot_to_wake_up_for_is_one_of_our_own(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *mine = op_new(OP_LOOK, NULL, NULL);
	AUTO(op) *nothing = op_new(OP_LOOK, NULL, NULL);
	struct store_wake wake;

	add_due(s, NULL, T0 + USEC_HOUR);
	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	open_node(s, OTHER, "two");
	mine->look.node = NODE;
	wake = apply_all(s, &mine, 1);
	assert_int_equal(wake.next_slot, T0 + USEC_HOUR);
	assert_true(mine->look.segments == UINT64_MAX);
	assert_int_equal(mine->look.others, 1);
	nothing->look.node = OTHER;
	wake = apply_all(s, &nothing, 1);
	assert_true(wake.next_slot == USEC_NEVER);
}

/* ---- orders ---- */

static void give_order(struct store *s, const char *name, enum node_order order, bool changes)
{
	AUTO(op) *op = op_new(OP_NODE_ORDER, NULL, NULL);

	op->node_order = (struct op_node_order){.name = name, .order = order, .now = T0};
	assert_true(apply_one(s, op));
	assert_int_equal(op->node_order.changed, changes);
}

static void a_drained_node_claims_plans_and_leads_nothing(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(OTHER, 2);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *look = op_new(OP_LOOK, NULL, NULL);

	add_job(s, NULL);
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	give_order(s, "one", NODE_DRAIN, true);
	give_order(s, "one", NODE_DRAIN, false);
	assert_int_equal(renew(s, NODE, "one"), 0);
	assert_int_equal(renew(s, OTHER, "two"), 2);
	assert_true(apply_one(s, lead));
	look->look.node = NODE;
	assert_true(apply_one(s, look));
	assert_true(look->look.segments == 0);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim->claim.claimed.n, 0);
	give_order(s, "one", NODE_UNDRAIN, true);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim->claim.claimed.n, 1);
}

static void an_order_to_resign_ends_this_term_and_no_later_one(void **state)
{
	struct store *s = store_of(state);

	assert_int_equal(renew(s, NODE, "one"), 1);
	give_order(s, NULL, NODE_RESIGN, true);
	assert_int_equal(renew(s, NODE, "one"), 0);
	assert_int_equal(renew(s, NODE, "one"), 2);
	assert_int_equal(renew(s, NODE, "one"), 2);
}

static void orders_to_nobody_are_refused(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_new(OP_NODE_ORDER, NULL, NULL);

	op->node_order = (struct op_node_order){.name = "nowhere", .order = NODE_DRAIN, .now = T0};
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_NOT_FOUND);
	op->node_order = (struct op_node_order){.name = "one", .order = NODE_RESIGN, .now = T0};
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_CONFLICT);
}

/* ---- what concerns a node ---- */

static void a_node_sees_which_of_its_runs_are_to_end(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *cancel = op_new(OP_RUN_CANCEL, NULL, NULL);
	AUTO(op) *look = op_new(OP_LOOK, NULL, NULL);

	look->look.node = OTHER;
	assert_true(apply_one(s, look));
	assert_int_equal(look->look.to_end.n, 0);
	cancel->run_cancel = (struct op_run_cancel){.uid = -1, .id = run->id, .now = T0 + 2};
	assert_true(apply_one(s, cancel));
	assert_true(apply_one(s, look));
	assert_int_equal(look->look.to_end.n, 1);
	assert_int_equal(look->look.to_end.v[0].run, run->id);
	assert_int_equal(look->look.to_end.v[0].fence, run->fence);
}

static void people_see_the_nodes_and_who_leads(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(node_list) l = {};
	struct err e = {};

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, OTHER, "two"), 1);
	lead_once(s, OTHER, 1);
	assert_true(store_nodes(s, &l, &e));
	assert_int_equal(l.n, 2);
	assert_string_equal(l.leader, "two");
	assert_int_equal(l.term, 1);
	assert_string_equal(l.v[0].name, "one");
	assert_false(l.v[0].leads);
	assert_true(l.v[1].leads);
	assert_int_equal(l.v[0].segments + l.v[1].segments, 64);
	assert_in_range(l.v[1].lease_remains, TTL / 2, TTL);
}

static size_t claim_with(struct store *s, const char *labels)
{
	AUTO(op) *claim = op_claim(5, T0);

	claim->claim.labels = labels;
	assert_true(apply_one(s, claim));
	return claim->claim.claimed.n;
}

static void a_run_with_labels_waits_for_a_node_that_has_them_all(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_add(NULL, NULL, "{\"node_labels\":[\"zone=a\",\"gpu=yes\"]}");

	op->add.policy.gated = GATED_LABELS;
	assert_true(apply_one(s, op));
	assert_int_equal(claim_with(s, NULL), 0);
	assert_int_equal(claim_with(s, "\nzone=a\n"), 0);
	assert_int_equal(claim_with(s, "\nzone=ab\ngpu=yes\n"), 0);
	add_job(s, "anywhere");
	assert_int_equal(claim_with(s, "\nzone=b\n"), 1); /* it does not stand in the way of others */
	assert_int_equal(claim_with(s, "\ngpu=yes\nzone=a\nmore=x\n"), 1);
}

/* ---- at the same time ---- */

struct beside {
	const char *where;
	struct op *op;
	bool ok;
};

static void *apply_beside(void *arg)
{
	struct beside *b = arg;
	AUTO(store) *s = open_or_fail(b->where, false);
	struct store_wake wake;
	struct err e = {};

	b->ok = store_apply(s, &b->op, 1, &wake, &e);
	return NULL;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* R27: what is claimed while its node is given up is given up, too. */
static void a_claim_under_way_is_waited_for(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(op) *claim = op_claim(1, T0);
	struct beside b = {.where = where_of(state), .op = lead};
	pthread_t thread;
	AUTO_TX tx = {};
	struct err e = {};

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	assert_int_equal(renew(s, NODE, "one"), 1);
	place_query(b.where, "UPDATE nodes SET guarded = 1, alive_until = alive_until - 59500000 WHERE id = '" OTHER "'", NULL);
	claim->claim.node = OTHER;
	claim->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(apply_claim(s, &claim, 1, &e));
	assert_int_equal(claim->claim.claimed.n, 1);
	pause_ms(600);
	assert_int_equal(pthread_create(&thread, NULL, apply_beside, &b), 0);
	pause_ms(400);
	assert_true(count_write(s, &e) && tx_commit(&tx, &e));
	pthread_join(thread, NULL);
	assert_true(b.ok && lead->ok);
	assert_int_equal(lead->lead.dead, 1);
	assert_int_equal(lead->lead.lost.n, 1);
}

/* F-64: on a server, a lease is renewed whatever else its engine has under way. */
static void a_renewal_does_not_wait_for_a_claim(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lease = op_lease(NODE, "one", true);
	AUTO(op) *claim = op_claim(1, T0);
	struct beside b = {.where = where_of(state), .op = lease};
	pthread_t thread;
	AUTO_TX tx = {};
	struct err e = {};

	if (!s->db->ops->reconnects)
		return; /* a file has one writer at a time */
	claim->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(apply_claim(s, &claim, 1, &e));
	assert_int_equal(pthread_create(&thread, NULL, apply_beside, &b), 0);
	pthread_join(thread, NULL);
	assert_true(b.ok && lease->ok);
	assert_true(tx_commit(&tx, &e)); /* nor was the claim ended for it */
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(one_node_leads_and_its_term_stays),
	STORE_TEST(another_leads_only_after_the_lease_and_with_a_greater_term),
	STORE_TEST(a_leader_that_nobody_replaced_goes_on_under_its_term),
	STORE_TEST(who_does_not_stand_does_not_lead),
	STORE_TEST(those_who_follow_see_whether_the_leader_works),
	STORE_TEST(the_first_slot_of_all_names_the_node_that_is_to_plan_it),
	STORE_TEST(a_leader_that_resigns_is_followed_at_once),
	STORE_TEST(a_leader_that_leaves_is_followed_at_once),
	STORE_TEST(a_deposed_leader_changes_nothing),
	STORE_TEST(without_a_lease_nothing_is_claimed_or_planned),
	STORE_TEST(a_node_is_given_up_only_after_its_lease),
	STORE_TEST(a_node_without_a_guard_is_waited_for_longer),
	STORE_TEST(who_was_given_up_renews_nothing_and_its_late_end_is_stale),
	STORE_TEST(who_left_in_peace_is_waited_for_and_not_for_ever),
	STORE_TEST(who_was_given_up_can_come_back),
	STORE_TEST(who_was_displaced_is_told_so),
	STORE_TEST(a_name_that_is_alive_on_another_machine_is_not_taken),
	STORE_TEST(a_new_engine_of_a_node_plans_and_leads_at_once),
	STORE_TEST(a_boot_of_the_host_ends_the_leases_in_a_file),
	STORE_TEST(each_node_plans_its_own_segments_only),
	STORE_TEST(the_segments_of_the_dead_are_planned_by_the_living),
	STORE_TEST(the_next_slot_to_wake_up_for_is_one_of_our_own),
	STORE_TEST(a_drained_node_claims_plans_and_leads_nothing),
	STORE_TEST(an_order_to_resign_ends_this_term_and_no_later_one),
	STORE_TEST(orders_to_nobody_are_refused),
	STORE_TEST(a_node_sees_which_of_its_runs_are_to_end),
	STORE_TEST(people_see_the_nodes_and_who_leads),
	STORE_TEST(a_run_with_labels_waits_for_a_node_that_has_them_all),
	STORE_TEST(a_claim_under_way_is_waited_for),
	STORE_TEST(a_renewal_does_not_wait_for_a_claim),
};
const struct suite_part store_cluster_part = {tests, ELEMENTS(tests)};
