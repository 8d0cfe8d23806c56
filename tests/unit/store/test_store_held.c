/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of row locks: a second engine on its own connection waits for the commit of the first. */
#include "store/counters.h"
#include "store/ops/batch.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/store.h"
#include "store/tx.h"
#include "unit/store/nodes_fixture.h"
#include <pthread.h>
#include <string.h>
#include <time.h>

struct beside {
	struct store *s;
	struct op *op;
	bool ok;
	_Atomic bool done;
	pthread_t thread;
};

static void *apply_beside(void *arg)
{
	struct beside *b = arg;
	struct err e = {};

	b->ok = batch_apply(b->s, &b->op, 1, &(struct batch_wake){}, &e) && b->op->ok;
	b->done = true;
	return NULL;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Checks that the operation waits for the transaction of 's' and continues after its commit. */
static void must_wait(struct store *s, struct tx *tx, struct store *beside, struct op *op)
{
	struct beside b = {.s = beside, .op = op};
	struct err e = {};

	assert_int_equal(pthread_create(&b.thread, NULL, apply_beside, &b), 0);
	pause_ms(400);
	assert_false(b.done);
	assert_true(counters_write(s, &e) && tx_commit(tx, &e));
	pthread_join(b.thread, NULL);
	assert_true(b.ok);
}

/* A run that is claimed while its node is reaped is lost as well. */
static void a_claim_under_way_is_waited_for(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(store) *beside = open_or_fail(where_of(state), false);
	AUTO_TX tx = {};
	struct err e = {};

	open_node(s, OTHER, "two");
	add_job(s, NULL);
	assert_int_equal(renew(s, NODE, "one"), 1);
	place_query(where_of(state), "UPDATE nodes SET guarded = 1, alive_until = alive_until - 59500000, runs_until = runs_until - 59500000 WHERE id = '" OTHER "'", NULL);
	claim_op(claim)->node = OTHER;
	claim->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(claim_apply(s, &claim, 1, &e));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	pause_ms(600); /* its lease ends meanwhile */
	must_wait(s, &tx, beside, lead);
	assert_int_equal(leader_op(lead)->dead, 1);
	assert_int_equal(leader_op(lead)->lost.n, 1);
}

/* On PostgreSQL a lease is renewed while another batch of the engine is in progress. */
static void a_renewal_does_not_wait_for_a_claim(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(store) *beside = open_or_fail(where_of(state), false);
	AUTO_TX tx = {};
	struct err e = {};

	if (!s->db->ops->reconnects)
		return; /* a file has one writer at a time */
	claim->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(claim_apply(s, &claim, 1, &e));
	renew(beside, NODE, "one");
	assert_true(tx_commit(&tx, &e)); /* the claim was not aborted */
}

/* An engine is restarted while a claim of the old one is in progress. */
static void a_new_engine_takes_over_what_its_old_self_is_claiming(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *open = op_node_open(OTHER, "one", SPAWNER);
	AUTO(store) *beside = open_or_fail(where_of(state), false);
	AUTO_TX tx = {};
	struct err e = {};

	add_job(s, NULL);
	claim->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(claim_apply(s, &claim, 1, &e));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	must_wait(s, &tx, beside, open);
	assert_int_equal(node_open_op(open)->same_spawner.n, 1);
}

static void segments_that_are_being_planned_are_not_given_away(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *plan = op_plan_on(NODE);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(store) *beside = open_or_fail(where_of(state), false);
	AUTO_TX tx = {};
	struct err e = {};

	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	open_node(s, OTHER, "two");
	plan->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(plan_apply(s, &plan, 1, &e));
	must_wait(s, &tx, beside, lead);
	assert_int_equal(leader_op(lead)->moved, 32);
}

/* The leader lease has ended while the leader's last work is in progress. */
static void no_node_takes_the_lease_during_the_last_leaders_work(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(store) *beside = open_or_fail(where_of(state), false);
	AUTO_TX tx = {};
	struct err e = {};

	if (!s->db->ops->reconnects)
		return; /* a file has one writer at a time */
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	lead->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(leader_apply(s, &lead, 1, &e));
	leader_lease_ends(where_of(state));
	assert_int_equal(renew(beside, OTHER, "two"), 0); /* without waiting: a wait would cost the node lease */
	assert_true(tx_commit(&tx, &e));
	assert_int_equal(renew(beside, OTHER, "two"), 2);
}

/* A leader that is about to reap this node is stopped: the lock timeout is shorter than the lease, and the session survives it. */
static void a_renewal_that_is_held_up_fails_within_the_lease_and_the_next_one_succeeds(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_lease(NODE, "one", true);
	AUTO(store) *leases = NULL;
	struct batch_wake wake;
	AUTO_TX tx = {};
	AUTO_QUERY q = {};
	struct err e = {};

	if (!s->db->ops->reconnects)
		return; /* a file has one writer at a time */
	assert_true(store_open(&(struct store_options){.where = where_of(state), .lease = 2 * USEC_SEC}, &leases, &e));
	assert_int_equal(renew(leases, NODE, "one"), 1);
	assert_true(tx_begin(&tx, s, true, &e));
	q = query_start(s->db, Q_NODES_NAMED, &e);
	query_text(&q, "one");
	assert_true(query_row(&q));
	assert_false(batch_apply(leases, &op, 1, &wake, &e));
	assert_int_equal(e.kind, ERR_BUSY);
	assert_non_null(strstr(e.msg, "lock timeout")); /* the server timed out before this side did */
	assert_true(tx_commit(&tx, &e));
	assert_int_equal(renew(leases, NODE, "one"), 1);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_claim_under_way_is_waited_for),
	STORE_TEST(a_renewal_does_not_wait_for_a_claim),
	STORE_TEST(a_new_engine_takes_over_what_its_old_self_is_claiming),
	STORE_TEST(segments_that_are_being_planned_are_not_given_away),
	STORE_TEST(no_node_takes_the_lease_during_the_last_leaders_work),
	STORE_TEST(a_renewal_that_is_held_up_fails_within_the_lease_and_the_next_one_succeeds),
};
const struct suite_part store_held_part = {tests, ELEMENTS(tests)};
