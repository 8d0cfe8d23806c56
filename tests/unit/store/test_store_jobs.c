/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of jobs: keys, names, bulk, limits, cancelling and removing. */
#include "base/buf.h"
#include "base/text.h"
#include "core/time/slots.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/read/single.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <string.h>

#define SPEC_A "{\"command\":[\"a\"]}"
#define SPEC_B "{\"command\":[\"b\"]}"

static void a_key_used_twice_gives_the_same_job(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add(NULL, "k", SPEC_A);
	AUTO(op) *again = op_add(NULL, "k", SPEC_A);

	assert_true(apply_one(s, first));
	assert_true(apply_one(s, again));
	assert_false(job_add_op(first)->job.existed);
	assert_true(job_add_op(again)->job.existed);
	assert_int_equal(job_add_op(again)->job.id, job_add_op(first)->job.id);
	assert_int_equal(job_add_op(again)->job.run, job_add_op(first)->job.run);
	assert_counts_true(s);
}

static void a_key_with_other_content_is_a_conflict(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add(NULL, "k", SPEC_A);
	AUTO(op) *other = op_add(NULL, "k", SPEC_B);

	assert_true(apply_one(s, first));
	assert_false(apply_one(s, other));
	assert_int_equal(other->err.kind, ERR_CONFLICT);
	assert_string_equal(other->err.field, "key");
	assert_int_equal(job_add_op(other)->job.id, 0);
	assert_counts_true(s);
}

static void a_key_belongs_to_its_owner(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *ann = op_add("n", "k", SPEC_A);
	AUTO(op) *bob = op_add("n", "k", SPEC_B);

	job_add_op(bob)->job.uid = 1001;
	job_add_op(bob)->job.owner = "bob";
	assert_true(apply_one(s, ann));
	assert_true(apply_one(s, bob));
	assert_int_not_equal(job_add_op(ann)->job.id, job_add_op(bob)->job.id);
}

static void a_removed_jobs_key_is_kept_for_a_day_and_then_free(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add(NULL, "k", SPEC_A);
	AUTO(op) *soon = op_add(NULL, "k", SPEC_A);
	AUTO(op) *other = op_add(NULL, "k", SPEC_B);
	AUTO(op) *later = op_add(NULL, "k", SPEC_B);
	AUTO(op) *removal = NULL;

	assert_true(apply_one(s, first));
	removal = op_job_cancel(OP_JOB_REMOVE, job_add_op(first)->job.id);
	assert_true(apply_one(s, removal));
	job_add_op(soon)->job.now = job_add_op(other)->job.now = T0 + USEC_DAY;
	assert_true(apply_one(s, soon));
	assert_true(job_add_op(soon)->job.existed);
	assert_int_equal(job_add_op(soon)->job.id, job_add_op(first)->job.id);
	assert_false(apply_one(s, other));
	assert_int_equal(other->err.kind, ERR_CONFLICT);
	job_add_op(later)->job.now = T0 + USEC_DAY + USEC_MIN;
	assert_true(apply_one(s, later));
	assert_false(job_add_op(later)->job.existed);
	assert_int_not_equal(job_add_op(later)->job.id, job_add_op(first)->job.id);
	assert_counts_true(s);
}

static void a_name_is_taken_while_its_job_lives(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "backup");
	AUTO(op) *second = op_add("backup", NULL, NULL);
	AUTO(op) *third = op_add("backup", NULL, NULL);
	AUTO(run) *run = NULL;

	assert_false(apply_one(s, second));
	assert_int_equal(second->err.kind, ERR_CONFLICT);
	assert_string_equal(second->err.field, "name");
	assert_non_null(strstr(second->err.msg, "jobctl rm"));
	run = claim_one(s, T0);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 9);
	assert_true(apply_one(s, third)); /* the first is finished */
	assert_int_not_equal(job_add_op(third)->job.id, id);
}

static void a_name_means_the_newest_job_of_its_owner(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *removal = op_job_cancel(OP_JOB_CANCEL, add_job(s, "n"));
	AUTO(op) *bob = op_add("n", NULL, NULL);
	AUTO(job) *found = NULL;
	AUTO(job) *bobs = NULL;
	struct err e = {};
	int64_t second;

	assert_true(apply_one(s, removal));
	second = add_job(s, "n");
	assert_true(store_job_find(s, -1, "n", &found, &e));
	assert_int_equal(found->id, second);
	assert_false(store_job_find(s, 1001, "n", &bobs, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	job_add_op(bob)->job.uid = 1001;
	assert_true(apply_one(s, bob));
	assert_false(store_job_find(s, -1, "n", &bobs, &e));
	assert_int_equal(e.kind, ERR_CONFLICT);
	assert_true(store_job_find(s, 1001, "n", &bobs, &e));
	assert_int_equal(bobs->id, job_add_op(bob)->job.id);
}

static void twins_in_one_batch_are_told_apart(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[] = {op_add("x", NULL, NULL), op_add("x", NULL, NULL), op_add(NULL, "k", SPEC_A),
		op_add(NULL, "k", SPEC_A), op_add(NULL, "k", SPEC_B), op_add("y", "k2", NULL)};

	apply_all(s, ops, 6);
	assert_true(ops[0]->ok);
	assert_false(ops[1]->ok);
	assert_int_equal(ops[1]->err.kind, ERR_CONFLICT);
	assert_true(ops[2]->ok && ops[3]->ok);
	assert_true(job_add_op(ops[3])->job.existed);
	assert_int_equal(job_add_op(ops[3])->job.id, job_add_op(ops[2])->job.id);
	assert_false(ops[4]->ok);
	assert_true(ops[5]->ok);
	assert_counts_true(s);
	for (size_t i = 0; i < 6; i++)
		op_free(ops[i]);
}

static struct op *op_bulk(struct job_new *jobs, size_t n)
{
	struct op *op = op_new(OP_JOB_BULK, NULL, NULL);

	job_bulk_op(op)->v = xcalloc(n, sizeof(*jobs));
	job_bulk_op(op)->n = n;
	for (size_t i = 0; i < n; i++)
		job_bulk_op(op)->v[i] = jobs ? jobs[i] : (struct job_new){.uid = 1000, .owner = "ann", .spec = SPEC_A,
			.now = T0, .run_at = i % 2 ? T0 : 0, .next_slot = i % 2 ? 0 : T0 + USEC_HOUR};
	return op;
}

static void slot_from_number(struct job_new *j, void *arg)
{
	++*(int *)arg;
	j->next_slot = T0 + j->id * USEC_SEC;
}

static void the_first_slot_is_computed_when_the_number_is_known(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_bulk(NULL, 3);
	AUTO_DONE(buf) due = {};
	AUTO_DONE(buf) expected = {};
	int calls = 0;

	for (size_t i = 0; i < 3; i++) {
		struct job_new *j = &job_bulk_op(op)->v[i];

		j->next_slot = slot_search_from(T0);
		j->first_slot = slot_from_number;
		j->first_slot_arg = &calls;
	}
	assert_true(apply_one(s, op));
	assert_int_equal(calls, 3);
	for (size_t i = 0; i < 3; i++)
		buf_printf(&expected, "%lld|\n", (long long)(T0 + job_bulk_op(op)->v[i].id * USEC_SEC));
	place_query(where_of(state), "SELECT slot FROM due ORDER BY job", &due);
	assert_string_equal(due.data, expected.data);
	job_bulk_reset(op); /* a batch that is applied again assigns other numbers */
	assert_int_equal(job_bulk_op(op)->v[0].next_slot, slot_search_from(T0));
}

static void a_bulk_goes_in_whole(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_bulk(NULL, 2345);
	struct store_counts c;
	struct err e = {};

	assert_true(apply_one(s, op));
	for (size_t i = 0; i < job_bulk_op(op)->n; i++) {
		assert_true(job_bulk_op(op)->v[i].id > 0);
		assert_true(i == 0 || job_bulk_op(op)->v[i].id != job_bulk_op(op)->v[i - 1].id);
		assert_int_equal(job_bulk_op(op)->v[i].run != 0, i % 2);
	}
	assert_true(store_counts(s, &c, &e));
	assert_int_equal(c.jobs[JOB_ACTIVE], 2345);
	assert_int_equal(c.runs[RUN_QUEUED], 1172);
	assert_counts_true(s);
}

static void a_bulk_with_one_bad_member_changes_nothing(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[] = {op_add("before", NULL, NULL), op_bulk(NULL, 1500), op_add("after", NULL, NULL)};
	struct store_counts c;
	struct err e = {};

	job_bulk_op(ops[1])->v[3].name = "before";
	job_bulk_op(ops[1])->v[1400].name = "before";
	apply_all(s, ops, 3);
	assert_true(ops[0]->ok && ops[2]->ok);
	assert_false(ops[1]->ok);
	assert_int_equal(ops[1]->err.kind, ERR_CONFLICT);
	assert_int_equal(job_bulk_op(ops[1])->failed, 3);
	assert_true(store_counts(s, &c, &e));
	assert_int_equal(c.jobs[JOB_ACTIVE], 2);
	assert_counts_true(s);
	for (size_t i = 0; i < 3; i++)
		op_free(ops[i]);
}

static void an_owner_has_no_more_live_jobs_than_allowed(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[5];
	AUTO(op) *late = op_add(NULL, NULL, NULL);
	AUTO(op) *removal = NULL;

	for (size_t i = 0; i < 5; i++) {
		ops[i] = op_add(NULL, NULL, NULL);
		job_add_op(ops[i])->job.limit = 3;
	}
	job_add_op(ops[4])->job.uid = 7;
	apply_all(s, ops, 5);
	assert_true(ops[0]->ok && ops[1]->ok && ops[2]->ok && ops[4]->ok);
	assert_false(ops[3]->ok);
	assert_int_equal(ops[3]->err.kind, ERR_LIMIT);
	job_add_op(late)->job.limit = 3;
	assert_false(apply_one(s, late));
	removal = op_job_cancel(OP_JOB_CANCEL, job_add_op(ops[1])->job.id);
	assert_true(apply_one(s, removal));
	assert_true(apply_one(s, late));
	for (size_t i = 0; i < 5; i++)
		op_free(ops[i]);
}

static void a_spec_comes_back_byte_for_byte(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(buf) big = {};
	const char *const specs[] = {"{\"script\":\"a\\\"b\\\\c\\u0001\\u0000\\n\"}", "{\"script\":\"\xc3\xa9\xf0\x9f\x8c\x8d'\"}",
		"{\"script\":\"\x7f%s $1 :id ?1\"}", NULL};

	buf_str(&big, "{\"stdin\":\"");
	for (int i = 0; i < 100000; i++)
		buf_str(&big, "0123456789");
	buf_str(&big, "\"}");
	for (size_t i = 0; i < ELEMENTS(specs); i++) {
		const char *spec = specs[i] ? specs[i] : big.data;
		AUTO(op) *op = op_add(NULL, NULL, spec);
		AUTO(op) *claim = op_claim(1, T0);
		AUTO(job) *job = NULL;

		assert_true(apply_one(s, op));
		job = get_job(s, job_add_op(op)->job.id);
		assert_string_equal(job->spec, spec);
		assert_true(apply_one(s, claim));
		assert_int_equal(claim_op(claim)->claimed.n, 1);
		assert_string_equal(claim_op(claim)->claimed.v[0].spec, spec);
	}
}

static void cancelling_a_job_ends_its_queued_runs_and_its_schedule(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add("c", NULL, NULL);
	AUTO(op) *cancel = NULL;
	AUTO(job) *job = NULL;
	AUTO(run) *run = NULL;
	struct batch_wake wake;

	job_add_op(add)->job.next_slot = T0 + USEC_HOUR;
	assert_true(apply_one(s, add));
	cancel = op_job_cancel(OP_JOB_CANCEL, job_add_op(add)->job.id);
	wake = apply_all(s, &cancel, 1);
	assert_true(cancel->ok);
	assert_int_equal(wake.next_slot, USEC_NEVER);
	assert_int_equal(wake.next_due, USEC_NEVER);
	assert_int_equal(job_cancel_op(cancel)->was, JOB_ACTIVE);
	assert_int_equal(job_cancel_op(cancel)->queued_cancelled, 1);
	assert_int_equal(job_cancel_op(cancel)->open.n, 0);
	assert_string_equal(job_cancel_op(cancel)->name, "c");
	job = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(job->state, JOB_CANCELLED);
	assert_int_equal(job->next_slot, 0);
	run = get_run(s, job_add_op(add)->job.run);
	assert_int_equal(run->state, RUN_CANCELLED);
	assert_string_equal(run->reason, "job cancelled");
	assert_counts_true(s);
}

static void cancelling_leaves_running_runs_unless_asked(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, NULL);
	AUTO(run) *claimed = claim_one(s, T0);
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *again = op_job_cancel(OP_JOB_CANCEL, id);

	start_run(s, claimed, T0 + 1);
	assert_true(apply_one(s, cancel));
	assert_int_equal(job_cancel_op(cancel)->open.n, 1);
	assert_false(job_cancel_op(cancel)->open.v[0]->cancel_asked);
	job_cancel_op(again)->running = true;
	assert_true(apply_one(s, again));
	assert_int_equal(job_cancel_op(again)->was, JOB_CANCELLED);
	assert_int_equal(job_cancel_op(again)->open.n, 1);
	assert_true(job_cancel_op(again)->open.v[0]->cancel_asked);
	end_run(s, claimed, ATTEMPT_CANCELLED, T0 + 7);
	assert_counts_true(s);
}

static void another_users_job_cannot_be_cancelled(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "mine");
	AUTO(op) *op = op_job_cancel(OP_JOB_REMOVE, id);
	AUTO(job) *job = NULL;
	struct err e = {};

	job_cancel_op(op)->uid = 4444;
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_NOT_FOUND);
	assert_false(store_job_get(s, 4444, id, &job, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_ACTIVE);
}

static void a_removed_job_is_gone_but_its_history_stays(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "r");
	AUTO(run) *run = claim_one(s, T0);
	AUTO(op) *removal = op_job_cancel(OP_JOB_REMOVE, id);
	AUTO(op) *again = op_job_cancel(OP_JOB_REMOVE, id);
	AUTO(run) *kept = NULL;
	AUTO(job) *job = NULL;
	struct err e = {};

	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 9);
	assert_true(apply_one(s, removal));
	assert_int_equal(job_cancel_op(removal)->was, JOB_FINISHED);
	assert_false(store_job_find(s, -1, "r", &job, &e));
	assert_false(apply_one(s, again));
	assert_int_equal(again->err.kind, ERR_NOT_FOUND);
	kept = get_run(s, run->id);
	assert_string_equal(kept->job_name, "r");
	assert_counts_true(s);
}

static void cancelling_a_finished_job_leaves_it_finished(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, NULL);
	AUTO(run) *run = claim_one(s, T0);
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(job) *job = NULL;

	end_run(s, run, ATTEMPT_FAILED, T0 + 9);
	assert_true(apply_one(s, cancel));
	assert_int_equal(job_cancel_op(cancel)->was, JOB_FINISHED);
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_FINISHED);
}

static void a_job_with_slots_to_come_does_not_finish(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add(NULL, NULL, NULL);
	AUTO(run) *run = NULL;
	AUTO(job) *job = NULL;

	job_add_op(add)->job.next_slot = T0 + USEC_HOUR;
	assert_true(apply_one(s, add));
	run = claim_one(s, T0);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 9);
	job = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(job->state, JOB_ACTIVE);
	assert_int_equal(job->next_slot, T0 + USEC_HOUR);
}

static void names_for_a_suggestion_are_the_owners_own(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(strv) names = {};
	AUTO_DONE(strv) all = {};
	AUTO(op) *bob = op_add("bobs", NULL, NULL);
	struct err e = {};

	add_job(s, "one");
	add_job(s, NULL);
	add_job(s, "two");
	job_add_op(bob)->job.uid = 1001;
	assert_true(apply_one(s, bob));
	assert_true(store_job_names(s, 1000, 10, &names, &e));
	assert_int_equal(names.n, 2);
	assert_string_equal(names.v[0], "two");
	assert_true(store_job_names(s, -1, 10, &all, &e));
	assert_int_equal(all.n, 3);
}

/* The error of a dry run; ERR_NONE: accepted. */
static enum err_kind try_add(struct store *s, const char *name, const char *key, const char *spec, const char *field)
{
	AUTO(op) *op = op_add(name, key, spec);
	struct err e = {};

	job_add_op(op)->job.limit = 3;
	if (job_dry_run(s, &job_add_op(op)->job, &e))
		return ERR_NONE;
	assert_string_equal(e.field, field);
	assert_int_equal(job_add_op(op)->job.id, 0);
	return e.kind;
}

static void trying_meets_what_adding_would_meet_and_changes_nothing(void **state)
{
	struct fixture *f = *state;
	AUTO(store) *reader = NULL;
	AUTO(op) *first = op_add("n", "k", SPEC_A);
	AUTO(op) *known = op_add("n", "k", SPEC_A);
	struct err e = {};

	assert_true(apply_one(f->store, first));
	reader = open_or_fail(f->where, true);
	assert_int_equal(try_add(reader, "m", NULL, SPEC_A, ""), ERR_NONE);
	assert_int_equal(try_add(reader, "m", NULL, SPEC_A, ""), ERR_NONE);
	assert_int_equal(try_add(reader, "n", NULL, SPEC_A, "name"), ERR_CONFLICT);
	assert_int_equal(try_add(reader, "m", "k", SPEC_B, "key"), ERR_CONFLICT);
	assert_true(job_dry_run(reader, &job_add_op(known)->job, &e));
	assert_true(job_add_op(known)->job.existed);
	assert_int_equal(job_add_op(known)->job.id, job_add_op(first)->job.id);
	add_job(f->store, NULL);
	add_job(f->store, NULL);
	assert_int_equal(try_add(reader, "m", NULL, SPEC_A, ""), ERR_LIMIT);
	assert_counts_true(f->store);
}

static struct op *op_crowd(usec_t slot)
{
	struct op *op = op_add(NULL, NULL, NULL);

	job_add_op(op)->job.run_at = 0;
	job_add_op(op)->job.next_slot = slot;
	job_add_op(op)->job.density_max = 10;
	return op;
}

static void a_job_hears_how_many_others_are_due_at_its_slot(void **state)
{
	struct fixture *f = *state;
	AUTO(store) *reader = NULL;
	AUTO(op) *trial = op_crowd(T0);
	struct op *ops[14];
	struct err e = {};

	for (size_t i = 0; i < ELEMENTS(ops); i++)
		ops[i] = op_crowd(i < 12 ? T0 : T0 + USEC_MIN);
	apply_all(f->store, ops, 3);
	apply_all(f->store, ops + 3, 11);
	assert_int_equal(job_add_op(ops[2])->job.density, 0);
	assert_int_equal(job_add_op(ops[3])->job.density, 3);
	assert_int_equal(job_add_op(ops[11])->job.density, 3);
	assert_int_equal(job_add_op(ops[13])->job.density, 0);
	reader = open_or_fail(f->where, true);
	assert_true(job_dry_run(reader, &job_add_op(trial)->job, &e));
	assert_int_equal(job_add_op(trial)->job.density, 10); /* the maximum */
	for (size_t i = 0; i < ELEMENTS(ops); i++)
		op_free(ops[i]);
}

static void a_run_of_now_may_be_due_later(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *op = op_add(NULL, NULL, NULL);
	AUTO(run) *run = NULL;

	job_add_op(op)->job.run_delay = 5;
	assert_true(apply_one(s, op));
	run = get_run(s, job_add_op(op)->job.run);
	assert_int_equal(run->slot, job_add_op(op)->job.run_at);
	assert_int_equal(run->due_at, job_add_op(op)->job.run_at + 5);
}

/* ---- bytes of an owner ---- */

static void jobs_beyond_the_bytes_of_their_owner_are_refused(void **state)
{
	struct store *s = store_of(state);
	AUTO_TEXT large = xprintf("{\"command\":[\"true\"],\"stdin\":\"%0900000d\"}", 0);
	struct op *ops[4];

	for (size_t i = 0; i < 4; i++) {
		ops[i] = op_add(NULL, NULL, large);
		job_add_op(ops[i])->job.uid = i == 3 ? 1001 : 1000;
		job_add_op(ops[i])->job.bytes_limit = 2 << 20;
	}
	apply_all(s, ops, 4);
	assert_true(ops[0]->ok && ops[1]->ok && ops[3]->ok);
	assert_false(ops[2]->ok);
	assert_int_equal(ops[2]->err.kind, ERR_LIMIT);
	assert_non_null(strstr(ops[2]->err.msg, "take 2 MiB of the store, and one user may have 2 MiB ('owner-store-limit'"));
	assert_non_null(strstr(ops[2]->err.msg, "'jobctl rm'"));
	op_reset(ops[2]);
	job_add_op(ops[2])->job.bytes_limit = 0;
	assert_true(apply_one(s, ops[2]));
	for (size_t i = 0; i < 4; i++)
		op_free(ops[i]);
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(jobs_beyond_the_bytes_of_their_owner_are_refused),
	STORE_TEST(the_first_slot_is_computed_when_the_number_is_known),
	STORE_TEST(a_key_used_twice_gives_the_same_job),
	STORE_TEST(a_key_with_other_content_is_a_conflict),
	STORE_TEST(a_key_belongs_to_its_owner),
	STORE_TEST(a_removed_jobs_key_is_kept_for_a_day_and_then_free),
	STORE_TEST(a_name_is_taken_while_its_job_lives),
	STORE_TEST(a_name_means_the_newest_job_of_its_owner),
	STORE_TEST(twins_in_one_batch_are_told_apart),
	STORE_TEST(a_bulk_goes_in_whole),
	STORE_TEST(a_bulk_with_one_bad_member_changes_nothing),
	STORE_TEST(an_owner_has_no_more_live_jobs_than_allowed),
	STORE_TEST(a_spec_comes_back_byte_for_byte),
	STORE_TEST(cancelling_a_job_ends_its_queued_runs_and_its_schedule),
	STORE_TEST(cancelling_leaves_running_runs_unless_asked),
	STORE_TEST(another_users_job_cannot_be_cancelled),
	STORE_TEST(a_removed_job_is_gone_but_its_history_stays),
	STORE_TEST(cancelling_a_finished_job_leaves_it_finished),
	STORE_TEST(a_job_with_slots_to_come_does_not_finish),
	STORE_TEST(names_for_a_suggestion_are_the_owners_own),
	STORE_TEST(trying_meets_what_adding_would_meet_and_changes_nothing),
	STORE_TEST(a_job_hears_how_many_others_are_due_at_its_slot),
	STORE_TEST(a_run_of_now_may_be_due_later),
};
const struct suite_part store_jobs_part = {tests, ELEMENTS(tests)};
