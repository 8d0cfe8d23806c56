/* SPDX-License-Identifier: Apache-2.0 */
/* The order of events on a server: readers miss none while several transactions write, upgrades, restores. */
#include "base/text.h"
#include "store/ops/event_op.h"
#include "store/ops/job/jobs.h"
#include "store/ops/node/nodes.h"
#include "store/read/events_held.h"
#include "store/read/list/list_events.h"
#include "unit/store/claim_fixture.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOT 16384     /* numbers of one transaction */
#define WRITERS 4
#define BATCHES 60     /* of each writer */

/* Writes one event in a batch of its own. */
static void put(struct store *s, int64_t job)
{
	AUTO(op) *op = op_new(OP_EVENT, NULL, NULL);

	op->act = (struct act){.by = {.uid = 1000, .who = "alice"}, .what = EVENT_JOB_CANCEL};
	op_fill(event_op(op), .result = "denied", .job = job, .owner = 1000, .now = T0);
	assert_true(apply_one(s, op));
}

/* As a transaction of another node would write it, on the connection of sql(). */
static void put_beside(void **state, int64_t job)
{
	sql(state, "INSERT INTO events (id, at, uid, owner, what, job, run, result) OVERRIDING SYSTEM VALUE "
		"SELECT split_part(value, ' ', 1)::bigint + pg_current_xact_id()::text::bigint * 16384, 7, 0, 0, 'job.cancel', %lld, 0, 'ok' "
		"FROM meta WHERE key = 'events_base'", (long long)job);
}

/* Reads the events after *from and moves it; returns their jobs, as "1 2 ". */
static char *follow(struct store *s, int64_t *from, bool *ret_held)
{
	AUTO_DONE(event_list) l = {};
	AUTO_DONE(buf) jobs = {};
	struct err e = {};

	buf_str(&jobs, "");
	if (!list_events_page(s, &(struct event_filter){.uid = -1, .ascending = true, .from = *from, .limit = 1000}, &l, &e))
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < l.n; i++) {
		assert_true(l.v[i]->id > *from);
		*from = l.v[i]->id;
		buf_printf(&jobs, "%lld ", (long long)l.v[i]->job);
	}
	if (ret_held)
		*ret_held = l.held;
	return xstrdup(jobs.data);
}

static void assert_follows(struct store *s, int64_t *from, const char *jobs, bool held)
{
	bool is_held;
	AUTO_TEXT got = follow(s, from, &is_held);

	assert_string_equal(got, jobs);
	assert_int_equal(is_held, held);
}

static int64_t position(struct store *s)
{
	struct err e = {};
	int64_t ret = 0;

	if (!list_events_newest(s, &ret, &e))
		fail_msg("%s", e.msg);
	return ret;
}

static int64_t newest_id(void **state)
{
	AUTO_TEXT id = ask(state, "SELECT max(id) FROM events");

	return strtoll(id, NULL, 10);
}

/* ---- readers ---- */

static void a_reader_waits_for_a_transaction_that_began_before(void **state)
{
	struct fixture *f = *state;
	struct store *s;
	struct event_filter down = {.uid = -1, .limit = 1};
	AUTO_DONE(event_list) list = {};
	AUTO_TEXT who = NULL;
	usec_t held;
	int64_t from;

	put(f->store, 1);
	reopen(f); /* the lock is not needed any more */
	s = f->store;
	from = position(s);
	sql(state, "BEGIN; UPDATE meta SET value = value WHERE key = 'schema'"); /* it has a number now, and no event */
	put(s, 2);
	assert_follows(s, &from, "", true);
	assert_true(position(s) == from);
	assert_true(events_held_since(s, &held, NULL));
	assert_int_equal(held, T0);
	assert_true(events_held_by(s, &who, NULL));
	assert_true(text_starts(who, "process "));
	assert_true(list_events_page(s, &down, &list, NULL)); /* a list is not delayed */
	assert_int_equal(list.v[0]->job, 2);
	put_beside(state, 3);
	assert_follows(s, &from, "", true);
	sql(state, "COMMIT");
	assert_follows(s, &from, "3 2 ", false);
	assert_follows(s, &from, "", false);
	assert_true(events_held_since(s, &held, NULL));
	assert_int_equal(held, 0);
}

static void a_batch_does_not_wait_for_the_events_of_another(void **state)
{
	struct fixture *f = *state;
	int64_t from;

	put(f->store, 1);
	reopen(f);
	from = position(f->store);
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'events' FOR UPDATE");
	put_beside(state, 2);
	put(f->store, 3); /* would time out */
	sql(state, "COMMIT");
	assert_follows(f->store, &from, "2 3 ", false);
}

/* ---- several writers ---- */

struct writer {
	struct store *s;
	int64_t job;
	pthread_t thread;
};

static void *writer_main(void *arg)
{
	struct writer *w = arg;

	for (int i = 0; i < BATCHES; i++) {
		struct op *ops[3];

		for (size_t k = 0; k < ELEMENTS(ops); k++) {
			ops[k] = op_new(OP_EVENT, NULL, NULL);
			ops[k]->act = (struct act){.by = {.uid = 1000, .who = "alice"}, .what = EVENT_JOB_CANCEL};
			op_fill(event_op(ops[k]), .result = "denied", .job = w->job, .owner = 1000, .now = T0);
		}
		batch_apply(w->s, ops, ELEMENTS(ops), &(struct batch_wake){}, NULL);
		for (size_t k = 0; k < ELEMENTS(ops); k++)
			op_free(ops[k]);
	}
	return NULL;
}

/* A node of an earlier version, as its row is in the store. */
static void add_old_node(void **state)
{
	sql(state, "INSERT INTO nodes (id, name, spawner, host, opened_at, alive_until) VALUES ('old', 'old', 'old', 'old', 0, 1)");
}

/* The store as it is after an upgrade: with the numbers of the sequence. */
static void forget_numbers(void **state)
{
	struct fixture *f = *state;

	sql(state, "DELETE FROM meta WHERE key = 'events_base'; DELETE FROM events");
	reopen(f);
}

/* The old node leaves while they write, so the order changes under way. */
static void a_follower_of_several_writers_gets_each_event_once_and_in_order(void **state)
{
	struct fixture *f = *state;
	struct writer w[WRITERS];
	int64_t from, old;
	size_t seen = 0;

	forget_numbers(state);
	add_old_node(state);
	from = position(f->store);
	for (int i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){.s = open_or_fail(f->where, false), .job = i + 1};
		pthread_create(&w[i].thread, NULL, writer_main, &w[i]);
	}
	for (int tries = 0; seen < (size_t)WRITERS * BATCHES * 3 && tries < 20000; tries++) {
		AUTO_TEXT jobs = follow(f->store, &from, NULL);

		seen += strlen(jobs) / 2;
		if (seen > 100)
			sql(state, "UPDATE nodes SET closed_at = 1 WHERE id = 'old'");
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		store_free(w[i].s);
	}
	assert_int_equal(seen, WRITERS * BATCHES * 3);
	put(f->store, 1); /* on a busy machine the old node may have left after the last batch of the writers */
	put(f->store, 2);
	old = newest_id(state);
	assert_true(old > WRITERS * BATCHES * 3 + SLOT); /* the numbers have changed */
}

/* A bulk may have more events than a transaction has numbers. */
static void a_batch_with_many_events_uses_no_number_of_another(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *bulk = op_new(OP_JOB_BULK, NULL, NULL);
	AUTO(op) *add = op_add(NULL, NULL, NULL);
	AUTO_TEXT slots = NULL;
	size_t n = 16500;

	job_bulk_op(bulk)->n = n;
	job_bulk_op(bulk)->v = xcalloc(n, sizeof(struct job_new));
	for (size_t i = 0; i < n; i++)
		job_bulk_op(bulk)->v[i] = job_add_op(add)->job;
	put(s, 1);
	assert_true(apply_one(s, bulk));
	put(s, 2);
	slots = ask(state, "SELECT string_agg(n::text, ' ' ORDER BY slot) FROM (SELECT count(*) AS n, "
		"(id - (SELECT split_part(value, ' ', 1)::bigint FROM meta WHERE key = 'events_base')) / 16384 AS slot "
		"FROM events WHERE id >= (SELECT id FROM events WHERE job = 1 AND what = 'job.cancel') GROUP BY 2) AS slots");
	assert_string_equal(slots, "1 16000 500 1|\n");
}

/* ---- upgrades ---- */

static void while_a_node_of_an_earlier_version_is_open_events_are_in_the_order_of_commits(void **state)
{
	struct fixture *f = *state;
	struct store *second;
	int64_t from, last;

	forget_numbers(state);
	second = open_or_fail(f->where, false);
	add_old_node(state);
	put(f->store, 1);
	last = newest_id(state);
	sql(state, "BEGIN; UPDATE meta SET value = value WHERE key = 'schema'"); /* a transaction with an older number */
	put(f->store, 2);
	put(second, 3);
	assert_int_equal(newest_id(state), last + 2);
	from = last;
	assert_follows(f->store, &from, "2 3 ", false);
	sql(state, "UPDATE nodes SET closed_at = 1 WHERE id = 'old'");
	sql(state, "COMMIT");
	put(second, 4);
	put(f->store, 5);
	assert_true(newest_id(state) >= last + 2 + SLOT);
	assert_follows(f->store, &from, "4 5 ", false);
	store_free(second);
}

static void *put_main(void *arg)
{
	put(arg, 1);
	return NULL;
}

static void wait_for_a_waiter(void **state)
{
	for (int i = 0; i < 1000; i++) {
		AUTO_TEXT waiting = ask(state, "SELECT count(*) FROM pg_locks WHERE NOT granted");

		if (atoi(waiting) > 0)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	fail_msg("no session waited for a lock");
}

/* The node of the earlier version holds the lock while it commits events with lower numbers. */
static void while_a_node_of_an_earlier_version_is_open_commits_wait_for_each_other(void **state)
{
	struct fixture *f = *state;
	struct store *reader;
	pthread_t thread;
	int64_t from;

	forget_numbers(state);
	add_old_node(state);
	reader = open_or_fail(f->where, true);
	from = position(reader);
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'events' FOR UPDATE");
	sql(state, "INSERT INTO events (at, uid, owner, what, job, run, result) VALUES (0, 0, 0, 'job.cancel', 9, 0, 'ok')");
	pthread_create(&thread, NULL, put_main, f->store);
	wait_for_a_waiter(state);
	assert_follows(reader, &from, "", false);
	sql(state, "COMMIT");
	pthread_join(thread, NULL);
	assert_follows(reader, &from, "9 1 ", false);
	store_free(reader);
}

/* An engine of the version before has written its row of 'writers' when it opened the store, and opens its node next. */
static void an_engine_of_an_earlier_version_that_starts_is_waited_for(void **state)
{
	struct fixture *f = *state;
	int64_t last;

	forget_numbers(state);
	sql(state, "INSERT INTO writers (id, batch, at) VALUES ('2-0123456789abcdef', 0, %lld)", (long long)clock_now(f->store->clock));
	put(f->store, 1);
	last = newest_id(state);
	put(f->store, 2);
	assert_int_equal(newest_id(state), last + 1);
	sql(state, "UPDATE writers SET at = at - 120000000 WHERE id = '2-0123456789abcdef'");
	put(f->store, 3);
	put(f->store, 4);
	assert_true(newest_id(state) > last + SLOT);
	sql(state, "DELETE FROM writers WHERE id = '2-0123456789abcdef'");
}

static void a_node_notices_by_its_poll_that_the_lock_is_not_needed(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *poll = op_new(OP_NODE_POLL, NULL, NULL);

	op_fill(node_poll_op(poll), .node = NODE);
	put(s, 1);
	assert_true(apply_one(s, poll));
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'events' FOR UPDATE");
	put(s, 2);
	sql(state, "COMMIT");
}

static void a_node_of_this_version_has_protocol_2(void **state)
{
	AUTO_TEXT protocol = ask(state, "SELECT protocol FROM nodes WHERE id = '" NODE "'");

	assert_string_equal(protocol, "2|\n");
}

/* ---- restores and other servers ---- */

/* A dump in a server with fewer transactions: their numbers would be lower than those of the events. */
static void events_after_a_restore_follow_those_of_the_dump(void **state)
{
	struct fixture *f = *state;
	int64_t from;

	put(f->store, 1);
	from = newest_id(state);
	sql(state, "UPDATE meta SET value = split_part(value, ' ', 1)::bigint - 16384::bigint * 1000000 || ' ' || split_part(value, ' ', 2) "
		"WHERE key = 'events_base'");
	reopen(f);
	put(f->store, 2);
	assert_true(newest_id(state) > from);
	assert_follows(f->store, &from, "2 ", false);
}

/* Clients may have numbers of events that the dump does not have. */
static void numbers_on_another_server_leave_room_for_events_after_the_dump(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT mark = NULL;
	AUTO_TEXT again = NULL;
	int64_t from, kept;

	put(f->store, 1);
	from = newest_id(state);
	sql(state, "UPDATE meta SET value = split_part(value, ' ', 1) || ' 42' WHERE key = 'events_base'");
	reopen(f);
	put(f->store, 2);
	kept = newest_id(state);
	assert_true(kept > from + INT64_C(36000000) * SLOT);
	assert_follows(f->store, &from, "2 ", false);
	mark = ask(state, "SELECT value FROM meta WHERE key = 'events_base'");
	reopen(f); /* the server is known now */
	again = ask(state, "SELECT value FROM meta WHERE key = 'events_base'");
	assert_string_equal(mark, again);
	put(f->store, 3);
	assert_true(newest_id(state) < kept + INT64_C(36000000) * SLOT);
}

static void a_server_without_numbers_of_transactions_keeps_the_lock(void **state)
{
	struct fixture *f = *state;
	struct db_sql texts = *place_sql;
	struct db_query *queries = xcalloc((size_t)texts.n_queries, sizeof(*queries));
	struct store *s = NULL;
	struct err e = {};
	pthread_t thread;
	int64_t from;

	forget_numbers(state);
	from = position(f->store);
	memcpy(queries, texts.queries, (size_t)texts.n_queries * sizeof(*queries));
	queries[Q_EVENTS_FRONTIER].sql = "SELECT no_such_function() AS until, 1::bigint AS newest";
	queries[Q_EVENTS_NUMBER].sql = "SELECT no_such_function($1, $2)";
	texts.queries = queries;
	if (!store_open_with(fixture_ops, &(struct db_options){.where = f->where, .sql = &texts}, &s, &e))
		fail_msg("%s", e.msg);
	put(s, 1);
	put(s, 2);
	assert_int_equal(newest_id(state), position(s));
	assert_follows(s, &from, "1 2 ", false);
	assert_true(s->db->no_xids);
	sql(state, "BEGIN; SELECT FROM meta WHERE key = 'events' FOR UPDATE");
	pthread_create(&thread, NULL, put_main, s);
	wait_for_a_waiter(state);
	sql(state, "COMMIT");
	pthread_join(thread, NULL);
	store_free(s);
	free(queries);
	forget_numbers(state);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_reader_waits_for_a_transaction_that_began_before),
	STORE_TEST(a_batch_does_not_wait_for_the_events_of_another),
	STORE_TEST(a_follower_of_several_writers_gets_each_event_once_and_in_order),
	STORE_TEST(a_batch_with_many_events_uses_no_number_of_another),
	STORE_TEST(while_a_node_of_an_earlier_version_is_open_events_are_in_the_order_of_commits),
	STORE_TEST(while_a_node_of_an_earlier_version_is_open_commits_wait_for_each_other),
	STORE_TEST(an_engine_of_an_earlier_version_that_starts_is_waited_for),
	STORE_TEST(a_node_notices_by_its_poll_that_the_lock_is_not_needed),
	STORE_TEST(a_node_of_this_version_has_protocol_2),
	STORE_TEST(events_after_a_restore_follow_those_of_the_dump),
	STORE_TEST(numbers_on_another_server_leave_room_for_events_after_the_dump),
	STORE_TEST(a_server_without_numbers_of_transactions_keeps_the_lock),
};
const struct suite_part store_event_order_part = {tests, ELEMENTS(tests)};
