/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the leader lease: holder, duration, term, and fencing of a deposed leader. */
#include "base/buf.h"
#include "store/ops/node/leader.h"
#include "store/ops/node/leases.h"
#include "store/ops/node/node_commands.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/tx.h"
#include "unit/store/nodes_fixture.h"

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
	leader_lease_ends(where_of(state));
	assert_int_equal(renew(s, OTHER, "two"), 2);
	assert_int_equal(renew(s, NODE, "one"), 0);
	leader_lease_ends(where_of(state));
	assert_int_equal(renew(s, NODE, "one"), 3);
}

static void a_leader_without_successor_continues_in_its_term(void **state)
{
	struct store *s = store_of(state);

	assert_int_equal(renew(s, NODE, "one"), 1);
	leader_lease_ends(where_of(state));
	assert_int_equal(renew(s, NODE, "one"), 1);
}

static void a_leaving_node_frees_only_its_own_leader_lease(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *follower = op_new(OP_NODE_CLOSE, NULL, NULL);
	AUTO(op) *leader = op_new(OP_NODE_CLOSE, NULL, NULL);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	op_fill(node_close_op(follower), .node = OTHER, .now = T0);
	assert_true(apply_one(s, follower));
	lead_once(s, NODE, 1);
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, OTHER, "two"), 0);
	op_fill(node_close_op(leader), .node = NODE, .now = T0);
	assert_true(apply_one(s, leader));
	assert_int_equal(renew(s, OTHER, "two"), 2);
}

/* Opens a second engine that has seen a free leader lease and has not read it since. */
static struct store *store_that_saw_it_free(const char *where)
{
	struct store *s = open_or_fail(where, false);
	AUTO(op) *look = op_lease(OTHER, "two", false);

	leader_lease_ends(where);
	assert_true(apply_one(s, look));
	assert_true(lease_op(look)->leader_remains == 0 && !lease_op(look)->leads);
	return s;
}

static void assert_office(const char *where, const char *wanted)
{
	AUTO_DONE(buf) out = {};

	place_query(where, "SELECT holder, term FROM leases WHERE name = 'leader'", &out);
	assert_string_equal(out.data, wanted);
}

static void an_office_that_was_free_a_moment_ago_is_not_taken(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lease = op_lease(OTHER, "two", true);
	AUTO(store) *theirs = NULL;

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	theirs = store_that_saw_it_free(where_of(state));
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_op(lease)->at = T0 + 9 * USEC_SEC;
	assert_true(apply_one(theirs, lease));
	assert_false(lease_op(lease)->leads);
	assert_true(lease_op(lease)->worked < T0 + 9 * USEC_SEC); /* it did not begin, either */
	assert_office(where_of(state), NODE "|1|\n");
}

static void a_lost_or_drained_node_takes_no_free_leader_lease(void **state)
{
	struct store *s = store_of(state);
	AUTO(store) *theirs = NULL;
	AUTO(op) *drain = op_new(OP_NODE_COMMAND, NULL, NULL);
	AUTO(op) *close = op_new(OP_NODE_CLOSE, NULL, NULL);
	AUTO(op) *lease = op_lease(OTHER, "two", true);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	theirs = store_that_saw_it_free(where_of(state));
	op_fill(node_command_op(drain), .name = "two", .order = NODE_DRAIN, .now = T0);
	assert_true(apply_one(s, drain));
	assert_int_equal(renew(theirs, OTHER, "two"), 0);
	assert_office(where_of(state), NODE "|1|\n");
	node_command_op(drain)->order = NODE_UNDRAIN;
	assert_true(apply_one(s, drain));
	op_fill(node_close_op(close), .node = OTHER, .now = T0);
	assert_true(apply_one(s, close));
	assert_false(apply_one(theirs, lease));
	assert_int_equal(lease->err.kind, ERR_FENCED);
	assert_office(where_of(state), NODE "|1|\n");
}

static void a_node_that_is_no_candidate_does_not_lead(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_lease(NODE, "one", false);

	assert_true(apply_one(s, op));
	assert_false(lease_op(op)->leads);
}

static void those_who_follow_see_whether_the_leader_works(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *alone = op_lead(NODE, 1);
	AUTO(op) *watched = op_lead(NODE, 1);
	AUTO(op) *before = op_lease(OTHER, "two", true);
	AUTO(op) *after = op_lease(OTHER, "two", true);
	AUTO(op) *next = op_lease(OTHER, "two", true);
	usec_t taken;

	assert_int_equal(renew(s, NODE, "one"), 1);
	leader_op(alone)->now = T0 + 2 * USEC_SEC;
	assert_true(apply_one(s, alone)); /* a single node does not record it */
	open_node(s, OTHER, "two");
	assert_true(apply_one(s, before));
	assert_string_equal(lease_op(before)->leader, "one");
	taken = lease_op(before)->worked;
	assert_true(taken < leader_op(alone)->now);
	leader_op(watched)->now = T0 + 3 * USEC_SEC;
	assert_true(apply_one(s, watched));
	assert_true(apply_one(s, after));
	assert_int_equal(lease_op(after)->worked, T0 + 3 * USEC_SEC);
	leader_lease_ends(where_of(state));
	lease_op(next)->at = T0 + 4 * USEC_SEC;
	assert_true(apply_one(s, next));
	assert_true(lease_op(next)->leads && lease_op(next)->term == 2);
	assert_int_equal(lease_op(next)->worked, T0 + 4 * USEC_SEC); /* the new leader has just begun */
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
	assert_int_equal(lease_op(op)->first_slot, T0 + USEC_SEC);
	assert_string_equal(lease_op(op)->planner, "one");
}

static void a_leader_that_resigns_is_followed_at_once(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *resign = op_lease(NODE, "one", true);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	lease_op(resign)->resigns = true;
	assert_true(apply_one(s, resign));
	assert_false(lease_op(resign)->leads);
	assert_string_equal(lease_op(resign)->leader, ""); /* otherwise other nodes would find it idle */
	assert_int_equal(lease_op(resign)->leader_remains, 0);
	assert_int_equal(renew(s, OTHER, "two"), 2);
}

static void a_leader_that_leaves_is_followed_at_once(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *leave = op_new(OP_NODE_CLOSE, NULL, NULL);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	op_fill(node_close_op(leave), .node = NODE, .now = T0);
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
	leader_lease_ends(where_of(state));
	assert_false(apply_one(s, old)); /* even before there is another leader */
	assert_int_equal(old->err.kind, ERR_FENCED);
	assert_int_equal(renew(s, OTHER, "two"), 2);
	lease_ends(where_of(state), NODE);
	assert_false(apply_one(s, old));
	assert_int_equal(old->err.kind, ERR_FENCED);
	assert_false(apply_one(s, wrong)); /* right node, wrong term */
	place_query(where_of(state), "SELECT count(*) FROM segments", &rows);
	assert_string_equal(rows.data, "0|\n");
}

static void an_office_is_renewed_and_used_by_its_holder_only(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *not_mine = op_lead(OTHER, 1);
	struct err e = {};

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_false(apply_one(s, not_mine)); /* right term, wrong node */
	assert_int_equal(not_mine->err.kind, ERR_FENCED);
	{
		AUTO_TX tx = {};
		AUTO_QUERY q = {};

		assert_true(tx_begin(&tx, s, true, &e));
		q = query_start(s->db, Q_LEADER_RENEW, &e);
		query_text(&q, OTHER);
		query_int(&q, TTL);
		assert_false(query_row(&q));
		assert_false(q.failed);
	}
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(one_node_leads_and_its_term_stays),
	STORE_TEST(another_leads_only_after_the_lease_and_with_a_greater_term),
	STORE_TEST(a_leader_without_successor_continues_in_its_term),
	STORE_TEST(a_leaving_node_frees_only_its_own_leader_lease),
	STORE_TEST(an_office_that_was_free_a_moment_ago_is_not_taken),
	STORE_TEST(a_lost_or_drained_node_takes_no_free_leader_lease),
	STORE_TEST(a_node_that_is_no_candidate_does_not_lead),
	STORE_TEST(those_who_follow_see_whether_the_leader_works),
	STORE_TEST(the_first_slot_of_all_names_the_node_that_is_to_plan_it),
	STORE_TEST(a_leader_that_resigns_is_followed_at_once),
	STORE_TEST(a_leader_that_leaves_is_followed_at_once),
	STORE_TEST(a_deposed_leader_changes_nothing),
	STORE_TEST(an_office_is_renewed_and_used_by_its_holder_only),
};
const struct suite_part store_leader_part = {tests, ELEMENTS(tests)};
