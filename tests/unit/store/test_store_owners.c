/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of owner numbers: a reused uid with another name is another owner. */
#include "base/text.h"
#include "core/job/owner.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/owners.h"
#include "store/read/single.h"
#include "unit/store/store_suite.h"
#include <string.h>

static int64_t number_of(struct store *s, uint32_t uid, const char *name, usec_t now)
{
	AUTO(op) *op = op_new(OP_OWNER, NULL, NULL);

	op_fill(owner_op(op), .uid = uid, .name = name, .now = now);
	assert_true(apply_one(s, op));
	return owner_op(op)->number;
}

static void a_new_user_of_a_used_uid_gets_another_owner_number(void **state)
{
	struct store *s = store_of(state);
	struct err e = {};
	int64_t n;

	assert_true(owner_read_number(s, 4001, "ann", &n, &e));
	assert_int_equal(n, -1);
	assert_int_equal(number_of(s, 4001, "ann", 1), 4001);
	assert_int_equal(number_of(s, 4001, "bob", 2), 4001 + OWNER_STEP);
	assert_int_equal(number_of(s, 4001, "ann", 3), 4001);
	assert_int_equal(number_of(s, 4001, "cid", 4), 4001 + 2 * OWNER_STEP);
	assert_int_equal(number_of(s, 4002, "ann", 5), 4002);
	assert_true(owner_read_number(s, 4001, "bob", &n, &e));
	assert_int_equal(n, 4001 + OWNER_STEP);
	assert_int_equal(owner_uid(n), 4001);
	assert_true(owner_read_named(s, "ann", &n, &e));
	assert_int_equal(n, 4002); /* the latest of two */
}

static int64_t add_for(struct store *s, int64_t number, const char *owner)
{
	AUTO(op) *op = op_add("backup", NULL, NULL);

	job_add_op(op)->job.uid = number;
	job_add_op(op)->job.owner = owner;
	job_add_op(op)->job.limit = 1;
	assert_true(apply_one(s, op));
	return job_add_op(op)->job.id;
}

static void the_newcomer_neither_sees_nor_counts_what_the_one_before_left(void **state)
{
	struct store *s = store_of(state);
	int64_t old = number_of(s, 4001, "ann", 1), new = number_of(s, 4001, "bob", 2);
	int64_t left = add_for(s, old, "ann"), own;
	AUTO(job) *found = NULL;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, left);
	struct err e = {};

	assert_false(store_job_get(s, new, left, &found, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	job_cancel_op(cancel)->uid = new;
	assert_false(apply_one(s, cancel));
	assert_int_equal(cancel->err.kind, ERR_NOT_FOUND);
	own = add_for(s, new, "bob"); /* the same name, and a quota of one */
	assert_true(store_job_find(s, new, "backup", &found, &e));
	assert_int_equal(found->id, own);
	assert_int_equal(found->uid, new);
	assert_string_equal(found->owner, "bob");
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_new_user_of_a_used_uid_gets_another_owner_number),
	STORE_TEST(the_newcomer_neither_sees_nor_counts_what_the_one_before_left),
};
const struct suite_part store_owners_part = {tests, ELEMENTS(tests)};
