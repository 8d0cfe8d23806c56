/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of output relays between nodes. */
#include "base/text.h"
#include "store/ops/node/nodes.h"
#include "store/ops/node/output_relays.h"
#include "store/ops/op.h"
#include "store/read/list/list_relays.h"
#include "store/relay_part.h"
#include "unit/store/nodes_fixture.h"
#include <string.h>

#define AGAIN "node-two-engine-again"
#define RELAY 4711

static struct op *op_relay(enum relay_verb verb, int64_t id, const char *node)
{
	struct op *op = op_new(verb <= RELAY_PUT ? OP_RELAY_ADD : OP_RELAY, NULL, NULL);

	op_fill(output_relay_op(op), .verb = verb, .id = id, .node = node, .ttl = TTL, .run = 7, .attempt = 2, .from = 5, .tail = -1);
	return op;
}

static struct op *op_ask(int64_t id, const char *reader, const char *ran_on)
{
	struct op *op = op_relay(RELAY_ASK, id, reader);

	output_relay_op(op)->ran_on = xstrdup(ran_on);
	return op;
}

static void ask(struct store *s, int64_t id)
{
	AUTO(op) *op = op_ask(id, NODE, OTHER);

	assert_true(apply_one(s, op));
	assert_false(output_relay_op(op)->gone);
}

/* Hands a part over; returns whether the relay still exists. */
static bool put(struct store *s, int64_t id, const char *node, int64_t number, bool last)
{
	AUTO(op) *op = op_relay(RELAY_PUT, id, node);

	output_relay_op(op)->part = (struct relay_part){.number = number, .at = number * 10, .total = 100, .dropped = 3, .last = last,
		.data = xprintf("part%lld", (long long)number)};
	assert_true(apply_one(s, op));
	return !output_relay_op(op)->gone;
}

static struct op *take(struct store *s, int64_t id)
{
	struct op *op = op_relay(RELAY_TAKE, id, NODE);

	assert_true(apply_one(s, op));
	return op;
}

static struct relay_list look(struct store *s, const char *node)
{
	struct relay_list l = {};
	struct err e = {};

	if (!list_relays_of_node(s, node, &l, &e))
		fail_msg("%s", e.msg);
	return l;
}

static void assert_rows(void **state, const char *relays, const char *parts)
{
	struct buf n = {}, m = {};

	place_query(where_of(state), "SELECT count(*) FROM relays", &n);
	place_query(where_of(state), "SELECT count(*) FROM relay_parts", &m);
	assert_true(text_starts(n.data, relays) && text_starts(m.data, parts));
	buf_done(&n);
	buf_done(&m);
}

static void the_node_with_the_output_is_found_and_gets_the_request(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(relay_list) l = {};
	AUTO(op) *op = op_ask(RELAY, NODE, OTHER);

	open_node(s, OTHER, "two");
	output_relay_op(op)->follow = true;
	assert_true(apply_one(s, op));
	assert_string_equal(output_relay_op(op)->holder, OTHER);
	assert_string_equal(output_relay_op(op)->name, "two");
	l = look(s, OTHER);
	assert_int_equal(l.n, 1);
	assert_true(l.v[0].serves && l.v[0].follow && l.v[0].id == RELAY);
	assert_int_equal(l.v[0].run * 100 + l.v[0].attempt * 10 + l.v[0].from, 725);
	assert_int_equal(l.v[0].tail, -1);
}

static void the_engine_that_is_there_now_is_asked(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_ask(RELAY, NODE, OTHER);

	open_node(s, OTHER, "two");
	open_node(s, AGAIN, "two");
	assert_true(apply_one(s, op));
	assert_string_equal(output_relay_op(op)->holder, AGAIN);
}

static void a_node_without_a_lease_is_not_asked(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_ask(RELAY, NODE, OTHER);
	AUTO(op) *unknown = op_ask(RELAY, NODE, "nobody");

	open_node(s, OTHER, "two");
	lease_ends(where_of(state), OTHER);
	assert_true(apply_one(s, op));
	assert_true(output_relay_op(op)->gone);
	assert_string_equal(output_relay_op(op)->name, "two");
	assert_true(apply_one(s, unknown));
	assert_true(output_relay_op(unknown)->gone && !output_relay_op(unknown)->name);
	assert_rows(state, "0", "0");
}

static void parts_are_taken_once_and_in_order(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(relay_list) l = {};

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	assert_true(put(s, RELAY, OTHER, 1, false) && put(s, RELAY, OTHER, 2, false));
	assert_true(put(s, RELAY, OTHER, 2, false)); /* reported twice */
	l = look(s, NODE);
	assert_int_equal(l.n, 1);
	assert_true(!l.v[0].serves && l.v[0].alive && l.v[0].ready == 2);
	for (int64_t i = 1; i <= 2; i++) {
		AUTO(op) *op = take(s, RELAY);
		const struct relay_part *p = &output_relay_op(op)->part;
		AUTO_DONE(relay_list) served = look(s, OTHER);

		assert_int_equal(p->number, i);
		assert_true(p->at == i * 10 && p->total == 100 && p->dropped == 3 && !p->last && !p->note);
		assert_string_equal(p->data, i == 1 ? "part1" : "part2");
		assert_int_equal(served.v[0].taken, i);
	}
	{
		AUTO(op) *nothing = take(s, RELAY);

		assert_int_equal(output_relay_op(nothing)->part.number, 0);
	}
}

static void nothing_is_left_after_the_last_part(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = NULL;

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	assert_true(put(s, RELAY, OTHER, 1, true));
	op = take(s, RELAY);
	assert_true(output_relay_op(op)->part.last);
	assert_rows(state, "0", "0");
	assert_false(put(s, RELAY, OTHER, 2, false));
}

static void only_the_node_that_was_asked_hands_over(void **state)
{
	struct store *s = store_of(state);

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	assert_false(put(s, RELAY, NODE, 1, false));
	assert_rows(state, "1", "0");
}

static void a_dropped_request_is_deleted_with_its_parts(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_relay(RELAY_DROP, RELAY, NODE), *again = op_relay(RELAY_DROP, RELAY, NODE);

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	assert_true(put(s, RELAY, OTHER, 1, false));
	assert_true(apply_one(s, op) && !output_relay_op(op)->gone);
	assert_rows(state, "0", "0");
	assert_true(apply_one(s, again) && output_relay_op(again)->gone);
}

static void a_relay_that_is_kept_lives_and_can_cease_to_follow(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_relay(RELAY_KEEP, RELAY, NODE);
	AUTO_DONE(relay_list) l = {};

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	place_query(where_of(state), "UPDATE relays SET until = 1, follow = 1", NULL);
	output_relay_op(op)->changed = true;
	assert_true(apply_one(s, op) && !output_relay_op(op)->gone);
	l = look(s, OTHER);
	assert_int_equal(l.n, 1);
	assert_false(l.v[0].follow);
}

static void taking_a_part_renews_the_request(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *taken = NULL;
	AUTO_DONE(relay_list) l = {};

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	assert_true(put(s, RELAY, OTHER, 1, false));
	place_query(where_of(state), "UPDATE relays SET until = 1", NULL);
	taken = take(s, RELAY);
	assert_int_equal(output_relay_op(taken)->part.number, 1);
	l = look(s, OTHER);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.v[0].taken, 1);
}

static void a_request_that_is_not_renewed_is_not_served_and_is_deleted(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(relay_list) l = {};

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	assert_true(put(s, RELAY, OTHER, 1, false));
	ask(s, RELAY + 1);
	place_query(where_of(state), "UPDATE relays SET until = 1 WHERE id = 4711", NULL);
	l = look(s, OTHER);
	assert_true(l.n == 1 && l.v[0].id == RELAY + 1);
	assert_false(put(s, RELAY, OTHER, 2, false));
	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	assert_rows(state, "1", "0");
}

static void an_engine_that_leaves_takes_its_wishes_along(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_new(OP_NODE_CLOSE, NULL, NULL);

	open_node(s, OTHER, "two");
	ask(s, RELAY);
	assert_true(put(s, RELAY, OTHER, 1, false));
	op_fill(node_close_op(op), .node = NODE, .now = T0);
	assert_true(apply_one(s, op));
	assert_rows(state, "0", "0");
}

static void a_node_is_not_asked_by_too_many(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_ask(1000, NODE, OTHER);

	open_node(s, OTHER, "two");
	for (int64_t i = 0; i < RELAYS_MAX; i++)
		ask(s, 1 + i);
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_BUSY);
	assert_non_null(strstr(op->err.msg, "'two'"));
	place_query(where_of(state), "UPDATE relays SET until = 1 WHERE id = 1", NULL);
	ask(s, 1001); /* one of them has ended */
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(the_node_with_the_output_is_found_and_gets_the_request),
	STORE_TEST(the_engine_that_is_there_now_is_asked),
	STORE_TEST(a_node_without_a_lease_is_not_asked),
	STORE_TEST(parts_are_taken_once_and_in_order),
	STORE_TEST(nothing_is_left_after_the_last_part),
	STORE_TEST(only_the_node_that_was_asked_hands_over),
	STORE_TEST(a_dropped_request_is_deleted_with_its_parts),
	STORE_TEST(a_relay_that_is_kept_lives_and_can_cease_to_follow),
	STORE_TEST(taking_a_part_renews_the_request),
	STORE_TEST(a_request_that_is_not_renewed_is_not_served_and_is_deleted),
	STORE_TEST(an_engine_that_leaves_takes_its_wishes_along),
	STORE_TEST(a_node_is_not_asked_by_too_many),
};
const struct suite_part store_relay_part = {tests, ELEMENTS(tests)};
