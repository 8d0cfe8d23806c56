/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of segments: each has one node that plans it. */
#include "base/buf.h"
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/plans.h"
#include "unit/store/nodes_fixture.h"

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
	assert_int_equal(plan_op(one)->runs, 0); /* no node has segments before the leader assigns them */
	lead_once(s, NODE, 1);
	assert_true(apply_one(s, one));
	assert_in_range(plan_op(one)->runs, 60, 140);
	assert_true(apply_one(s, two));
	assert_int_equal(plan_op(one)->runs + plan_op(two)->runs, 200);
	assert_true(apply_one(s, again));
	assert_int_equal(plan_op(again)->runs, 0);
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
	assert_int_equal(leader_op(lead)->moved, 32);
	assert_true(apply_one(s, plan));
	assert_int_equal(plan_op(plan)->runs, 50);
	assert_false(apply_one(s, old));
}

/* Its runs may be waited for much longer. */
static void a_node_whose_lease_is_over_plans_nothing_even_if_it_is_not_given_up(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(NODE, 1);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(renew(s, OTHER, "two"), 0);
	lead_once(s, NODE, 1);
	lease_ends(where_of(state), OTHER);
	leader_op(lead)->spares = true;
	assert_true(apply_one(s, lead));
	assert_int_equal(leader_op(lead)->dead, 0);
	assert_int_equal(leader_op(lead)->live, 1);
	assert_int_equal(leader_op(lead)->moved, 32);
}

static void assert_terms(const char *where, const char *wanted)
{
	AUTO_DONE(buf) out = {};

	place_query(where, "SELECT count(*), min(term), max(term) FROM segments", &out);
	assert_string_equal(out.data, wanted);
}

static void the_term_of_a_segment_grows_whenever_it_changes_hands(void **state)
{
	struct store *s = store_of(state);

	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	assert_terms(where_of(state), "64|1|1|\n");
	open_node(s, OTHER, "one"); /* a new engine of this node */
	assert_terms(where_of(state), "64|2|2|\n");
	open_node(s, NODE, "two");
	assert_int_equal(renew(s, OTHER, "one"), 2);
	lead_once(s, OTHER, 2);
	assert_terms(where_of(state), "64|2|3|\n");
}

static void the_next_slot_to_wake_up_for_is_one_of_our_own(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *mine = op_new(OP_NODE_POLL, NULL, NULL);
	AUTO(op) *nothing = op_new(OP_NODE_POLL, NULL, NULL);
	struct batch_wake wake;

	add_due(s, NULL, T0 + USEC_HOUR);
	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	open_node(s, OTHER, "two");
	node_poll_op(mine)->node = NODE;
	wake = apply_all(s, &mine, 1);
	assert_int_equal(wake.next_slot, T0 + USEC_HOUR);
	assert_true(node_poll_op(mine)->segments == UINT64_MAX);
	assert_int_equal(node_poll_op(mine)->others, 1);
	node_poll_op(nothing)->node = OTHER;
	wake = apply_all(s, &nothing, 1);
	assert_true(wake.next_slot == USEC_NEVER);
}

/* At most 1.5 * 64 / n segments move when a node joins, leaves, dies or comes back. */
static int64_t moved_by(struct store *s, const char *node, int64_t term)
{
	AUTO(op) *op = op_lead(node, term);

	assert_true(apply_one(s, op));
	return leader_op(op)->moved;
}

static void few_segments_move_when_a_node_joins_dies_or_comes_back(void **state)
{
	struct store *s = store_of(state);

	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_int_equal(moved_by(s, NODE, 1), SEGMENTS);
	for (int n = 2; n <= 6; n++) {
		AUTO_TEXT name = xprintf("n%d", n);

		open_node(s, name, name);
		assert_int_equal(renew(s, name, name), 0);
		assert_in_range(moved_by(s, NODE, 1), 1, 3 * SEGMENTS / (2 * n));
		assert_int_equal(moved_by(s, NODE, 1), 0);
	}
	open_node(s, "another-life-of-n3", "n3"); /* a restart keeps its segments */
	assert_int_equal(moved_by(s, NODE, 1), 0);
	lease_ends(where_of(state), "n5");
	assert_in_range(moved_by(s, NODE, 1), 1, 3 * SEGMENTS / (2 * 5));
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(each_node_plans_its_own_segments_only),
	STORE_TEST(the_segments_of_the_dead_are_planned_by_the_living),
	STORE_TEST(a_node_whose_lease_is_over_plans_nothing_even_if_it_is_not_given_up),
	STORE_TEST(the_term_of_a_segment_grows_whenever_it_changes_hands),
	STORE_TEST(the_next_slot_to_wake_up_for_is_one_of_our_own),
	STORE_TEST(few_segments_move_when_a_node_joins_dies_or_comes_back),
};
const struct suite_part store_segments_part = {tests, ELEMENTS(tests)};
