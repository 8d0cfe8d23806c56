/* SPDX-License-Identifier: Apache-2.0 */
/* The leases of one node among others, on a real store whose operations the test executes by hand. */
#include "base/text.h"
#include "core/job/event.h"
#include "daemon/cluster/cluster.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/node_commands.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "unit/daemon/hand_store.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TTL (60 * USEC_SEC)   /* no lease expires during a test */
#define SHORT (200 * USEC_MSEC)

struct world {
	struct store_thread hand;
	struct cluster_options o;
	struct cluster *c;
	/* callbacks of the cluster */
	usec_t end_at, kill_at;
	int deadlines, given_up, company, exits;
};

/* ---- callbacks ---- */

static void on_change(void *arg)
{
	(void)arg;
}

static void on_lost(struct claimed *c, void *arg)
{
	(void)c;
	(void)arg;
}

static void on_to_end(const struct run_change *r, void *arg)
{
	(void)r;
	(void)arg;
}

static void on_given_up(void *arg)
{
	((struct world *)arg)->given_up++;
}

static void on_peers(void *arg)
{
	((struct world *)arg)->company++;
}

static void on_deadline(usec_t end_at, usec_t kill_at, void *arg)
{
	struct world *w = arg;

	w->end_at = end_at;
	w->kill_at = kill_at;
	w->deadlines++;
}

static void on_exit_asked(int status, void *arg)
{
	(void)status;
	((struct world *)arg)->exits++;
}

static void open_other(struct world *w, const char *id, const char *name)
{
	AUTO(op) *op = op_new(OP_NODE_OPEN, NULL, NULL);

	op_fill(node_open_op(op), .node = id, .name = name, .spawner = "s", .ttl = TTL, .now = 1);
	hand_apply(&w->hand, op);
}

static void close_other(struct world *w, const char *id)
{
	AUTO(op) *op = op_new(OP_NODE_CLOSE, NULL, NULL);

	op_fill(node_close_op(op), .node = id, .now = 2);
	hand_apply(&w->hand, op);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	if (!hand_open(&w->hand))
		return -1;
	w->o = (struct cluster_options){.store = &w->hand, .leases = &w->hand, .node_id = "one-id", .node_name = "one",
		.ttl = TTL, .on_change = on_change, .on_lost = on_lost, .on_to_end = on_to_end, .on_looked = on_change,
		.on_given_up = on_given_up, .on_peers = on_peers, .on_deadline = on_deadline, .on_exit = on_exit_asked,
		.arg = w};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	cluster_free(w->c);
	hand_close(&w->hand);
	free(w);
	return 0;
}

static void pause_for(usec_t time)
{
	nanosleep(&(struct timespec){time / USEC_SEC, time % USEC_SEC * 1000}, NULL);
}

/* Opens the node and renews once. */
static void begin(struct world *w, int64_t others)
{
	struct err e = {};

	open_other(w, "one-id", "one");
	if (!cluster_new(w->hand.ev, &w->o, &w->c, &e))
		fail_msg("%s", e.msg);
	cluster_opened(w->c, others);
}

static void renew_once(struct world *w)
{
	cluster_renew_now(w->c);
	hand_serve(&w->hand);
}

/* ---- trust ---- */

static void a_lease_is_trusted_from_before_it_was_asked_for_and_less_a_margin(void **state)
{
	struct world *w = *state;
	usec_t before, after;

	open_other(w, "two-id", "two");
	begin(w, 1);
	assert_false(cluster_trusted(w->c));
	after = clock_boot(&clock_system);
	before = after - USEC_SEC;
	pause_for(SHORT); /* the store is slow */
	hand_serve(&w->hand);
	assert_true(cluster_trusted(w->c));
	assert_in_range(w->end_at, before + TTL - TTL / 5, after + TTL - TTL / 5);
	assert_in_range(w->kill_at, w->end_at + 1, after + TTL - 1);
}

static void trust_ends_by_itself(void **state)
{
	struct world *w = *state;

	w->o.ttl = SHORT;
	begin(w, 0);
	hand_serve(&w->hand);
	pause_for(SHORT);
	assert_false(cluster_trusted(w->c));
	assert_false(cluster_leads(w->c));
	renew_once(w);
	w->hand.fails = ERR_BUSY;
	pause_for(SHORT);
	renew_once(w);
	assert_false(cluster_trusted(w->c)); /* a renewal in flight gives no lease */
}

static void a_node_that_was_given_up_trusts_nothing_and_reports_it_once(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	hand_serve(&w->hand);
	close_other(w, "one-id");
	renew_once(w);
	assert_false(cluster_trusted(w->c));
	assert_int_equal(w->given_up, 1);
	assert_int_equal(w->exits, 0);
	renew_once(w); /* nothing is renewed before the node is opened again */
	assert_int_equal(w->given_up, 1);
	open_other(w, "one-id", "one");
	cluster_opened(w->c, 0);
	hand_serve(&w->hand);
	assert_true(cluster_trusted(w->c));
}

static void a_displaced_node_exits(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	hand_serve(&w->hand);
	open_other(w, "newer-id", "one");
	renew_once(w);
	assert_false(cluster_trusted(w->c));
	assert_int_equal(w->exits, 1);
	assert_int_equal(w->given_up, 0);
}

/* ---- the store's clock ---- */

/* Renews in 'took' with a store whose clock is 'ahead', read at the end or at the beginning of the renewal. */
static usec_t measured(struct world *w, usec_t takes, usec_t ahead, bool late)
{
	struct op *op;
	usec_t theirs;

	cluster_renew_now(w->c);
	op = hand_take(&w->hand, OP_LEASE);
	theirs = clock_now(&clock_system) + ahead;
	pause_for(takes);
	hand_apply(&w->hand, op);
	lease_op(op)->now = late ? clock_now(&clock_system) + ahead : theirs;
	op->on_done(op, op->arg);
	hand_serve(&w->hand);
	return cluster_offset(w->c);
}

static void a_wrong_clock_is_detected_also_over_a_slow_store(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	hand_serve(&w->hand);
	assert_int_equal(measured(w, 1100 * USEC_MSEC, 0, false), 0); /* the request may have taken no time, ... */
	assert_int_equal(measured(w, 1100 * USEC_MSEC, 0, true), 0);  /* ... or the answer */
	assert_in_range(measured(w, 1100 * USEC_MSEC, USEC_HOUR, true), USEC_HOUR - USEC_MIN, USEC_HOUR + USEC_MIN);
	assert_in_range(measured(w, 0, USEC_HOUR, true), USEC_HOUR - 500 * USEC_MSEC, USEC_HOUR + 500 * USEC_MSEC);
}

/* ---- the spawner's deadline ---- */

static void a_single_node_has_no_deadline(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	hand_serve(&w->hand);
	assert_int_equal(w->end_at, 0);
	assert_int_equal(w->deadlines, 1); /* an earlier daemon may have set one */
}

static void the_store_learns_of_a_deadline_as_soon_as_there_is_one(void **state)
{
	struct world *w = *state;
	struct op *first, *second;

	open_other(w, "two-id", "two");
	begin(w, 1);
	first = hand_take(&w->hand, OP_LEASE);
	assert_false(lease_op(first)->guarded);
	hand_answer(&w->hand, first);
	assert_true(w->end_at > 0);
	hand_serve(&w->hand);
	second = hand_await(&w->hand, OP_LEASE);
	assert_true(lease_op(second)->guarded);
	hand_answer(&w->hand, second);
}

/* A single node never ends a job because of its lease, also when its peers have left. */
static void a_last_node_keeps_its_deadline_until_the_store_knows(void **state)
{
	struct world *w = *state;
	struct op *op;
	usec_t end_at;

	open_other(w, "two-id", "two");
	begin(w, 1);
	hand_serve(&w->hand);
	end_at = w->end_at;
	close_other(w, "two-id");
	cluster_renew_now(w->c);
	op = hand_take(&w->hand, OP_LEASE);
	assert_true(lease_op(op)->guarded);
	hand_answer(&w->hand, op);
	assert_true(w->end_at > end_at);
	hand_serve(&w->hand);
	cluster_renew_now(w->c);
	op = hand_take(&w->hand, OP_LEASE);
	assert_false(lease_op(op)->guarded);
	assert_true(w->end_at > 0); /* not before it was committed */
	hand_answer(&w->hand, op);
	assert_int_equal(w->end_at, 0);
}

static void a_node_that_leaves_peers_gives_its_spawner_another_run_lease(void **state)
{
	struct world *w = *state;
	usec_t run_ttl, end_at, left;

	w->o.run_ttl = 4 * TTL;
	open_other(w, "two-id", "two");
	begin(w, 1);
	hand_serve(&w->hand);
	end_at = w->end_at;
	pause_for(SHORT);
	left = clock_boot(&clock_system);
	assert_true(cluster_leave(w->c, &run_ttl));
	assert_int_equal(run_ttl, 4 * TTL);
	assert_int_equal(w->end_at, end_at); /* not before the departure is in the store */
	cluster_left(w->c);
	assert_true(w->end_at > end_at);
	assert_in_range(w->end_at, left + 3 * TTL, left + 4 * TTL);
	assert_in_range(w->kill_at, w->end_at + 1, clock_boot(&clock_system) + 4 * TTL);
}

static void a_single_node_that_leaves_leaves_no_deadline(void **state)
{
	struct world *w = *state;
	usec_t run_ttl;

	begin(w, 0);
	assert_false(cluster_leave(w->c, &run_ttl));
	cluster_left(w->c);
	assert_int_equal(w->end_at, 0);
}

static void the_deadline_is_of_the_run_lease_and_trust_of_the_lease(void **state)
{
	struct world *w = *state;
	usec_t before;
	struct op *op;

	w->o.ttl = SHORT;
	w->o.run_ttl = 100 * SHORT;
	open_other(w, "two-id", "two");
	before = clock_boot(&clock_system);
	begin(w, 1);
	op = hand_take(&w->hand, OP_LEASE);
	assert_int_equal(lease_op(op)->ttl, SHORT);
	assert_int_equal(lease_op(op)->run_ttl, 100 * SHORT);
	hand_answer(&w->hand, op);
	assert_in_range(w->end_at, before + 90 * SHORT, before + 100 * SHORT);
	assert_true(cluster_runs_remain(w->c) > 50 * SHORT);
	pause_for(SHORT);
	assert_false(cluster_trusted(w->c));
}

/* ---- when it is renewed ---- */

static void a_renewal_requested_during_a_renewal_is_sent_afterwards(void **state)
{
	struct world *w = *state;
	struct op *op;

	w->o.alone_ttl = 8 * TTL;
	begin(w, 0);
	hand_serve(&w->hand);
	cluster_renew_now(w->c);
	op = hand_take(&w->hand, OP_LEASE);
	hand_apply(&w->hand, op);
	open_other(w, "two-id", "two"); /* wakes this node; the answer in flight does not know of the new node */
	cluster_renew_now(w->c);
	op->on_done(op, op->arg);
	op_free(hand_await(&w->hand, OP_LEASE));
}

static void a_long_lease_is_shortened_when_another_node_arrives(void **state)
{
	struct world *w = *state;
	struct op *op;

	w->o.alone_ttl = 8 * TTL;
	begin(w, 0);
	op = hand_take(&w->hand, OP_LEASE);
	assert_int_equal(lease_op(op)->ttl, 8 * TTL);
	hand_answer(&w->hand, op);
	hand_serve(&w->hand);
	open_other(w, "two-id", "two");
	cluster_renew_now(w->c);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	assert_int_equal(w->company, 1);
	op = hand_await(&w->hand, OP_LEASE);
	assert_int_equal(lease_op(op)->ttl, TTL);
	op_free(op);
}

/* A node that is stopped between the store's commit and the answer would be given up by the shorter lease without knowing it. */
static void a_shorter_lease_is_in_force_from_when_it_is_sent(void **state)
{
	struct world *w = *state;
	struct op *op;
	usec_t before;

	w->o.ttl = 5 * SHORT;
	w->o.alone_ttl = 1000 * SHORT;
	begin(w, 0);
	hand_serve(&w->hand);
	open_other(w, "two-id", "two");
	cluster_renew_now(w->c);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	before = clock_boot(&clock_system);
	assert_in_range(w->end_at, before + 100 * SHORT, before + 1000 * SHORT); /* by the current lease */
	op = hand_await(&w->hand, OP_LEASE);
	assert_int_equal(lease_op(op)->ttl, 5 * SHORT);
	assert_true(lease_op(op)->guarded);
	assert_in_range(w->end_at, 1, clock_boot(&clock_system) + 5 * SHORT); /* the spawner has the shorter deadline before the store */
	assert_in_range(w->kill_at, w->end_at + 1, clock_boot(&clock_system) + 5 * SHORT);
	pause_for(5 * SHORT);
	assert_false(cluster_trusted(w->c));
	hand_answer(&w->hand, op);
	hand_serve(&w->hand);
	renew_once(w);
	assert_true(cluster_trusted(w->c));
}

/* ---- leading ---- */

static void a_leader_does_its_work_with_each_renewal_and_no_other_node_does(void **state)
{
	struct world *w = *state;
	struct op *lead;

	begin(w, 0);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	lead = hand_take(&w->hand, OP_LEAD);
	assert_non_null(lead);
	assert_int_equal(leader_op(lead)->term, 1);
	assert_true(leader_op(lead)->spares); /* nodes that lost the store at the same time may come back */
	hand_answer(&w->hand, lead);
	hand_serve(&w->hand);
	close_other(w, "one-id"); /* frees the leader lease, too */
	open_other(w, "two-id", "two");
	{
		AUTO(op) *other = op_new(OP_LEASE, NULL, NULL);

		op_fill(lease_op(other), .node = "two-id", .name = "two", .ttl = TTL, .stands = true);
		hand_apply(&w->hand, other);
		assert_true(lease_op(other)->leads);
	}
	open_other(w, "one-id", "one");
	cluster_renew_now(w->c);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	assert_false(cluster_leads(w->c));
	assert_null(hand_take(&w->hand, OP_LEAD));
}

static void dead_nodes_are_given_up_only_after_an_unbroken_own_lease(void **state)
{
	struct world *w = *state;
	bool spares = true;

	w->o.ttl = 3 * SHORT;
	begin(w, 0);
	for (int i = 0; i < 200 && spares; i++) {
		struct op *lead;

		cluster_renew_now(w->c);
		hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
		lead = hand_take(&w->hand, OP_LEAD);
		if (lead) {
			spares = leader_op(lead)->spares;
			hand_answer(&w->hand, lead);
		}
		hand_serve(&w->hand);
		pause_for(SHORT / 8);
	}
	assert_false(spares);
	pause_for(w->o.ttl); /* the lease expired: other nodes may have lost the store, too */
	cluster_renew_now(w->c);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	{
		AUTO(op) *lead = hand_take(&w->hand, OP_LEAD);

		assert_true(leader_op(lead)->spares);
	}
}

static void a_fenced_leader_stops_leading(void **state)
{
	struct world *w = *state;

	begin(w, 0);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	assert_true(cluster_leads(w->c));
	w->hand.fails = ERR_FENCED;
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEAD));
	assert_false(cluster_leads(w->c));
}

/* Renews until the node has asked for the leader's work. On a busy machine the short lease may end before the answer. */
static void renew_until_it_leads(struct world *w)
{
	for (;;) {
		hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
		for (size_t i = 0; i < w->hand.n; i++)
			if (w->hand.ops[i]->kind == OP_LEAD)
				return;
		cluster_renew_now(w->c);
	}
}

static void a_leader_that_cannot_do_its_work_for_a_whole_lease_resigns(void **state)
{
	struct world *w = *state;
	struct op *lease;

	w->o.ttl = SHORT;
	begin(w, 0);
	renew_until_it_leads(w);
	pause_for(SHORT + 1);
	w->hand.fails = ERR_BUSY;
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEAD));
	w->hand.fails = ERR_NONE;
	lease = hand_take(&w->hand, OP_LEASE); /* sent without waiting for the next renewal */
	assert_true(lease_op(lease)->resigns);
	assert_false(cluster_leads(w->c));     /* before the store answers */
	hand_answer(&w->hand, lease);
	assert_false(cluster_leads(w->c));
	hand_serve(&w->hand);
	cluster_renew_now(w->c);
	lease = hand_take(&w->hand, OP_LEASE);
	assert_false(lease_op(lease)->resigns);
	assert_false(lease_op(lease)->stands); /* it is no candidate for some time */
	op_free(lease);
}

static void a_leader_that_is_told_to_resign_leaves_time_for_another_node(void **state)
{
	struct world *w = *state;
	AUTO(op) *order = op_new(OP_NODE_COMMAND, NULL, NULL);
	struct op *lease;

	begin(w, 0);
	renew_until_it_leads(w);
	open_other(w, "other", "other");
	op_fill(node_command_op(order), .order = NODE_RESIGN, .now = 1);
	hand_apply(&w->hand, order);
	assert_true(order->ok);
	hand_serve(&w->hand);
	cluster_renew_now(w->c);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	assert_false(cluster_leads(w->c));
	hand_serve(&w->hand);
	cluster_renew_now(w->c);
	lease = hand_take(&w->hand, OP_LEASE);
	assert_false(lease_op(lease)->stands);
	op_free(lease);
}

static void a_leader_whose_work_hangs_resigns_too(void **state)
{
	struct world *w = *state;
	struct op *lease;

	w->o.ttl = SHORT / 4;
	open_other(w, "two-id", "two");
	begin(w, 1);
	renew_until_it_leads(w);
	pause_for(3 * SHORT); /* OP_LEAD is not answered */
	cluster_renew_now(w->c);
	hand_answer(&w->hand, hand_take(&w->hand, OP_LEASE));
	cluster_renew_now(w->c);
	lease = hand_take(&w->hand, OP_LEASE);
	assert_true(lease_op(lease)->resigns);
	op_free(lease);
}

/* After an outage of the whole cluster late slots are no sign of a stalled planner. */
static void a_node_that_joins_a_late_schedule_raises_no_alarm(void **state)
{
	struct world *w = *state;
	struct op *lease;

	begin(w, 0);
	lease = hand_take(&w->hand, OP_LEASE);
	hand_apply(&w->hand, lease);
	lease_op(lease)->first_slot = USEC_SEC; /* long ago */
	snprintf(lease_op(lease)->planner, sizeof(lease_op(lease)->planner), "one");
	lease->on_done(lease, lease->arg);
	assert_true(cluster_overdue(w->c, USEC_SEC) > TTL);
	assert_int_equal(cluster_overdue(w->c, USEC_NEVER), 0); /* planned since the renewal */
	for (size_t i = 0; i < w->hand.n; i++)
		assert_false(w->hand.ops[i]->kind == OP_EVENT && w->hand.ops[i]->act.what == EVENT_NODE_ALARM);
}

#define CLUSTER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CLUSTER_TEST(a_lease_is_trusted_from_before_it_was_asked_for_and_less_a_margin),
		CLUSTER_TEST(trust_ends_by_itself),
		CLUSTER_TEST(a_node_that_was_given_up_trusts_nothing_and_reports_it_once),
		CLUSTER_TEST(a_displaced_node_exits),
		CLUSTER_TEST(a_wrong_clock_is_detected_also_over_a_slow_store),
		CLUSTER_TEST(a_single_node_has_no_deadline),
		CLUSTER_TEST(the_store_learns_of_a_deadline_as_soon_as_there_is_one),
		CLUSTER_TEST(a_last_node_keeps_its_deadline_until_the_store_knows),
		CLUSTER_TEST(a_node_that_leaves_peers_gives_its_spawner_another_run_lease),
		CLUSTER_TEST(a_single_node_that_leaves_leaves_no_deadline),
		CLUSTER_TEST(the_deadline_is_of_the_run_lease_and_trust_of_the_lease),
		CLUSTER_TEST(a_renewal_requested_during_a_renewal_is_sent_afterwards),
		CLUSTER_TEST(a_long_lease_is_shortened_when_another_node_arrives),
		CLUSTER_TEST(a_shorter_lease_is_in_force_from_when_it_is_sent),
		CLUSTER_TEST(a_leader_does_its_work_with_each_renewal_and_no_other_node_does),
		CLUSTER_TEST(dead_nodes_are_given_up_only_after_an_unbroken_own_lease),
		CLUSTER_TEST(a_fenced_leader_stops_leading),
		CLUSTER_TEST(a_leader_that_cannot_do_its_work_for_a_whole_lease_resigns),
		CLUSTER_TEST(a_leader_that_is_told_to_resign_leaves_time_for_another_node),
		CLUSTER_TEST(a_leader_whose_work_hangs_resigns_too),
		CLUSTER_TEST(a_node_that_joins_a_late_schedule_raises_no_alarm),
	};

	return RUN_TESTS(tests);
}
