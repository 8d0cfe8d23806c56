/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of OP_JOB_APPLY: additions, changes and removals of one set are stored together or not at all. */
#include "base/text.h"
#include "core/job/job.h"
#include "store/ops/job/job_apply.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/read/applied.h"
#include "unit/store/store_suite.h"
#include <string.h>

#define SPEC1 "{\"command\":[\"one\"]}"
#define SPEC2 "{\"command\":[\"two\"]}"

static struct op *op_apply(const char *set)
{
	struct op *op = op_new(OP_JOB_APPLY, NULL, NULL);

	op->act.by = (struct actor){.uid = 1000, .who = "ann"};
	op_fill(job_apply_op(op), .scope = -1, .set = set, .now = T0);
	return op;
}

static void add_to(struct op *op, const char *name)
{
	struct op_job_apply *a = job_apply_op(op);

	a->add = xgrow(a->add, a->n_add, sizeof(*a->add));
	a->add[a->n_add++] = (struct job_new){.uid = 1000, .owner = "ann", .name = name, .spec = SPEC1, .now = T0,
		.next_slot = USEC_NEVER};
}

static void change_to(struct op *op, struct op_job_change *c, int64_t id, const char *name, int64_t expect)
{
	struct op_job_apply *a = job_apply_op(op);

	*c = (struct op_job_change){.uid = -1, .id = id, .expect = expect, .what = "applied",
		.to = {.name = name, .spec = SPEC2, .now = T0}};
	a->change = xgrow(a->change, a->n_change, sizeof(struct op_job_change *));
	a->change[a->n_change++] = c;
}

static void remove_by(struct op *op, int64_t id)
{
	struct op_job_apply *a = job_apply_op(op);

	a->remove = xgrow(a->remove, a->n_remove, sizeof(*a->remove));
	a->remove[a->n_remove++] = id;
}

/* The names of the members of a set, joined by blanks. */
static char *members(struct store *s, const char *set)
{
	AUTO_DONE(applied_list) l = {};
	AUTO_DONE(buf) out = {};

	assert_true(applied_members(s, 1000, set, &l, NULL));
	for (size_t i = 0; i < l.n; i++)
		buf_printf(&out, "%s%s", i ? " " : "", l.v[i].job.name);
	buf_str(&out, "");
	return xstrdup(out.data ? out.data : "");
}

static void a_set_is_added_changed_and_removed_in_one_operation(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_apply("web"), *second = op_apply("web");
	struct op_job_change c;
	AUTO_TEXT before = NULL;
	AUTO_TEXT after = NULL;
	int64_t a, b;

	add_to(first, "a");
	add_to(first, "b");
	assert_true(apply_one(s, first));
	a = job_apply_op(first)->add[0].id;
	b = job_apply_op(first)->add[1].id;
	before = members(s, "web");
	assert_string_equal(before, "a b");

	add_to(second, "c");
	change_to(second, &c, a, "a", 1);
	remove_by(second, b);
	assert_true(apply_one(s, second));
	assert_int_equal(c.revision, 2);
	after = members(s, "web");
	assert_string_equal(after, "a c");
	{
		AUTO(job) *changed = get_job(s, a);

		assert_string_equal(changed->spec, SPEC2);
	}
	assert_counts_true(s);
}

static void a_refused_part_leaves_nothing_behind(void **state)
{
	struct store *s = store_of(state);
	int64_t taken = add_due(s, "taken", T0 + USEC_HOUR), other = add_due(s, "other", T0 + USEC_HOUR);
	struct op_job_change c;

	for (int stale = 0; stale < 2; stale++) {
		AUTO(op) *op = op_apply("web");
		AUTO_TEXT found = NULL;
		AUTO(job) *kept = NULL;

		remove_by(op, other);
		change_to(op, &c, taken, "taken", stale ? 7 : 1);
		add_to(op, "fresh");
		add_to(op, stale ? "second" : "taken"); /* the name of a live job */
		assert_false(apply_one(s, op));
		assert_int_equal(op->err.kind, ERR_CONFLICT);
		assert_int_equal(job_apply_op(op)->part, stale ? JOB_APPLY_CHANGE : JOB_APPLY_ADD);
		assert_int_equal(job_apply_op(op)->failed, stale ? 0 : 1);
		found = members(s, "web");
		assert_string_equal(found, "");
		kept = get_job(s, other);
		assert_int_equal(kept->state, JOB_ACTIVE);
		assert_int_equal(kept->revision, 1);
	}
	assert_counts_true(s);
}

static void jobs_are_found_by_name_with_their_set(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_apply("web");
	AUTO_DONE(applied_list) l = {};
	AUTO_DONE(strv) names = {};

	add_due(s, "hand", T0 + USEC_HOUR);
	add_to(op, "a");
	assert_true(apply_one(s, op));
	strv_add(&names, "a");
	strv_add(&names, "hand");
	strv_add(&names, "nothing");
	assert_true(applied_by_name(s, 1000, &names, &l, NULL));
	assert_int_equal(l.n, 2);
	for (size_t i = 0; i < l.n; i++)
		assert_true(text_equal(l.v[i].set, strcmp(l.v[i].job.name, "a") == 0 ? "web" : NULL));
	applied_list_done(&l);
	assert_true(applied_by_name(s, 1001, &names, &l, NULL));
	assert_int_equal(l.n, 0);
}

static void an_existing_job_becomes_a_member_when_it_is_adopted(void **state)
{
	struct store *s = store_of(state);
	int64_t hand = add_due(s, "hand", T0 + USEC_HOUR);
	AUTO(op) *op = op_apply("web");
	AUTO_TEXT found = NULL;

	job_apply_op(op)->adopt = xgrow(NULL, 0, sizeof(int64_t));
	job_apply_op(op)->adopt[0] = hand;
	job_apply_op(op)->n_adopt = 1;
	assert_true(apply_one(s, op));
	found = members(s, "web");
	assert_string_equal(found, "hand");
	{
		AUTO(job) *j = get_job(s, hand);

		assert_int_equal(j->revision, 1);
	}
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_set_is_added_changed_and_removed_in_one_operation),
	STORE_TEST(a_refused_part_leaves_nothing_behind),
	STORE_TEST(jobs_are_found_by_name_with_their_set),
	STORE_TEST(an_existing_job_becomes_a_member_when_it_is_adopted),
};
const struct suite_part store_apply_part = {tests, ELEMENTS(tests)};
