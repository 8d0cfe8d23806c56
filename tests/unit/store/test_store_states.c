/* SPDX-License-Identifier: Apache-2.0 */
/* The store suite: the state that runs take to other nodes. */
#include "base/buf.h"
#include "base/text.h"
#include "core/job/run.h"
#include "store/ops/op.h"
#include "store/ops/run/run_states.h"
#include "store/ops/run/runs.h"
#include "store/read/run_state.h"
#include "unit/store/store_suite.h"
#include <string.h>

static struct op *op_part(const struct run *r, int64_t part, bool last, const char *bytes)
{
	struct op *op = op_new(OP_STATE_PUT, NULL, NULL);
	AUTO_DONE(buf) text = {};

	buf_base64(&text, bytes, strlen(bytes));
	op_fill(run_states_put_op(op), .node = NODE, .run = r->id, .fence = r->fence, .part = part, .last = last,
		.total = (int64_t)text.len, .data = buf_steal(&text), .owner = xstrdup("ann"));
	return op;
}

static void put(struct store *s, const struct run *r, int64_t part, bool last, const char *bytes)
{
	AUTO(op) *op = op_part(r, part, last, bytes);

	assert_true(apply_one(s, op));
}

static void assert_state(struct store *s, const struct run *r, const char *bytes)
{
	AUTO_DONE(buf) found = {};
	struct err e = {};

	assert_true(run_state_read(s, r->id, &found, &e));
	assert_int_equal(found.len, strlen(bytes));
	assert_memory_equal(found.data ? found.data : "", bytes, found.len);
}

/* The attempt has failed and is tried again. */
static struct run *next_attempt(struct store *s, const struct run *r, usec_t at)
{
	AUTO(op) *end = op_ended(r, ATTEMPT_FAILED, at);

	run_ended_op(end)->state = RUN_QUEUED;
	run_ended_op(end)->due_at = at;
	assert_true(apply_one(s, end));
	return claim_one(s, at);
}

static void the_last_complete_state_counts(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL, *second = NULL;

	add_job(s, "a");
	first = claim_one(s, T0);
	assert_state(s, first, "");
	put(s, first, 0, false, "one ");
	assert_state(s, first, ""); /* the last part is missing */
	put(s, first, 1, true, "two");
	assert_state(s, first, "one two");
	assert_counts_true(s);
	put(s, first, 0, true, "again"); /* as after a crash of the daemon */
	assert_state(s, first, "again");
	second = next_attempt(s, first, T0 + USEC_SEC);
	put(s, second, 0, false, "half");
	assert_state(s, first, "again");
	put(s, second, 1, true, " of it");
	assert_state(s, first, "half of it");
	assert_counts_true(s);
}

static void only_the_node_of_the_attempt_stores_a_state(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL, *second = NULL;
	AUTO(op) *late = NULL, *other = NULL;

	add_job(s, "a");
	first = claim_one(s, T0);
	second = next_attempt(s, first, T0 + USEC_SEC);
	late = op_part(first, 0, true, "late");
	assert_false(apply_one(s, late));
	assert_int_equal(late->err.kind, ERR_FENCED);
	other = op_part(second, 0, true, "other");
	run_states_put_op(other)->node = "node-two";
	assert_false(apply_one(s, other));
	assert_int_equal(other->err.kind, ERR_FENCED);
	assert_state(s, first, "");
}

static void a_state_beyond_the_limit_of_its_owner_is_refused(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *r = NULL;
	AUTO(op) *big = NULL;

	add_job(s, "a");
	r = claim_one(s, T0);
	big = op_part(r, 0, true, "big");
	run_states_put_op(big)->total = 1 << 20;
	run_states_put_op(big)->bytes_limit = 1 << 20;
	assert_false(apply_one(s, big));
	assert_int_equal(big->err.kind, ERR_LIMIT);
	assert_state(s, r, "");
	assert_counts_true(s);
}

static void a_state_is_deleted_with_the_end_of_its_run(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *r = NULL;
	AUTO(op) *early = NULL, *end = NULL, *drop = NULL;

	add_job(s, "a");
	r = claim_one(s, T0);
	put(s, r, 0, true, "kept");
	early = op_new(OP_STATE_DROP, NULL, NULL);
	op_fill(run_states_drop_op(early), .run = r->id);
	assert_true(apply_one(s, early));
	assert_state(s, r, "kept");
	end = op_ended(r, ATTEMPT_SUCCEEDED, T0 + USEC_SEC);
	assert_true(apply_one(s, end));
	drop = op_new(OP_STATE_DROP, NULL, NULL);
	op_fill(run_states_drop_op(drop), .run = r->id);
	assert_true(apply_one(s, drop));
	assert_state(s, r, "");
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(the_last_complete_state_counts),
	STORE_TEST(only_the_node_of_the_attempt_stores_a_state),
	STORE_TEST(a_state_beyond_the_limit_of_its_owner_is_refused),
	STORE_TEST(a_state_is_deleted_with_the_end_of_its_run),
};
const struct suite_part store_states_part = {tests, ELEMENTS(tests)};
