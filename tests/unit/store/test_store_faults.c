/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the n-th backend call of every operation: it is applied whole or not at all, and reports which. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/store.h"
#include "unit/store/db_faulty.h"
#include "unit/store/fault_world.h"
#include "unit/store/store_suite.h"
#include <string.h>
#include <time.h>

#define CALLS_MAX 100000

struct trial {
	const char *where;
	struct store *s;
	struct fault *fault;
	char *before, *after; /* owned dumps */
};

/* Applies the operation with a fault at its n-th call. Returns false if it made fewer calls. */
static bool try_once(struct trial *t, enum op_kind kind, enum fault_mode mode, int n)
{
	AUTO(op) *op = world_op(kind);
	AUTO_TEXT found = NULL;
	struct batch_wake wake;
	struct err e = {};
	bool applied;

	*t->fault = (struct fault){.mode = mode, .calls_left = n};
	applied = batch_apply(t->s, &op, 1, &wake, &e);
	t->fault->calls_left = 0;
	found = world_dump(t->where);
	if (applied && op->ok) {
		assert_string_equal(found, t->after);
	} else if (!applied && e.kind == ERR_UNCERTAIN) {
		assert_true(strcmp(found, t->before) == 0 || strcmp(found, t->after) == 0);
		assert_int_not_equal(mode, FAULT_LOST);
		assert_int_not_equal(mode, FAULT_COMMITTED);
	} else {
		assert_false(op->ok);
		assert_int_not_equal(op->err.kind, ERR_NONE);
		assert_string_equal(found, t->before);
	}
	if (mode == FAULT_LOST || mode == FAULT_COMMITTED)
		assert_true(applied && op->ok); /* a lost connection that is restored has no effect */
	if (strcmp(found, t->before) != 0)
		world_build(t->s, t->where);
	return t->fault->fired;
}

/* Applies the operation without a fault, and returns the number of calls that can fail in this mode. */
static int count_calls(struct trial *t, enum op_kind kind, enum fault_mode mode)
{
	AUTO(op) *clean = world_op(kind);

	*t->fault = (struct fault){.mode = mode, .calls_left = CALLS_MAX};
	if (!apply_one(t->s, clean))
		fail_msg("operation %d: %s", kind, clean->err.msg);
	return CALLS_MAX - t->fault->calls_left;
}

/* Expects the world as it was built, and leaves it so: building it takes longer than most operations. */
static void try_kind(struct trial *t, enum op_kind kind, enum fault_mode mode)
{
	int calls;

	t->before = world_dump(t->where);
	calls = count_calls(t, kind, mode);
	t->fault->calls_left = 0;
	t->after = world_dump(t->where);
	assert_string_not_equal(t->before, t->after);
	assert_true(calls > (mode == FAULT_COMMITTED ? 0 : 4)); /* the operation made some calls */
	world_build(t->s, t->where);
	for (int n = 1; n <= calls && try_once(t, kind, mode, n); n++)
		;
	free(STEAL(t->before));
	free(STEAL(t->after));
}

static enum faulty_kind same_backend(void)
{
	return fixture_ops->reconnects ? FAULTY_SERVER : FAULTY_FILE;
}

static struct store *open_faulty(const char *where, struct fault *fault, enum faulty_kind backend)
{
	struct db_options o = {.where = where};
	struct store *s = NULL;
	struct err e = {};

	if (!store_open_with(db_faulty_ops(fixture_ops, fault, backend), &o, &s, &e))
		fail_msg("%s", e.msg);
	return s;
}

static void try_all(enum fault_mode mode, enum faulty_kind backend)
{
	AUTO_TEXT where = place_new();
	struct fault fault = {};
	struct trial t = {.where = where, .s = open_faulty(where, &fault, backend), .fault = &fault};

	world_build(t.s, where);
	for (enum op_kind kind = 0; kind < OP_KIND_MAX; kind++)
		if (kind != OP_NODE_POLL) /* it changes nothing */
			try_kind(&t, kind, mode);
	store_free(t.s);
	place_drop(where);
}

static void a_failing_statement_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_STATEMENT, same_backend());
}

static void a_busy_store_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_BUSY, same_backend());
}

static void a_full_store_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_FULL, same_backend());
}

static void a_failing_device_leaves_nothing_half_done(void **state)
{
	(void)state;
	try_all(FAULT_DEVICE, FAULTY_FILE);
}

static void a_lost_connection_is_made_again_and_nothing_is_done_twice(void **state)
{
	(void)state;
	try_all(FAULT_LOST, FAULTY_SERVER);
}

static void an_unconfirmed_commit_is_found_by_its_witness_row(void **state)
{
	(void)state;
	try_all(FAULT_COMMITTED, FAULTY_SERVER);
}

/* ---- statements without waiting for replies ---- */

/* These read with the lock of their job. */
static const enum op_kind prefetching[] = {OP_JOB_CANCEL, OP_JOB_REMOVE, OP_JOB_CHANGE, OP_RUN_CANCEL, OP_PAUSE, OP_RESUME, OP_TRIGGER};

/* The rows after each of these operations. */
static void dumps_after(enum faulty_kind backend, char *ret[ELEMENTS(prefetching)])
{
	AUTO_TEXT where = place_new();
	struct fault fault = {};
	struct store *s = open_faulty(where, &fault, backend);

	for (size_t i = 0; i < ELEMENTS(prefetching); i++) {
		AUTO(op) *op = world_op(prefetching[i]);

		world_build(s, where);
		assert_true(apply_one(s, op));
		ret[i] = world_dump(where);
	}
	store_free(s);
	place_drop(where);
}

static void an_operation_has_the_same_effect_without_waiting_for_replies(void **state)
{
	char *waiting[ELEMENTS(prefetching)], *sent[ELEMENTS(prefetching)];

	(void)state;
	if (!fixture_ops->send)
		skip();
	dumps_after(FAULTY_SERVER, waiting);
	dumps_after(FAULTY_PIPELINE, sent);
	for (size_t i = 0; i < ELEMENTS(prefetching); i++) {
		assert_string_equal(sent[i], waiting[i]);
		free(sent[i]);
		free(waiting[i]);
	}
}

static void try_prefetching(enum fault_mode mode)
{
	struct fault fault = {};
	struct trial t = {.fault = &fault};

	if (!fixture_ops->send)
		skip();
	t.where = place_new();
	t.s = open_faulty(t.where, &fault, FAULTY_PIPELINE);
	world_build(t.s, t.where);
	for (size_t i = 0; i < ELEMENTS(prefetching); i++)
		try_kind(&t, prefetching[i], mode);
	store_free(t.s);
	place_drop(t.where);
	free((char *)t.where);
}

static void a_connection_that_is_lost_between_reads_and_writes_has_no_effect(void **state)
{
	(void)state;
	try_prefetching(FAULT_LOST);
}

static void an_unconfirmed_commit_of_such_a_batch_is_found(void **state)
{
	(void)state;
	try_prefetching(FAULT_COMMITTED);
}

static void a_failing_statement_of_such_a_batch_leaves_it_to_a_repetition(void **state)
{
	(void)state;
	try_prefetching(FAULT_STATEMENT);
}

/* ---- many kinds in one batch: what says ok is there, the rest is not ---- */

#define WHOLE 9
static const enum op_kind whole[WHOLE] = {OP_JOB_ADD, OP_STARTED, OP_ENDED, OP_JOB_CANCEL, OP_PLAN, OP_JOB_BULK,
	OP_RUN_CANCEL, OP_CLAIM, OP_NODE_CLOSE};

static void try_whole(struct store *s, const char *where, struct fault *fault, struct fault armed)
{
	struct op *ops[WHOLE], *good[WHOLE];
	AUTO_TEXT faulted = NULL;
	AUTO_TEXT wanted = NULL;
	struct err e = {};
	size_t ok = 0;

	world_build(s, where);
	for (int i = 0; i < WHOLE; i++)
		ops[i] = world_op(whole[i]);
	*fault = armed;
	if (batch_apply(s, ops, WHOLE, &(struct batch_wake){}, &e))
		for (int i = 0; i < WHOLE; i++)
			if (ops[i]->ok)
				good[ok++] = world_op(whole[i]);
	fault->calls_left = 0;
	faulted = world_dump(where);
	world_build(s, where);
	apply_all(s, good, ok);
	wanted = world_dump(where);
	assert_string_equal(faulted, wanted);
	for (size_t i = 0; i < ok; i++)
		op_free(good[i]);
	for (int i = 0; i < WHOLE; i++)
		op_free(ops[i]);
}

static void a_batch_with_a_failing_statement_keeps_its_good_members(void **state)
{
	AUTO_TEXT where = place_new();
	struct fault fault = {};
	struct store *s = open_faulty(where, &fault, same_backend());

	(void)state;
	for (int n = 1; n == 1 || fault.fired; n += 1 + n / 8)
		try_whole(s, where, &fault, (struct fault){.mode = FAULT_STATEMENT, .calls_left = n});
	for (int query = 0; query < Q_MAX; query++)
		try_whole(s, where, &fault, (struct fault){.mode = FAULT_QUERY, .query = query, .calls_left = 1});
	store_free(s);
	place_drop(where);
}

/* The reply to the commit that carries a notification is lost. */
static void a_notification_is_repeated_after_a_lost_commit(void **state)
{
	AUTO_TEXT where = place_new();
	struct fault fault = {};
	struct store *s = open_faulty(where, &fault, FAULTY_SERVER);
	AUTO(op) *one = op_node_open(NODE, "one", "spawner-of-one");
	AUTO(op) *two = op_node_open("node-two-engine", "two", "spawner-of-two");
	struct op *add = op_add(NULL, NULL, NULL);

	(void)state;
	assert_true(apply_one(s, one) && apply_one(s, two));
	/* The notification of the opened nodes is sent. The next one comes more than a second later and is not delayed. */
	for (int i = 0; i < 2; i++) {
		nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100000000}, NULL);
		assert_false(apply_all(s, NULL, 0).notify_pending);
	}
	fault = (struct fault){.mode = FAULT_COMMITTED, .calls_left = 1};
	assert_true(apply_all(s, &add, 1).notify_pending && add->ok && fault.fired);
	op_free(add);
	store_free(s);
	place_drop(where);
}

/* The caller keeps the operation and repeats it. An end that counted as refused would be lost. */
static void a_connection_that_is_lost_each_time_means_that_nothing_happened(void **state)
{
	static const enum op_kind kinds[] = {OP_ENDED, OP_GIVE_BACK, OP_JOB_ADD};
	AUTO_TEXT where = place_new();
	struct fault fault = {};
	struct store *s = open_faulty(where, &fault, FAULTY_SERVER);
	struct err e = {};

	(void)state;
	world_build(s, where);
	for (size_t i = 0; i < ELEMENTS(kinds); i++) {
		AUTO_TEXT before = world_dump(where);
		AUTO_TEXT after = NULL;
		AUTO(op) *op = world_op(kinds[i]);

		fault = (struct fault){.mode = FAULT_CUT, .query = Q_DUE_FIRST, .calls_left = 1};
		assert_false(batch_apply(s, &op, 1, &(struct batch_wake){}, &e));
		assert_true(fault.fired);
		assert_int_equal(e.kind, ERR_BUSY);
		assert_int_equal(op->err.kind, ERR_BUSY);
		fault.calls_left = 0;
		after = world_dump(where);
		assert_string_equal(before, after);
		assert_true(apply_one(s, op));
	}
	store_free(s);
	place_drop(where);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_failing_statement_leaves_nothing_half_done),
	cmocka_unit_test(a_busy_store_leaves_nothing_half_done),
	cmocka_unit_test(a_full_store_leaves_nothing_half_done),
	cmocka_unit_test(a_failing_device_leaves_nothing_half_done),
	cmocka_unit_test(a_lost_connection_is_made_again_and_nothing_is_done_twice),
	cmocka_unit_test(an_unconfirmed_commit_is_found_by_its_witness_row),
	cmocka_unit_test(an_operation_has_the_same_effect_without_waiting_for_replies),
	cmocka_unit_test(a_connection_that_is_lost_between_reads_and_writes_has_no_effect),
	cmocka_unit_test(an_unconfirmed_commit_of_such_a_batch_is_found),
	cmocka_unit_test(a_failing_statement_of_such_a_batch_leaves_it_to_a_repetition),
	cmocka_unit_test(a_batch_with_a_failing_statement_keeps_its_good_members),
	cmocka_unit_test(a_notification_is_repeated_after_a_lost_commit),
	cmocka_unit_test(a_connection_that_is_lost_each_time_means_that_nothing_happened),
};
const struct suite_part store_faults_part = {tests, ELEMENTS(tests)};
