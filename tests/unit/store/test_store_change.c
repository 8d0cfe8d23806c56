/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of changed definitions: no slot is lost or run twice, waiting runs follow, revisions are kept. */
#include "base/buf.h"
#include "base/text.h"
#include "store/limit.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/templates.h"
#include "store/ops/limits.h"
#include "store/ops/op.h"
#include "store/ops/run/plans.h"
#include "store/read/list/list_jobs.h"
#include "store/read/list/list_runs.h"
#include "store/read/list/list_templates.h"
#include "store/read/revisions.h"
#include "store/read/single.h"
#include "store/revision.h"
#include "store/store.h"
#include "store/template.h"
#include "unit/store/store_suite.h"
#include <string.h>

#define SPEC1 "{\"command\":[\"one\"]}"
#define SPEC2 "{\"command\":[\"two\"]}"
#define SPEC3 "{\"command\":[\"three\"]}"
#define SEC USEC_SEC

static int64_t add_one(struct store *s, const char *name, usec_t slot)
{
	AUTO(op) *op = op_due(name, slot);

	job_add_op(op)->job.spec = SPEC1;
	assert_true(apply_one(s, op));
	return job_add_op(op)->job.id;
}

static struct op *op_change(int64_t id, int64_t expect, const char *name, const char *spec)
{
	struct op *op = op_new(OP_JOB_CHANGE, NULL, NULL);

	op->act.by = (struct actor){.uid = 1000, .who = "ann"};
	op_fill(job_change_op(op), .uid = -1, .id = id, .expect = expect, .what = "command changed",
		.to = {.name = name, .spec = spec, .now = T0});
	return op;
}

static struct op *op_reschedule(int64_t id, const char *name, usec_t now, usec_t next)
{
	struct op *op = op_change(id, 0, name, SPEC2);

	job_change_op(op)->reschedule = true;
	job_change_op(op)->to.now = now;
	job_change_op(op)->to.next_slot = next;
	return op;
}

/* Slots every 'arg' microseconds. */
static void every(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	usec_t slot = due->slot;

	(void)now;
	for (; slot <= horizon; slot += *(usec_t *)arg)
		plan_run_add(ret, &(struct planned_run){.state = RUN_QUEUED, .slot = slot, .slot_last = slot,
			.slot_count = 1, .due_at = slot});
	ret->next_slot = slot;
}

static void plan(struct store *s, usec_t step, usec_t now)
{
	AUTO(op) *op = op_new(OP_PLAN, NULL, NULL);

	op_fill(plan_op(op), .now = now, .horizon = now + 5 * SEC, .limit = 100, .fn = every, .fn_arg = &step);
	assert_true(apply_one(s, op));
}

/* The runs of a job by slot, as "5:queued 7:queued", in seconds after T0. */
static void assert_slots(struct store *s, int64_t job, const char *expected)
{
	struct run_filter f = {.uid = -1, .job = job, .limit = 100};
	AUTO_DONE(run_list) runs = {};
	AUTO_DONE(buf) text = {};
	struct err e = {};

	assert_true(list_runs_page(s, &f, &runs, &e));
	for (size_t i = runs.n; i-- > 0;)
		buf_printf(&text, "%s%lld:%s", text.len ? " " : "", (long long)(runs.v[i]->slot - T0) / SEC,
			run_state_name(runs.v[i]->state));
	assert_string_equal(text.data ? text.data : "", expected);
}

static void a_change_needs_the_revision_it_was_made_from(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0 + 3600 * SEC);
	AUTO(op) *first = op_change(id, 1, "tick", SPEC2);
	AUTO(op) *late = op_change(id, 1, "tick", SPEC3);
	AUTO(job) *job = NULL;

	assert_true(apply_one(s, first));
	assert_int_equal(job_change_op(first)->revision, 2);
	assert_false(apply_one(s, late));
	assert_int_equal(late->err.kind, ERR_CONFLICT);
	assert_non_null(strstr(late->err.msg, "revision 2"));
	job = get_job(s, id);
	assert_int_equal(job->revision, 2);
	assert_string_equal(job->spec, SPEC2);
	assert_int_equal(job->next_slot, T0 + 3600 * SEC);
	assert_counts_true(s);
}

static void a_change_that_is_not_of_the_schedule_leaves_the_slots_alone(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0 + 1 * SEC);
	AUTO(op) *op = op_change(id, 1, "tick", SPEC2);
	AUTO(run) *before = NULL;

	plan(s, 2 * SEC, T0);
	assert_slots(s, id, "1:queued 3:queued 5:queued");
	assert_true(apply_one(s, op));
	assert_int_equal(job_change_op(op)->unplanned, 0);
	assert_slots(s, id, "1:queued 3:queued 5:queued");
	plan(s, 2 * SEC, T0 + 2 * SEC);
	assert_slots(s, id, "1:queued 3:queued 5:queued 7:queued");
	before = claim_one(s, T0 + 1 * SEC);
	assert_int_equal(before->slot, T0 + 1 * SEC);
	assert_counts_true(s);
}

static void a_new_schedule_takes_the_place_of_what_was_planned_and_not_due(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0);
	AUTO(op) *op = op_reschedule(id, "tick", T0 + 2 * SEC, T0 + 4 * SEC);
	struct batch_wake wake;

	plan(s, 2 * SEC, T0);
	assert_slots(s, id, "0:queued 2:queued 4:queued");
	wake = apply_all(s, &op, 1);
	assert_true(op->ok);
	/* the slots at 0 and 2 were due before the change, and stay; that at 4 is planned anew */
	assert_int_equal(job_change_op(op)->unplanned, 1);
	assert_slots(s, id, "0:queued 2:queued");
	assert_int_equal(wake.next_slot, T0 + 4 * SEC);
	plan(s, 3 * SEC, T0 + 2 * SEC);
	assert_slots(s, id, "0:queued 2:queued 4:queued 7:queued");
	assert_counts_true(s);
}

static void a_run_that_waits_for_its_jitter_is_not_planned_away(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add("tick", NULL, SPEC1);
	AUTO(op) *op = NULL;

	job_add_op(add)->job.run_delay = 60 * SEC; /* its slot is T0 */
	assert_true(apply_one(s, add));
	op = op_reschedule(job_add_op(add)->job.id, "tick", T0 + 2 * SEC, T0 + 10 * SEC);
	assert_true(apply_one(s, op));
	assert_slots(s, job_add_op(add)->job.id, "0:queued");
}

static void a_slot_that_is_due_and_not_planned_yet_makes_the_change_wait(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0 + 1 * SEC);
	AUTO(op) *op = op_reschedule(id, "tick", T0 + 1 * SEC, T0 + 4 * SEC);
	AUTO(op) *other = op_change(id, 0, "tick", SPEC3);

	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_BUSY);
	job_change_op(other)->to.now = T0 + 1 * SEC;
	assert_true(apply_one(s, other)); /* a change without new slots */
	plan(s, 2 * SEC, T0 + 1 * SEC);
	assert_true(apply_one(s, op));
	assert_slots(s, id, "1:queued");
}

static void running_runs_are_left_alone(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0);
	AUTO(op) *op = op_reschedule(id, "tick", T0 + 1 * SEC, T0 + 9 * SEC);
	AUTO(run) *run = NULL, *after = NULL;

	plan(s, 100 * SEC, T0);
	run = claim_one(s, T0);
	start_run(s, run, T0);
	assert_true(apply_one(s, op));
	after = get_run(s, run->id);
	assert_int_equal(after->state, RUN_RUNNING);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 2 * SEC);
	assert_slots(s, id, "0:succeeded");
	assert_counts_true(s);
}

static void waiting_runs_follow_queue_priority_and_policy(void **state)
{
	struct fixture *f = *state;
	struct store *s = f->store;
	int64_t id = add_job(s, "now");
	AUTO(op) *op = op_change(id, 1, "now", SPEC2);
	AUTO(op) *queue = op_new(OP_LIMIT_SET, NULL, NULL);
	AUTO_DONE(buf) counts = {};

	job_change_op(op)->to.queue = "slow";
	assert_false(apply_one(s, op));
	assert_string_equal(op->err.field, "queue");
	op_fill(limit_op(queue), .scope = LIMIT_QUEUE, .key = "slow");
	assert_true(apply_one(s, queue));
	job_change_op(op)->to.priority = 9;
	job_change_op(op)->to.policy = (struct start_policy){.overlap = OVERLAP_QUEUE, .overlap_waiting = 3, .permits = 1,
		.deadline = 7, .expires = 8};
	assert_true(apply_one(s, op));
	place_query(f->where, "SELECT queue || ' ' || priority || ' ' || overlap || ' ' || overlap_waiting || ' ' || places || "
		"' ' || deadline || ' ' || expires FROM runs", &counts);
	assert_non_null(strstr(counts.data, "slow 9 1 3 1 7 8"));
	buf_clear(&counts);
	place_query(f->where, "SELECT queue || ' ' || sum(n) FROM counters WHERE what < 2 AND state = 0 GROUP BY queue, what "
		"ORDER BY queue", &counts);
	assert_non_null(strstr(counts.data, "default 0"));
	assert_non_null(strstr(counts.data, "slow 1"));
	assert_counts_true(s);
}

static void a_finished_job_comes_to_life_with_a_new_schedule_only(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "once");
	AUTO(run) *run = claim_one(s, T0);
	AUTO(op) *plain = op_change(id, 0, "once", SPEC2);
	AUTO(op) *revive = op_reschedule(id, "once", T0 + 5 * SEC, T0 + 9 * SEC);
	AUTO(job) *job = NULL;

	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 1);
	assert_true(apply_one(s, plain));
	assert_int_equal(job_change_op(plain)->state, JOB_FINISHED);
	assert_true(apply_one(s, revive));
	assert_int_equal(job_change_op(revive)->was, JOB_FINISHED);
	job = get_job(s, id);
	assert_int_equal(job->state, JOB_ACTIVE);
	assert_int_equal(job->revision, 3);
	assert_int_equal(job->next_slot, T0 + 9 * SEC);
	assert_counts_true(s);
}

static void a_revived_job_counts_against_the_limit_and_for_its_name(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "once");
	AUTO(run) *run = claim_one(s, T0);
	AUTO(op) *full = op_reschedule(id, NULL, T0 + 5 * SEC, T0 + 9 * SEC);
	AUTO(op) *named = op_reschedule(id, "once", T0 + 5 * SEC, T0 + 9 * SEC);

	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 1);
	add_one(s, "once", T0 + 50 * SEC);
	job_change_op(full)->to.limit = 1;
	assert_false(apply_one(s, full));
	assert_int_equal(full->err.kind, ERR_LIMIT);
	assert_false(apply_one(s, named));
	assert_int_equal(named->err.kind, ERR_CONFLICT);
	assert_string_equal(named->err.field, "name");
	job_change_op(full)->to.limit = 2;
	assert_true(apply_one(s, full));
	assert_counts_true(s);
}

static void a_cancelled_job_is_refused_with_advice(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0 + 9 * SEC);
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *op = op_change(id, 0, "tick", SPEC2);
	AUTO(op) *missing = op_change(id + 1, 0, NULL, SPEC2);
	AUTO(op) *foreign = op_change(id, 0, NULL, SPEC2);

	job_change_op(foreign)->uid = 1001;
	assert_false(apply_one(s, foreign));
	assert_int_equal(foreign->err.kind, ERR_NOT_FOUND);
	assert_true(apply_one(s, cancel));
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_CONFLICT);
	assert_non_null(strstr(op->err.msg, "jobctl resume"));
	assert_false(apply_one(s, missing));
	assert_int_equal(missing->err.kind, ERR_NOT_FOUND);
}

static void a_name_that_another_job_has_is_refused(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "one", T0 + 9 * SEC);
	AUTO(op) *op = op_change(id, 0, "two", SPEC2);
	AUTO(op) *free_name = op_change(id, 0, "three", SPEC2);
	AUTO(job) *job = NULL;
	struct err e = {};

	add_one(s, "two", T0 + 9 * SEC);
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_CONFLICT);
	assert_true(apply_one(s, free_name));
	assert_true(store_job_find(s, -1, "three", &job, &e));
	assert_int_equal(job->id, id);
}

static void a_job_that_counts_from_its_end_waits_for_the_open_run(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "loop");
	AUTO(run) *run = claim_one(s, T0);
	AUTO(op) *op = op_reschedule(id, "loop", T0 + 5 * SEC, T0 + 9 * SEC);
	struct batch_wake wake;

	job_change_op(op)->follows = true;
	wake = apply_all(s, &op, 1);
	assert_true(op->ok);
	assert_int_equal(wake.next_slot, USEC_NEVER);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 20 * SEC);
	wake = apply_all(s, NULL, 0);
	assert_in_range(wake.next_slot, T0 + 20 * SEC, T0 + 20 * SEC + 1);
}

static void tags_are_replaced(void **state)
{
	struct store *s = store_of(state);
	struct strv old = {}, new = {};
	AUTO(op) *add = op_add("t", NULL, SPEC1);
	AUTO(op) *op = NULL;
	AUTO_DONE(job_list) found = {};
	struct err e = {};

	strv_add(&old, "team=a");
	strv_add(&old, "keep=1");
	strv_add(&new, "team=b");
	strv_add(&new, "keep=1");
	job_add_op(add)->job.tags = &old;
	assert_true(apply_one(s, add));
	op = op_change(job_add_op(add)->job.id, 0, "t", SPEC2);
	job_change_op(op)->to.tags = &new;
	assert_true(apply_one(s, op));
	assert_true(list_jobs_page(s, &(struct job_filter){.uid = -1, .tag_key = "team", .tag_value = "a", .limit = 9}, &found, &e));
	assert_int_equal(found.n, 0);
	assert_true(list_jobs_page(s, &(struct job_filter){.uid = -1, .tag_key = "team", .tag_value = "b", .limit = 9}, &found, &e));
	assert_int_equal(found.n, 1);
	strv_done(&old);
	strv_done(&new);
}

static void history_has_the_first_definition_and_who_changed_it(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0 + 9 * SEC);
	AUTO(op) *op = op_change(id, 1, "tick", SPEC2);
	AUTO(op) *undo = op_change(id, 2, "tick", SPEC1);
	AUTO(job) *fresh = get_job(s, id);
	AUTO(job) *job = NULL;
	AUTO_DONE(revision_list) one = {};
	AUTO_DONE(revision_list) all = {};
	AUTO_DONE(revision_list) older = {};
	struct err e = {};

	assert_true(revisions_page(s, fresh, 0, 10, &one, &e));
	assert_int_equal(one.n, 1);
	assert_string_equal(one.v[0].spec, SPEC1);
	assert_true(apply_one(s, op));
	job_change_op(undo)->origin = 1;
	assert_true(apply_one(s, undo));
	job = get_job(s, id);
	assert_true(revisions_page(s, job, 0, 10, &all, &e));
	assert_int_equal(all.n, 3);
	assert_int_equal(all.v[0].number, 3);
	assert_int_equal(all.v[0].origin, 1);
	assert_string_equal(all.v[1].who, "ann");
	assert_string_equal(all.v[1].what, "command changed");
	assert_string_equal(all.v[2].spec, SPEC1);
	assert_int_equal(all.v[2].at, T0);
	assert_true(revisions_page(s, job, 3, 1, &older, &e));
	assert_int_equal(older.n, 1);
	assert_int_equal(older.v[0].number, 2);
}

static void old_revisions_are_forgotten(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_one(s, "tick", T0 + 9 * SEC);
	AUTO_DONE(revision_list) all = {};
	AUTO(job) *job = NULL;
	struct err e = {};

	for (int i = 0; i < REVISIONS_KEPT + 5; i++) {
		AUTO(op) *op = op_change(id, 0, "tick", i % 2 ? SPEC1 : SPEC2);

		assert_true(apply_one(s, op));
	}
	job = get_job(s, id);
	assert_true(revisions_page(s, job, 0, 1000, &all, &e));
	assert_int_equal(all.n, REVISIONS_KEPT);
	assert_int_equal(all.v[0].number, REVISIONS_KEPT + 6);
}

static void a_page_of_revisions_ends_with_the_one_that_reaches_its_bytes(void **state)
{
	struct store *s = store_of(state);
	AUTO_TEXT large = xprintf("{\"command\":[\"true\"],\"stdin\":\"%01000000d\"}", 0);
	AUTO_TEXT other = xprintf("{\"command\":[\"false\"],\"stdin\":\"%01000000d\"}", 0);
	int64_t id = add_one(s, "tick", T0 + 9 * SEC);
	AUTO_DONE(revision_list) first = {};
	AUTO_DONE(revision_list) second = {};
	AUTO(job) *job = NULL;
	struct err e = {};

	for (int i = 0; i < 7; i++) {
		AUTO(op) *op = op_change(id, 0, "tick", i % 2 ? large : other);

		assert_true(apply_one(s, op));
	}
	job = get_job(s, id);
	assert_true(revisions_page(s, job, 0, 100, &first, &e));
	assert_int_equal(first.n, 5); /* of about a megabyte each */
	assert_true(first.more);
	assert_true(revisions_page(s, job, first.v[4].number, 100, &second, &e));
	assert_int_equal(second.n, 3);
	assert_false(second.more);
}

/* ---- names that are taken ---- */

static struct op *op_add_again(enum if_exists what, const char *spec)
{
	struct op *op = op_add("backup", NULL, spec);

	job_add_op(op)->job.if_exists = what;
	job_add_op(op)->job.asked = spec;
	job_add_op(op)->job.run_at = 0;
	job_add_op(op)->job.next_slot = T0 + 30 * SEC;
	return op;
}

static void a_taken_name_is_an_error_or_kept_or_replaced(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add_again(EXISTS_REPLACE, SPEC1);
	AUTO(op) *refused = op_add_again(EXISTS_ERROR, SPEC2);
	AUTO(op) *kept = op_add_again(EXISTS_KEEP, SPEC2);
	AUTO(op) *same = op_add_again(EXISTS_REPLACE, SPEC1);
	AUTO(op) *other = op_add_again(EXISTS_REPLACE, SPEC2);
	AUTO(job) *before = NULL, *after = NULL;

	assert_true(apply_one(s, first));
	assert_false(job_add_op(first)->job.existed);
	assert_false(apply_one(s, refused));
	assert_int_equal(refused->err.kind, ERR_CONFLICT);
	assert_true(apply_one(s, kept));
	assert_true(job_add_op(kept)->job.existed && !job_add_op(kept)->job.replaced);
	assert_int_equal(job_add_op(kept)->job.id, job_add_op(first)->job.id);
	assert_true(apply_one(s, same));
	assert_true(job_add_op(same)->job.existed && !job_add_op(same)->job.replaced);
	before = get_job(s, job_add_op(first)->job.id);
	assert_int_equal(before->revision, 1);
	assert_true(apply_one(s, other));
	assert_true(job_add_op(other)->job.existed && job_add_op(other)->job.replaced);
	assert_int_equal(job_add_op(other)->job.id, job_add_op(first)->job.id);
	after = get_job(s, job_add_op(first)->job.id);
	assert_int_equal(after->revision, 2);
	assert_string_equal(after->spec, SPEC2);
	assert_counts_true(s);
}

static void after_a_change_the_first_submission_is_new_again(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add_again(EXISTS_REPLACE, SPEC1);
	AUTO(op) *change = NULL;
	AUTO(op) *again = op_add_again(EXISTS_REPLACE, SPEC1);
	AUTO(job) *after = NULL;

	assert_true(apply_one(s, first));
	change = op_change(job_add_op(first)->job.id, 1, "backup", SPEC3);
	assert_true(apply_one(s, change));
	assert_true(apply_one(s, again));
	assert_true(job_add_op(again)->job.replaced);
	after = get_job(s, job_add_op(first)->job.id);
	assert_int_equal(after->revision, 3);
	assert_string_equal(after->spec, SPEC1);
}

static void a_key_with_other_content_stays_a_conflict(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add_again(EXISTS_REPLACE, SPEC1);
	AUTO(op) *other = op_add_again(EXISTS_REPLACE, SPEC2);

	job_add_op(first)->job.key = job_add_op(other)->job.key = "k";
	assert_true(apply_one(s, first));
	assert_false(apply_one(s, other));
	assert_int_equal(other->err.kind, ERR_CONFLICT);
	assert_string_equal(other->err.field, "key");
}

static void the_same_name_twice_in_one_batch_is_one_job(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[] = {op_add_again(EXISTS_REPLACE, SPEC1), op_add_again(EXISTS_REPLACE, SPEC2)};
	AUTO(job) *job = NULL;

	apply_all(s, ops, 2);
	assert_true(ops[0]->ok && ops[1]->ok);
	assert_int_equal(job_add_op(ops[0])->job.id, job_add_op(ops[1])->job.id);
	job = get_job(s, job_add_op(ops[0])->job.id);
	assert_string_equal(job->spec, SPEC2);
	assert_int_equal(job->next_slot, T0 + 30 * SEC);
	assert_counts_true(s);
	op_free(ops[0]);
	op_free(ops[1]);
}

static void a_bulk_replaces_too_and_is_undone_as_a_whole(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add_again(EXISTS_ERROR, SPEC1);
	AUTO(op) *bulk = op_new(OP_JOB_BULK, NULL, NULL);
	AUTO(job) *job = NULL, *after = NULL;

	assert_true(apply_one(s, first));
	job_bulk_op(bulk)->n = 2;
	job_bulk_op(bulk)->v = xcalloc(2, sizeof(*job_bulk_op(bulk)->v));
	for (int i = 0; i < 2; i++) {
		AUTO(op) *one = op_add_again(i ? EXISTS_ERROR : EXISTS_REPLACE, SPEC2);

		job_bulk_op(bulk)->v[i] = job_add_op(one)->job;
	}
	assert_false(apply_one(s, bulk));
	job = get_job(s, job_add_op(first)->job.id);
	assert_int_equal(job->revision, 1);
	job_bulk_op(bulk)->v[1].name = "another";
	assert_true(apply_one(s, bulk));
	after = get_job(s, job_add_op(first)->job.id);
	assert_int_equal(after->revision, 2);
	assert_counts_true(s);
}

static void at_the_limit_a_job_can_still_be_replaced(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_add_again(EXISTS_ERROR, SPEC1);
	AUTO(op) *again = op_add_again(EXISTS_REPLACE, SPEC2);
	AUTO(op) *more = op_add_again(EXISTS_REPLACE, SPEC2);

	assert_true(apply_one(s, first));
	job_add_op(again)->job.limit = job_add_op(more)->job.limit = 1;
	job_add_op(more)->job.name = "more";
	assert_true(apply_one(s, again));
	assert_true(job_add_op(again)->job.replaced);
	assert_false(apply_one(s, more));
	assert_int_equal(more->err.kind, ERR_LIMIT);
}

/* ---- templates ---- */

static struct op *op_template(enum op_kind kind, uint32_t uid, const char *name, const char *spec)
{
	struct op *op = op_new(kind, NULL, NULL);

	op_fill(template_op(op), .uid = uid, .owner = "x", .name = name, .params = "{}", .spec = spec, .now = T0);
	return op;
}

static void templates_are_found_own_first_then_those_of_root(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *shared = op_template(OP_TEMPLATE_PUT, 0, "t", SPEC1);
	AUTO(op) *own = op_template(OP_TEMPLATE_PUT, 1000, "t", SPEC2);
	AUTO(op) *again = op_template(OP_TEMPLATE_PUT, 1000, "t", SPEC3);
	AUTO(op) *rm = op_template(OP_TEMPLATE_REMOVE, 1000, "t", NULL);
	AUTO(op) *gone = op_template(OP_TEMPLATE_REMOVE, 1000, "t", NULL);
	AUTO_DONE(template) t = {};
	AUTO_DONE(template_list) l = {};
	struct err e = {};

	assert_false(list_templates_get(s, 1000, "t", &t, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_string_equal(e.field, "template");
	assert_true(apply_one(s, shared));
	assert_true(apply_one(s, own));
	assert_true(list_templates_get(s, 1000, "t", &t, &e));
	assert_string_equal(t.spec, SPEC2);
	template_done(&t);
	assert_true(list_templates_get(s, 1001, "t", &t, &e));
	assert_string_equal(t.spec, SPEC1);
	template_done(&t);
	assert_true(apply_one(s, again));
	assert_int_equal(template_op(again)->revision, 2);
	assert_true(list_templates_page(s, 1000, "", 10, &l, &e));
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].spec, SPEC3);
	assert_true(apply_one(s, rm));
	assert_false(apply_one(s, gone));
	assert_int_equal(gone->err.kind, ERR_NOT_FOUND);
	assert_true(list_templates_get(s, 1000, "t", &t, &e));
	assert_string_equal(t.spec, SPEC1);
}

static void changes_and_templates_beyond_the_bytes_of_their_owner_are_refused(void **state)
{
	struct store *s = store_of(state);
	AUTO_TEXT large = xprintf("{\"command\":[\"true\"],\"stdin\":\"%0900000d\"}", 0);
	int64_t id = add_one(s, "tick", T0 + 9 * SEC);
	AUTO(op) *grow = op_change(id, 0, "tick", large);
	AUTO(op) *again = op_change(id, 0, "tick", large);
	AUTO(op) *shrink = op_change(id, 0, "tick", SPEC2);
	AUTO(op) *put = op_template(OP_TEMPLATE_PUT, 1000, "t", large);

	job_change_op(grow)->to.bytes_limit = 1 << 20;
	assert_false(apply_one(s, grow));
	assert_int_equal(grow->err.kind, ERR_LIMIT);
	assert_true(apply_one(s, again)); /* twice its size, with its revision */
	job_change_op(shrink)->to.bytes_limit = 1 << 20;
	assert_true(apply_one(s, shrink));
	template_op(put)->bytes_limit = 1 << 20;
	assert_false(apply_one(s, put));
	assert_int_equal(put->err.kind, ERR_LIMIT);
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(changes_and_templates_beyond_the_bytes_of_their_owner_are_refused),
	STORE_TEST(a_change_needs_the_revision_it_was_made_from),
	STORE_TEST(a_change_that_is_not_of_the_schedule_leaves_the_slots_alone),
	STORE_TEST(a_new_schedule_takes_the_place_of_what_was_planned_and_not_due),
	STORE_TEST(a_run_that_waits_for_its_jitter_is_not_planned_away),
	STORE_TEST(a_slot_that_is_due_and_not_planned_yet_makes_the_change_wait),
	STORE_TEST(running_runs_are_left_alone),
	STORE_TEST(waiting_runs_follow_queue_priority_and_policy),
	STORE_TEST(a_finished_job_comes_to_life_with_a_new_schedule_only),
	STORE_TEST(a_revived_job_counts_against_the_limit_and_for_its_name),
	STORE_TEST(a_cancelled_job_is_refused_with_advice),
	STORE_TEST(a_name_that_another_job_has_is_refused),
	STORE_TEST(a_job_that_counts_from_its_end_waits_for_the_open_run),
	STORE_TEST(tags_are_replaced),
	STORE_TEST(history_has_the_first_definition_and_who_changed_it),
	STORE_TEST(old_revisions_are_forgotten),
	STORE_TEST(a_page_of_revisions_ends_with_the_one_that_reaches_its_bytes),
	STORE_TEST(a_taken_name_is_an_error_or_kept_or_replaced),
	STORE_TEST(after_a_change_the_first_submission_is_new_again),
	STORE_TEST(a_key_with_other_content_stays_a_conflict),
	STORE_TEST(the_same_name_twice_in_one_batch_is_one_job),
	STORE_TEST(a_bulk_replaces_too_and_is_undone_as_a_whole),
	STORE_TEST(at_the_limit_a_job_can_still_be_replaced),
	STORE_TEST(templates_are_found_own_first_then_those_of_root),
};
const struct suite_part store_change_part = {tests, ELEMENTS(tests)};
