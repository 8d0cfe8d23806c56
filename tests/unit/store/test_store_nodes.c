/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of node lists, node commands and labels. */
#include "store/ops/job/jobs.h"
#include "store/ops/node/node_commands.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/run_cancel.h"
#include "store/read/list/list_nodes.h"
#include "unit/store/nodes_fixture.h"

static void give_order(struct store *s, const char *name, enum node_command order, bool changes)
{
	AUTO(op) *op = op_new(OP_NODE_COMMAND, NULL, NULL);

	op_fill(node_command_op(op), .name = name, .order = order, .now = T0);
	assert_true(apply_one(s, op));
	assert_int_equal(node_command_op(op)->changed, changes);
}

static void a_drained_node_claims_plans_and_leads_nothing(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *lead = op_lead(OTHER, 2);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *look = op_new(OP_NODE_POLL, NULL, NULL);

	add_job(s, NULL);
	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	give_order(s, "one", NODE_DRAIN, true);
	give_order(s, "one", NODE_DRAIN, false);
	assert_int_equal(renew(s, NODE, "one"), 0);
	assert_int_equal(renew(s, OTHER, "two"), 2);
	assert_true(apply_one(s, lead));
	node_poll_op(look)->node = NODE;
	assert_true(apply_one(s, look));
	assert_true(node_poll_op(look)->segments == 0);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 0);
	give_order(s, "one", NODE_UNDRAIN, true);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
}

static void a_drained_node_does_not_ask_for_due_runs_again(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(op) *undrain = op_new(OP_NODE_COMMAND, NULL, NULL);
	AUTO(op) *look = op_new(OP_NODE_POLL, NULL, NULL);

	add_job(s, NULL);
	assert_true(apply_all(s, &claim, 1).next_due > T0);
	give_order(s, "one", NODE_DRAIN, true);
	add_job(s, NULL);
	assert_int_equal(apply_all(s, &claim, 1).next_due, USEC_NEVER);
	assert_int_equal(claim_op(claim)->claimed.n, 0);
	op_fill(node_command_op(undrain), .name = "one", .order = NODE_UNDRAIN, .now = T0);
	assert_true(apply_all(s, &undrain, 1).next_due <= T0);
	/* another node may have ended the drain: this node then polls its row */
	give_order(s, "one", NODE_DRAIN, true);
	assert_int_equal(apply_all(s, &claim, 1).next_due, USEC_NEVER);
	node_poll_op(look)->node = NODE;
	assert_true(apply_all(s, &look, 1).next_due <= T0);
}

static void an_order_to_resign_ends_this_term_and_no_later_one(void **state)
{
	struct store *s = store_of(state);

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	give_order(s, NULL, NODE_RESIGN, true);
	assert_int_equal(renew(s, NODE, "one"), 0);
	assert_int_equal(renew(s, NODE, "one"), 2);
	assert_int_equal(renew(s, NODE, "one"), 2);
}

static void a_leader_cannot_resign_without_a_successor(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *resign = op_new(OP_NODE_COMMAND, NULL, NULL);
	AUTO(op) *drain = op_new(OP_NODE_COMMAND, NULL, NULL);

	op_fill(node_command_op(resign), .order = NODE_RESIGN, .now = T0);
	op_fill(node_command_op(drain), .name = "one", .order = NODE_DRAIN, .now = T0);
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_false(apply_one(s, resign)); /* the only node */
	assert_int_equal(resign->err.kind, ERR_CONFLICT);
	open_node(s, OTHER, "two");
	give_order(s, "two", NODE_DRAIN, true);
	assert_false(apply_one(s, resign)); /* the other node is drained */
	assert_true(apply_one(s, drain));
	assert_int_equal(node_command_op(drain)->others, 0);
	give_order(s, "two", NODE_UNDRAIN, true);
	assert_true(apply_one(s, drain));
	assert_int_equal(node_command_op(drain)->others, 1);
	assert_true(apply_one(s, resign));
	lease_ends(where_of(state), OTHER);
	assert_false(apply_one(s, resign)); /* the lease of the other node has ended */
}

static void commands_to_unknown_nodes_are_refused(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_new(OP_NODE_COMMAND, NULL, NULL);

	op_fill(node_command_op(op), .name = "nowhere", .order = NODE_DRAIN, .now = T0);
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_NOT_FOUND);
	op_fill(node_command_op(op), .name = "one", .order = NODE_RESIGN, .now = T0);
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_CONFLICT);
}

static void a_node_sees_which_of_its_runs_are_to_end(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *run = run_elsewhere(s);
	AUTO(op) *cancel = op_new(OP_RUN_CANCEL, NULL, NULL);
	AUTO(op) *look = op_new(OP_NODE_POLL, NULL, NULL);

	node_poll_op(look)->node = OTHER;
	assert_true(apply_one(s, look));
	assert_int_equal(node_poll_op(look)->to_end.n, 0);
	op_fill(run_cancel_op(cancel), .uid = -1, .id = run->id, .now = T0 + 2);
	assert_true(apply_one(s, cancel));
	assert_true(apply_one(s, look));
	assert_int_equal(node_poll_op(look)->to_end.n, 1);
	assert_int_equal(node_poll_op(look)->to_end.v[0].run, run->id);
	assert_int_equal(node_poll_op(look)->to_end.v[0].fence, run->fence);
}

static void people_see_the_nodes_and_who_leads(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(node_list) l = {};
	struct err e = {};

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, OTHER, "two"), 1);
	lead_once(s, OTHER, 1);
	assert_true(list_nodes_open(s, &l, &e));
	assert_int_equal(l.n, 2);
	assert_string_equal(l.leader, "two");
	assert_int_equal(l.term, 1);
	assert_string_equal(l.v[0].name, "one");
	assert_false(l.v[0].leads);
	assert_true(l.v[1].leads);
	assert_int_equal(l.v[0].segments + l.v[1].segments, 64);
	assert_in_range(l.v[1].lease_remains, TTL / 2, TTL);
}

/* Checks the number of nodes that left, and returns the first. */
static struct node_view *first_gone(struct store *s, usec_t now, size_t n, struct node_list *l)
{
	struct err e = {};

	node_list_done(l);
	assert_true(list_nodes_gone(s, now, l, &e));
	assert_int_equal(l->n, n);
	return l->v;
}

static void a_node_that_left_or_was_lost_is_shown_until_it_is_back_or_long_gone(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(node_list) l = {};
	AUTO(op) *close = op_new(OP_NODE_CLOSE, NULL, NULL);
	const struct node_view *v;

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	first_gone(s, T0, 0, &l);
	op_fill(node_close_op(close), .node = OTHER, .now = T0);
	assert_true(apply_one(s, close));
	v = first_gone(s, T0 + USEC_HOUR, 1, &l);
	assert_string_equal(v->name, "two");
	assert_true(v->left_at == T0 && !v->lost);
	first_gone(s, T0 + 2 * USEC_DAY, 0, &l);
	open_node(s, OTHER, "two");
	first_gone(s, T0, 0, &l);
	lease_ends(where_of(state), OTHER);
	lead_once(s, NODE, 1);
	v = first_gone(s, T0 + 6 * USEC_DAY, 1, &l);
	assert_string_equal(v->name, "two");
	assert_true(v->left_at && v->lost);
	first_gone(s, T0 + 8 * USEC_DAY, 0, &l);
	open_node(s, OTHER, "two");
	first_gone(s, T0, 0, &l);
}

static void a_node_that_is_away_can_be_drained_and_is_shown_as_that(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(node_list) l = {};
	AUTO(op) *close = op_new(OP_NODE_CLOSE, NULL, NULL);
	AUTO(op) *nowhere = op_new(OP_NODE_COMMAND, NULL, NULL);

	open_node(s, OTHER, "two");
	op_fill(node_close_op(close), .node = OTHER, .now = T0);
	assert_true(apply_one(s, close));
	assert_false(first_gone(s, T0 + USEC_HOUR, 1, &l)->draining);
	give_order(s, "two", NODE_DRAIN, true);
	assert_true(first_gone(s, T0 + 60 * USEC_DAY, 1, &l)->draining);
	give_order(s, "two", NODE_UNDRAIN, true);
	first_gone(s, T0 + 60 * USEC_DAY, 0, &l);
	op_fill(node_command_op(nowhere), .name = "tow", .order = NODE_UNDRAIN, .now = T0);
	assert_false(apply_one(s, nowhere));
	assert_int_equal(nowhere->err.kind, ERR_NOT_FOUND);
}

static size_t claim_with(struct store *s, const char *labels)
{
	AUTO(op) *claim = op_claim(5, T0);

	claim_op(claim)->labels = labels;
	assert_true(apply_one(s, claim));
	return claim_op(claim)->claimed.n;
}

static void a_run_with_labels_waits_for_a_node_that_has_them_all(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_add(NULL, NULL, "{\"node_labels\":[\"zone=a\",\"gpu=yes\"]}");

	job_add_op(op)->job.policy.gated = GATED_LABELS;
	assert_true(apply_one(s, op));
	assert_int_equal(claim_with(s, NULL), 0);
	assert_int_equal(claim_with(s, "\nzone=a\n"), 0);
	assert_int_equal(claim_with(s, "\nzone=ab\ngpu=yes\n"), 0);
	add_job(s, "anywhere");
	assert_int_equal(claim_with(s, "\nzone=b\n"), 1); /* it does not block other runs */
	assert_int_equal(claim_with(s, "\ngpu=yes\nzone=a\nmore=x\n"), 1);
}

static bool open_second(struct store *s, const char *spawner, bool in_use, const struct strv *past, const char *boot)
{
	AUTO(op) *op = op_node_open(OTHER, "three", spawner);
	bool opened;

	node_open_op(op)->ttl = TTL;
	node_open_op(op)->boot = boot;
	node_open_op(op)->in_use = in_use;
	node_open_op(op)->past_spawners = past;
	opened = apply_one(s, op);
	assert_true(opened != node_open_op(op)->rival);
	assert_true(opened || op->err.kind == ERR_CONFLICT);
	return opened;
}

static void a_live_row_with_an_unknown_spawner_refuses_a_second_daemon_of_its_name(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_node_open("first", "three", "spawner-1");
	AUTO_DONE(strv) past = {};

	node_open_op(first)->ttl = TTL;
	node_open_op(first)->boot = "boot";
	assert_true(apply_one(s, first));
	assert_false(open_second(s, "spawner-2", true, NULL, "boot"));
	strv_add(&past, "spawner-0");
	assert_false(open_second(s, "spawner-2", true, &past, "boot"));
	assert_true(open_second(s, "spawner-1", true, &past, "boot")); /* a restart: the same spawner */
}

static void the_row_of_a_daemon_that_is_known_to_have_ended_is_taken_over(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_node_open("first", "three", "spawner-1");
	AUTO_DONE(strv) past = {};

	node_open_op(first)->ttl = TTL;
	node_open_op(first)->boot = "boot";
	assert_true(apply_one(s, first));
	strv_add(&past, "spawner-0");
	strv_add(&past, "spawner-1");
	assert_true(open_second(s, "spawner-2", true, &past, "boot"));
	assert_true(open_second(s, "spawner-3", false, NULL, "boot")); /* no other process has the file open */
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_drained_node_claims_plans_and_leads_nothing),
	STORE_TEST(a_drained_node_does_not_ask_for_due_runs_again),
	STORE_TEST(an_order_to_resign_ends_this_term_and_no_later_one),
	STORE_TEST(a_leader_cannot_resign_without_a_successor),
	STORE_TEST(commands_to_unknown_nodes_are_refused),
	STORE_TEST(a_node_sees_which_of_its_runs_are_to_end),
	STORE_TEST(people_see_the_nodes_and_who_leads),
	STORE_TEST(a_node_that_is_away_can_be_drained_and_is_shown_as_that),
	STORE_TEST(a_node_that_left_or_was_lost_is_shown_until_it_is_back_or_long_gone),
	STORE_TEST(a_run_with_labels_waits_for_a_node_that_has_them_all),
	STORE_TEST(a_live_row_with_an_unknown_spawner_refuses_a_second_daemon_of_its_name),
	STORE_TEST(the_row_of_a_daemon_that_is_known_to_have_ended_is_taken_over),
};
const struct suite_part store_nodes_part = {tests, ELEMENTS(tests)};
