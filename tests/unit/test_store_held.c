/* SPDX-License-Identifier: Apache-2.0 */
/* What one engine holds until its commit, tried by another on a connection of its own; and whom the leader spares. */
#include "base/text.h"
#include "store_suite.h"
#include <pthread.h>
#include <time.h>

#define OTHER "node-two-engine"
#define TTL (60 * USEC_SEC)

static void open_node(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_node_open(node, name, "spawner-of-it");

	op->node_open.ttl = TTL;
	assert_true(apply_one(s, op));
}

static struct op *op_lease(const char *node, const char *name)
{
	struct op *op = op_new(OP_LEASE, NULL, NULL);

	op->lease = (struct op_lease){.node = node, .name = name, .ttl = TTL, .stands = true, .guarded = true};
	return op;
}

static int64_t renew(struct store *s, const char *node, const char *name)
{
	AUTO(op) *op = op_lease(node, name);

	assert_true(apply_one(s, op));
	return op->lease.leads ? op->lease.term : 0;
}

static struct op *op_lead(const char *node, int64_t term)
{
	struct op *op = op_new(OP_LEAD, NULL, NULL);

	op->lead = (struct op_lead){.node = node, .term = term, .now = T0 + USEC_SEC};
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

/* ---- another engine, at the same time ---- */

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

	b->ok = store_apply(b->s, &b->op, 1, &(struct store_wake){}, &e) && b->op->ok;
	b->done = true;
	return NULL;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* It is kept waiting by what 's' has under way, and goes on after its commit. */
static void must_wait(struct store *s, struct tx *tx, struct store *beside, struct op *op)
{
	struct beside b = {.s = beside, .op = op};
	struct err e = {};

	assert_int_equal(pthread_create(&b.thread, NULL, apply_beside, &b), 0);
	pause_ms(400);
	assert_false(b.done);
	assert_true(count_write(s, &e) && tx_commit(tx, &e));
	pthread_join(b.thread, NULL);
	assert_true(b.ok);
}

static void once(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	(void)arg;
	planned_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = due->slot, .due_at = due->slot});
	ret->next_slot = due->slot + USEC_DAY;
}

/* An engine restarted while its old self is in the middle of a claim (R19). */
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
	assert_true(apply_claim(s, &claim, 1, &e));
	assert_int_equal(claim->claim.claimed.n, 1);
	must_wait(s, &tx, beside, open);
	assert_int_equal(open->node_open.same_spawner.n, 1);
}

static void segments_that_are_being_planned_are_not_given_away(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *plan = op_new(OP_PLAN, NULL, NULL);
	AUTO(op) *lead = op_lead(NODE, 1);
	AUTO(store) *beside = open_or_fail(where_of(state), false);
	AUTO_TX tx = {};
	struct err e = {};

	assert_int_equal(renew(s, NODE, "one"), 1);
	lead_once(s, NODE, 1);
	open_node(s, OTHER, "two");
	plan->plan = (struct op_plan){.node = NODE, .now = T0, .horizon = T0, .limit = 9, .fn = once};
	plan->ok = true;
	assert_true(tx_begin(&tx, s, true, &e));
	assert_true(apply_plan(s, &plan, 1, &e));
	must_wait(s, &tx, beside, lead);
	assert_int_equal(lead->lead.moved, 32);
}

/* F-60: the office is over, and its last work is not. */
static void nobody_leads_before_the_last_leaders_work_is_over(void **state)
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
	assert_true(apply_lead(s, &lead, 1, &e));
	place_query(where_of(state), "UPDATE leases SET until = 1", NULL);
	assert_int_equal(renew(beside, OTHER, "two"), 0); /* at once: to wait would cost the lease */
	assert_true(tx_commit(&tx, &e));
	assert_int_equal(renew(beside, OTHER, "two"), 2);
}

/* ---- one after the other ---- */

static void an_office_is_renewed_and_used_by_its_holder_only(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *not_mine = op_lead(OTHER, 1);
	struct err e = {};

	open_node(s, OTHER, "two");
	assert_int_equal(renew(s, NODE, "one"), 1);
	assert_false(apply_one(s, not_mine)); /* the right term, and the wrong node */
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
	place_query(where_of(state), "UPDATE leases SET until = 1", NULL);
	lead->lead.term = renew(s, NODE, "one");
	lease_ends(where_of(state), OTHER);
	lead->lead.spares = true;
	assert_true(apply_one(s, lead));
	assert_int_equal(lead->lead.dead, 0);
	assert_int_equal(renew(s, OTHER, "two"), 0);
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

/* R25: at most 1.5 * 64 / n move when one comes, leaves, dies or comes back. */
static int64_t moved_by(struct store *s, const char *node, int64_t term)
{
	AUTO(op) *op = op_lead(node, term);

	assert_true(apply_one(s, op));
	return op->lead.moved;
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
	open_node(s, "another-life-of-n3", "n3"); /* a restart: what was its own stays so */
	assert_int_equal(moved_by(s, NODE, 1), 0);
	lease_ends(where_of(state), "n5");
	assert_in_range(moved_by(s, NODE, 1), 1, 3 * SEGMENTS / (2 * 5));
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_new_engine_takes_over_what_its_old_self_is_claiming),
	STORE_TEST(segments_that_are_being_planned_are_not_given_away),
	STORE_TEST(nobody_leads_before_the_last_leaders_work_is_over),
	STORE_TEST(an_office_is_renewed_and_used_by_its_holder_only),
	STORE_TEST(a_leader_does_not_give_itself_up),
	STORE_TEST(whom_the_leader_spares_lives),
	STORE_TEST(what_the_dead_had_running_is_counted_where_it_is_now),
	STORE_TEST(few_segments_move_when_a_node_joins_dies_or_comes_back),
};
const struct suite_part store_held_part = {tests, ELEMENTS(tests)};
