/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses, freezes and triggers: what starts, what waits, what is skipped, and what comes after. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/job_changes.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/ops/run/boot_runs.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/triggers.h"
#include "store/pause_rows.h"
#include "unit/store/store_suite.h"
#include <string.h>

#define HOUR USEC_HOUR
#define ANN 1000 /* owns the jobs; eve, who has uid 7, is an administrator */

/* A job with a slot now and others to follow; its run is queued as the planner would. */
static int64_t add_recurring(struct store *s, const char *name, const struct strv *tags)
{
	AUTO(op) *op = op_add(name, NULL, NULL);

	job_add_op(op)->job.next_slot = T0 + HOUR;
	job_add_op(op)->job.tags = tags;
	assert_true(apply_one(s, op));
	return job_add_op(op)->job.id;
}

static struct op *op_pause(int64_t job, usec_t at, usec_t until)
{
	struct op *op = op_new(OP_PAUSE, NULL, NULL);

	op_fill(pause_op(op), .uid = -1, .job = job, .pause = {.by_uid = 7, .by_name = (char *)"eve",
		.reason = (char *)"works", .at = at, .until = until});
	return op;
}

static struct op *op_scope(enum pause_scope scope, const char *key, int64_t uid, usec_t until)
{
	struct op *op = op_pause(0, T0, until);

	pause_op(op)->pause.scope = scope;
	pause_op(op)->pause.key = (char *)key;
	pause_op(op)->pause.uid = uid;
	return op;
}

static struct op *op_resume(int64_t job, usec_t now)
{
	struct op *op = op_new(OP_RESUME, NULL, NULL);

	op_fill(resume_op(op), .uid = -1, .job = job, .now = now);
	return op;
}

static struct op *op_unscope(enum pause_scope scope, const char *key, int64_t uid)
{
	struct op *op = op_resume(0, T0); /* so that no slot is inside the pause that ends */

	resume_op(op)->scope = scope;
	resume_op(op)->key = key;
	resume_op(op)->of_uid = uid;
	return op;
}

static struct op *op_trigger(int64_t job, usec_t now)
{
	struct op *op = op_new(OP_TRIGGER, NULL, NULL);

	op_fill(trigger_op(op), .uid = -1, .job = job, .revision = 1, .now = now);
	return op;
}

static bool pause_job(struct store *s, int64_t job, usec_t at, usec_t until)
{
	AUTO(op) *op = op_pause(job, at, until);

	return apply_one(s, op);
}

static void put_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid)
{
	AUTO(op) *op = op_scope(scope, key, uid, 0);

	assert_true(apply_one(s, op));
}

static size_t drop_scope(struct store *s, enum pause_scope scope, const char *key, int64_t uid)
{
	AUTO(op) *op = op_unscope(scope, key, uid);

	assert_true(apply_one(s, op));
	assert_true(resume_op(op)->found);
	return resume_op(op)->released;
}

static enum job_state state_of(struct store *s, int64_t id)
{
	AUTO(job) *j = get_job(s, id);

	return j->state;
}

/* Looks what a claim makes of a run. */
static void assert_claimed(struct store *s, int64_t run, usec_t now, enum run_state state, const char *reason)
{
	AUTO(run) *started = claim_one(s, now);
	AUTO(run) *r = get_run(s, run);

	assert_int_equal(r->state, state);
	if (reason)
		assert_string_equal(r->reason, reason);
	assert_int_equal(started != NULL, state == RUN_CLAIMED);
	assert_counts_true(s);
}

static int64_t only_run(struct store *s, int64_t job)
{
	struct run_filter f = {.uid = -1, .job = job, .limit = 10};
	AUTO_DONE(run_list) all = {};
	struct err e = {};

	assert_true(list_runs_page(s, &f, &all, &e));
	assert_int_equal(all.n, 1);
	return all.v[0]->id;
}

/* ---- one job ---- */

static void a_slot_that_is_due_while_its_job_is_paused_is_skipped(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "backup", NULL);
	AUTO(job) *j = NULL;

	assert_true(pause_job(s, id, T0, 0));
	j = get_job(s, id);
	assert_int_equal(j->state, JOB_PAUSED);
	assert_string_equal(j->reason, "works");
	assert_string_equal(j->pause.by_name, "eve");
	assert_int_equal(j->pause.by_uid, 7);
	assert_int_equal(j->pause.at, T0);
	assert_claimed(s, only_run(s, id), T0 + 1, RUN_SKIPPED, "paused");
	assert_int_equal(state_of(s, id), JOB_PAUSED);
}

static void what_is_planned_but_not_due_is_planned_again(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add("soon", NULL, NULL);
	AUTO(op) *pause = NULL;
	AUTO(job) *j = NULL;
	struct batch_wake wake;

	job_add_op(add)->job.run_at = T0 + 3 * USEC_SEC;
	assert_true(apply_one(s, add));
	pause = op_pause(job_add_op(add)->job.id, T0, 0);
	wake = apply_all(s, &pause, 1);
	assert_true(pause->ok);
	assert_int_equal(wake.next_due, USEC_NEVER);
	assert_int_equal(wake.next_slot, T0 + 3 * USEC_SEC); /* the planner finds it there */
	j = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(j->next_slot, T0 + 3 * USEC_SEC);
	assert_counts_true(s);
}

static void the_only_slot_of_a_paused_job_waits_and_runs_after_resume(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "once"), run = only_run(s, id);
	AUTO(op) *resume = op_resume(id, T0 + HOUR);
	AUTO(run) *held = NULL;
	struct batch_wake wake;

	assert_true(pause_job(s, id, T0, 0));
	assert_claimed(s, run, T0 + 1, RUN_QUEUED, "paused");
	held = get_run(s, run);
	assert_int_equal(held->hold, HOLD_PAUSED);
	wake = apply_all(s, &resume, 1);
	assert_true(resume->ok && resume_op(resume)->found);
	assert_int_equal(resume_op(resume)->released, 1);
	assert_true(wake.next_due <= T0 + HOUR);
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_claimed(s, run, T0 + HOUR, RUN_CLAIMED, NULL);
}

static void runs_that_go_on_are_told_by_a_pause(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "busy");
	AUTO(run) *r = claim_one(s, T0);
	AUTO(op) *pause = op_pause(id, T0 + 1, 0);

	assert_true(apply_one(s, pause));
	assert_int_equal(pause_op(pause)->open.n, 1);
	assert_int_equal(pause_op(pause)->open.v[0]->id, r->id);
	end_run(s, r, ATTEMPT_SUCCEEDED, T0 + 2);
	assert_int_equal(state_of(s, id), JOB_PAUSED); /* it ends as it is: paused, not finished */
	{
		AUTO(op) *resume = op_resume(id, T0 + 3);

		assert_true(apply_one(s, resume));
	}
	assert_int_equal(state_of(s, id), JOB_FINISHED); /* nothing was left for it to do */
	assert_counts_true(s);
}

static void what_is_over_or_suspended_is_not_paused(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "over");
	AUTO(run) *r = claim_one(s, T0);
	AUTO(op) *pause = op_pause(id, T0 + 9, 0);
	AUTO(op) *resume = op_resume(id, T0 + 9);
	AUTO(op) *nobody = op_pause(4711, T0 + 9, 0);

	end_run(s, r, ATTEMPT_SUCCEEDED, T0 + 2);
	assert_false(apply_one(s, pause));
	assert_int_equal(pause->err.kind, ERR_CONFLICT);
	assert_false(apply_one(s, resume));
	assert_int_equal(resume->err.kind, ERR_CONFLICT);
	assert_false(apply_one(s, nobody));
	assert_int_equal(nobody->err.kind, ERR_NOT_FOUND);
}

static void others_jobs_are_not_there(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "mine", NULL);
	AUTO(op) *pause = op_pause(id, T0, 0);
	AUTO(op) *trigger = op_trigger(id, T0);

	pause_op(pause)->uid = trigger_op(trigger)->uid = 1234;
	assert_false(apply_one(s, pause));
	assert_int_equal(pause->err.kind, ERR_NOT_FOUND);
	assert_false(apply_one(s, trigger));
	assert_int_equal(trigger->err.kind, ERR_NOT_FOUND);
}

/* ---- until ---- */

static void a_pause_ends_by_itself_and_wakes_for_it(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "once"), run = only_run(s, id);
	AUTO(op) *pause = op_pause(id, T0, T0 + HOUR);
	AUTO(op) *early = op_new(OP_PAUSES_END, NULL, NULL);
	AUTO(op) *end = op_new(OP_PAUSES_END, NULL, NULL);
	struct batch_wake wake = apply_all(s, &pause, 1);

	assert_int_equal(wake.pause_end, T0 + HOUR);
	assert_claimed(s, run, T0 + 1, RUN_QUEUED, "paused");
	pause_times_op(early)->now = T0 + HOUR - 1;
	wake = apply_all(s, &early, 1);
	assert_int_equal(pause_times_op(early)->jobs, 0);
	assert_int_equal(wake.pause_end, T0 + HOUR);
	pause_times_op(end)->now = T0 + HOUR;
	wake = apply_all(s, &end, 1);
	assert_int_equal(pause_times_op(end)->jobs, 1);
	assert_int_equal(pause_times_op(end)->released, 1);
	assert_int_equal(wake.pause_end, USEC_NEVER);
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_claimed(s, run, T0 + HOUR, RUN_CLAIMED, NULL);
}

static void a_pause_that_is_over_counts_no_more_even_before_it_is_tidied(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "tick", NULL);
	AUTO(op) *scope = op_scope(PAUSE_ALL, "", -1, T0 + HOUR);
	AUTO(op) *early = op_trigger(id, T0 + HOUR - 1);
	AUTO(op) *trigger = op_trigger(id, T0 + HOUR);

	assert_true(pause_job(s, id, T0 - 5, T0 + HOUR)); /* its slot was not due then, and is planned again later */
	assert_true(apply_one(s, scope));
	assert_false(apply_one(s, early));
	assert_true(apply_one(s, trigger));
	assert_claimed(s, trigger_op(trigger)->run->id, T0 + HOUR, RUN_CLAIMED, NULL);
}

static void a_later_word_about_a_pause_counts(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "tick", NULL);
	AUTO(op) *end = op_new(OP_PAUSES_END, NULL, NULL);

	assert_true(pause_job(s, id, T0, T0 + HOUR));
	assert_true(pause_job(s, id, T0 + 1, 0));
	pause_times_op(end)->now = T0 + 2 * HOUR;
	assert_true(apply_one(s, end));
	assert_int_equal(pause_times_op(end)->jobs, 0);
	assert_int_equal(state_of(s, id), JOB_PAUSED);
	assert_counts_true(s);
}

/* ---- scopes ---- */

static void each_scope_covers_its_jobs_and_no_others(void **state)
{
	static const struct {
		enum pause_scope scope;
		const char *key;
		int64_t uid;
		bool covers;
	} cases[] = {
		{PAUSE_ALL, "", -1, true}, {PAUSE_ALL, "", 1000, true}, {PAUSE_ALL, "", 1001, false},
		{PAUSE_QUEUE, "default", -1, true}, {PAUSE_QUEUE, "slow", -1, false},
		{PAUSE_OWNER, "1000", 1000, true}, {PAUSE_OWNER, "1001", 1001, false},
		{PAUSE_TAG, "env=test", -1, true}, {PAUSE_TAG, "env=test", 1001, false}, {PAUSE_TAG, "env=live", -1, false},
		{PAUSE_FREEZE, "", -1, true},
	};
	AUTO_DONE(strv) tags = {};
	struct store *s = store_of(state);

	strv_add(&tags, "env=test");
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		const char *word = cases[i].scope == PAUSE_FREEZE ? "frozen" : "paused";
		int64_t id = add_recurring(s, NULL, &tags), run = only_run(s, id);
		AUTO(op) *trigger = op_trigger(id, T0 + 1);

		trigger_op(trigger)->tags = &tags;
		put_scope(s, cases[i].scope, cases[i].key, cases[i].uid);
		assert_claimed(s, run, T0 + 1, cases[i].covers ? RUN_SKIPPED : RUN_CLAIMED, cases[i].covers ? word : NULL);
		assert_int_equal(apply_one(s, trigger), !cases[i].covers);
		if (cases[i].covers)
			assert_non_null(strstr(trigger->err.msg, word));
		else
			assert_claimed(s, trigger_op(trigger)->run->id, T0 + 1, RUN_CLAIMED, NULL);
		drop_scope(s, cases[i].scope, cases[i].key, cases[i].uid);
	}
}

static void a_freeze_spares_a_tag_and_lets_go_what_it_held(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(strv) tags = {};
	int64_t cold = add_job(s, "cold"), warm, held = only_run(s, cold);
	AUTO(op) *freeze = op_scope(PAUSE_FREEZE, "", -1, 0);

	strv_add(&tags, "keep=yes");
	pause_op(freeze)->pause.spared = (char *)"keep=yes";
	assert_true(apply_one(s, freeze));
	assert_claimed(s, held, T0 + 1, RUN_QUEUED, "frozen");
	warm = add_recurring(s, "warm", &tags);
	assert_claimed(s, only_run(s, warm), T0 + 1, RUN_CLAIMED, NULL);
	assert_int_equal(drop_scope(s, PAUSE_FREEZE, "", -1), 1);
	assert_claimed(s, held, T0 + 2, RUN_CLAIMED, NULL);
}

static void what_another_pause_covers_waits_on(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "once"), run = only_run(s, id);

	put_scope(s, PAUSE_ALL, "", -1);
	put_scope(s, PAUSE_OWNER, "1000", 1000);
	assert_claimed(s, run, T0 + 1, RUN_QUEUED, "paused");
	assert_int_equal(drop_scope(s, PAUSE_ALL, "", -1), 1);
	assert_claimed(s, run, T0 + 2, RUN_QUEUED, "paused");
	assert_int_equal(drop_scope(s, PAUSE_OWNER, "1000", 1000), 1);
	assert_claimed(s, run, T0 + 3, RUN_CLAIMED, NULL);
}

static void pauses_of_a_uid_are_bounded_and_seen_by_it(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(pause_list) own = {};
	AUTO_DONE(pause_list) other = {};
	AUTO(op) *more = op_scope(PAUSE_TAG, "a=2", 1000, 0);
	struct err e = {};

	put_scope(s, PAUSE_TAG, "a=1", 1000);
	put_scope(s, PAUSE_ALL, "", -1);
	pause_op(more)->limit = 1;
	assert_false(apply_one(s, more));
	assert_int_equal(more->err.kind, ERR_LIMIT);
	assert_true(pause_rows_list(s, 1000, &own, &e));
	assert_int_equal(own.n, 2);
	assert_true(pause_rows_list(s, 1001, &other, &e));
	assert_int_equal(other.n, 1);
	assert_int_equal(other.v[0].scope, PAUSE_ALL);
}

/* ---- triggers ---- */

static void two_triggers_in_one_microsecond_are_two_runs(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "twice", NULL);
	struct op *ops[] = {op_trigger(id, T0 + 5), op_trigger(id, T0 + 5)};

	apply_all(s, ops, 2);
	assert_true(ops[0]->ok && ops[1]->ok);
	assert_int_not_equal(trigger_op(ops[0])->run->id, trigger_op(ops[1])->run->id);
	assert_int_equal(trigger_op(ops[0])->run->kind, RUN_KIND_MANUAL);
	assert_int_equal(trigger_op(ops[1])->run->due_at, T0 + 5);
	assert_counts_true(s);
	op_free(ops[0]);
	op_free(ops[1]);
}

static void force_overrules_a_pause_and_a_freeze_only_for_administrators(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(run) *first = claim_one(s, T0);
	AUTO(op) *pause = op_pause(id, T0, 0);
	AUTO(op) *plain = op_trigger(id, T0 + 1);
	AUTO(op) *forced = op_trigger(id, T0 + 1);
	AUTO(op) *frozen = op_trigger(id, T0 + 2);
	AUTO(op) *thawing = op_trigger(id, T0 + 3);

	end_run(s, first, ATTEMPT_SUCCEEDED, T0 + 1);
	pause_op(pause)->pause.by_uid = ANN;
	assert_true(apply_one(s, pause));
	assert_false(apply_one(s, plain));
	assert_int_equal(plain->err.kind, ERR_CONFLICT);
	assert_non_null(strstr(plain->err.msg, "paused by eve"));
	assert_non_null(strstr(plain->err.msg, "works"));
	assert_non_null(strstr(plain->err.msg, "--force"));
	trigger_op(forced)->forced = trigger_op(frozen)->forced = trigger_op(thawing)->forced = trigger_op(thawing)->overrides_freeze = true;
	assert_true(apply_one(s, forced));
	assert_claimed(s, trigger_op(forced)->run->id, T0 + 1, RUN_CLAIMED, NULL);
	put_scope(s, PAUSE_FREEZE, "", -1);
	assert_false(apply_one(s, frozen));
	assert_non_null(strstr(frozen->err.msg, "administrator"));
	assert_true(apply_one(s, thawing));
	assert_claimed(s, trigger_op(thawing)->run->id, T0 + 3, RUN_CLAIMED, NULL);
}

static void a_finished_job_lives_for_its_run(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "again");
	AUTO(run) *first = claim_one(s, T0);
	AUTO(run) *second = NULL;
	AUTO(op) *trigger = op_trigger(id, T0 + 5);
	AUTO(op) *taken = op_trigger(id, T0 + 9);

	end_run(s, first, ATTEMPT_SUCCEEDED, T0 + 1);
	assert_int_equal(state_of(s, id), JOB_FINISHED);
	assert_true(apply_one(s, trigger));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_counts_true(s);
	second = claim_one(s, T0 + 6);
	assert_int_equal(second->id, trigger_op(trigger)->run->id);
	end_run(s, second, ATTEMPT_SUCCEEDED, T0 + 7);
	assert_int_equal(state_of(s, id), JOB_FINISHED);
	add_recurring(s, "again", NULL);
	assert_false(apply_one(s, taken));
	assert_int_equal(taken->err.kind, ERR_CONFLICT);
	assert_counts_true(s);
}

static void cancelled_and_changed_jobs_are_not_triggered(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "gone", NULL);
	AUTO(op) *stale = op_trigger(id, T0 + 5);
	AUTO(op) *late = op_trigger(id, T0 + 5);
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);

	trigger_op(stale)->revision = 2;
	assert_false(apply_one(s, stale));
	assert_int_equal(stale->err.kind, ERR_BUSY);
	assert_true(pause_job(s, id, T0, T0 + HOUR));
	assert_true(apply_one(s, cancel));
	assert_false(apply_one(s, late));
	assert_int_equal(late->err.kind, ERR_CONFLICT);
	{
		AUTO(op) *end = op_new(OP_PAUSES_END, NULL, NULL);
		struct batch_wake wake;

		pause_times_op(end)->now = T0 + HOUR;
		wake = apply_all(s, &end, 1);
		assert_int_equal(wake.pause_end, USEC_NEVER);
		assert_int_equal(state_of(s, id), JOB_CANCELLED); /* nothing wakes it up again */
	}
	assert_counts_true(s);
}

/* ---- suspended, added paused, booted ---- */

static void zone_is_gone(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	(void)now;
	(void)horizon;
	*ret = (struct planned){};
	if (*(bool *)arg)
		ret->suspend = "bad_zone";
	else
		ret->next_slot = due->slot;
}

static void a_suspended_job_is_resumed_when_the_cause_is_gone(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "odd", NULL);
	AUTO(op) *plan = op_new(OP_PLAN, NULL, NULL);
	AUTO(op) *vain = op_resume(id, T0 + 2 * HOUR);
	AUTO(op) *resume = op_resume(id, T0 + 2 * HOUR);
	bool gone = true;
	struct batch_wake wake;

	assert_true(pause_job(s, id, T0, 0)); /* a paused one has slots, too */
	op_fill(plan_op(plan), .now = T0, .horizon = T0 + HOUR, .limit = 10, .fn = zone_is_gone, .fn_arg = &gone);
	assert_true(apply_one(s, plan));
	assert_int_equal(state_of(s, id), JOB_SUSPENDED);
	assert_counts_true(s);
	resume_op(vain)->fn = resume_op(resume)->fn = zone_is_gone;
	resume_op(vain)->fn_arg = resume_op(resume)->fn_arg = &gone;
	assert_false(apply_one(s, vain));
	assert_int_equal(vain->err.kind, ERR_CONFLICT);
	assert_non_null(strstr(vain->err.msg, "bad_zone"));
	assert_int_equal(state_of(s, id), JOB_SUSPENDED);
	gone = false;
	wake = apply_all(s, &resume, 1);
	assert_true(resume->ok && resume_op(resume)->found);
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_true(wake.next_slot <= T0 + HOUR); /* from its last slot on: catch-up decides about those it missed */
	assert_counts_true(s);
}

static void a_job_added_paused_starts_nothing(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add("later", NULL, NULL);
	AUTO(job) *j = NULL;

	job_add_op(add)->job.paused = true;
	assert_true(apply_one(s, add));
	j = get_job(s, job_add_op(add)->job.id);
	assert_int_equal(j->state, JOB_PAUSED);
	assert_string_equal(j->pause.by_name, "ann");
	assert_claimed(s, job_add_op(add)->job.run, T0 + 1, RUN_QUEUED, "paused");
}

static void a_boot_finds_paused_jobs_and_their_runs_wait(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *add = op_add("boots", NULL, NULL);
	AUTO(op) *boot = op_new(OP_BOOT, NULL, NULL);

	job_add_op(add)->job.run_at = 0;
	job_add_op(add)->job.next_slot = USEC_NEVER;
	job_add_op(add)->job.boots = job_add_op(add)->job.paused = true;
	assert_true(apply_one(s, add));
	op_fill(boot_runs_op(boot), .name = "one", .boot = "b1", .now = T0 + 5);
	assert_true(apply_one(s, boot));
	assert_int_equal(boot_runs_op(boot)->runs, 1);
	assert_claimed(s, only_run(s, job_add_op(add)->job.id), T0 + 6, RUN_QUEUED, "paused");
	{
		AUTO(op) *resume = op_resume(job_add_op(add)->job.id, T0 + 7);

		assert_true(apply_one(s, resume));
		assert_int_equal(resume_op(resume)->released, 1);
	}
	assert_claimed(s, only_run(s, job_add_op(add)->job.id), T0 + 8, RUN_CLAIMED, NULL);
}

/* ---- a pause that an administrator set ---- */

static void assert_denied(struct store *s, struct op *op /* moved */)
{
	assert_false(apply_one(s, op));
	assert_int_equal(op->err.kind, ERR_DENIED);
	assert_non_null(strstr(op->err.msg, "paused by eve"));
	assert_non_null(strstr(op->err.msg, "only an administrator"));
	op_free(op);
	assert_counts_true(s);
}

static struct op *ann_pauses(struct op *op)
{
	pause_op(op)->uid = pause_op(op)->pause.by_uid = ANN;
	pause_op(op)->pause.by_name = (char *)"ann";
	return op;
}

static struct op *ann_resumes(struct op *op)
{
	resume_op(op)->uid = ANN;
	return op;
}

static struct op *ann_triggers(int64_t id, bool forced)
{
	struct op *op = op_trigger(id, T0 + 3);

	trigger_op(op)->uid = ANN;
	trigger_op(op)->forced = forced;
	return op;
}

static struct op *ann_ends(enum op_kind kind, int64_t id)
{
	struct op *op = op_job_cancel(kind, id);

	job_cancel_op(op)->uid = ANN;
	return op;
}

static struct op *ann_renames(int64_t id, const char *name)
{
	struct op *op = op_new(OP_JOB_CHANGE, NULL, NULL);

	op_fill(job_change_op(op), .uid = ANN, .id = id, .what = "name",
		.to = {.name = name, .spec = "{}", .now = T0 + 3});
	return op;
}

static void an_owner_does_not_lift_an_administrators_pause_of_a_job(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *lift = op_resume(id, T0 + 9);

	assert_true(pause_job(s, id, T0, 0));
	assert_denied(s, ann_resumes(op_resume(id, T0 + 2)));
	assert_denied(s, ann_pauses(op_pause(id, T0 + 2, T0 + 3))); /* and does not replace it by a shorter one */
	assert_denied(s, ann_triggers(id, false));
	assert_denied(s, ann_triggers(id, true));
	assert_denied(s, ann_renames(id, "other"));
	assert_denied(s, ann_ends(OP_JOB_REMOVE, id));
	assert_int_equal(state_of(s, id), JOB_PAUSED);
	assert_true(apply_one(s, lift));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_counts_true(s);
}

static struct op *op_resume_until(int64_t id, usec_t now, usec_t until, const char *reason)
{
	struct op *op = op_resume(id, now);

	resume_op(op)->until = until;
	resume_op(op)->by_uid = 7;
	resume_op(op)->by_name = "eve";
	resume_op(op)->reason = reason;
	return op;
}

static void a_resumed_job_is_paused_again_at_the_given_time(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "night", NULL);
	AUTO(op) *none = op_resume_until(id, T0, T0 + HOUR, NULL);
	AUTO(op) *until = op_resume_until(id, T0 + 1, T0 + HOUR, NULL);
	AUTO(op) *again = op_resume_until(id, T0 + 2, T0 + 2 * HOUR, NULL);
	AUTO(op) *early = op_trigger(id, T0 + 3), *late = op_trigger(id, T0 + 2 * HOUR);
	AUTO(op) *due = op_new(OP_PAUSES_END, NULL, NULL);
	AUTO(op) *lift = op_resume(id, T0 + 3 * HOUR);
	struct batch_wake wake;
	AUTO(job) *j = NULL;

	assert_false(apply_one(s, none));
	assert_int_equal(none->err.kind, ERR_CONFLICT);
	assert_true(pause_job(s, id, T0, 0));
	wake = apply_all(s, &until, 1);
	assert_int_equal(wake.pause_end, T0 + HOUR);
	wake = apply_all(s, &again, 1); /* replaces the one before, and keeps the reason */
	assert_int_equal(wake.pause_end, T0 + 2 * HOUR);
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_true(apply_one(s, early));
	pause_times_op(due)->now = T0 + 2 * HOUR;
	wake = apply_all(s, &due, 1);
	assert_int_equal(pause_times_op(due)->begun, 1);
	assert_int_equal(wake.pause_end, USEC_NEVER);
	j = get_job(s, id);
	assert_int_equal(j->state, JOB_PAUSED);
	assert_string_equal(j->reason, "works");
	assert_int_equal(j->pause.at, T0 + 2 * HOUR);
	assert_false(apply_one(s, late));
	assert_counts_true(s);
	assert_true(apply_one(s, lift));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
}

static void an_owner_does_not_lift_an_administrators_pause_that_is_to_come(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *until = op_resume_until(id, T0 + 1, T0 + HOUR, "night");
	AUTO(op) *early = ann_triggers(id, false);
	AUTO(op) *begin = op_new(OP_PAUSES_END, NULL, NULL);

	assert_true(pause_job(s, id, T0, 0));
	assert_true(apply_one(s, until));
	assert_denied(s, ann_resumes(op_resume(id, T0 + 2)));
	assert_denied(s, ann_resumes(op_resume_until(id, T0 + 2, T0 + 9 * HOUR, NULL)));
	assert_denied(s, ann_pauses(op_pause(id, T0 + 2, T0 + 3)));
	assert_denied(s, ann_ends(OP_JOB_REMOVE, id));
	assert_true(apply_one(s, early));
	pause_times_op(begin)->now = T0 + HOUR;
	assert_true(apply_one(s, begin));
	assert_denied(s, ann_resumes(op_resume(id, T0 + HOUR + 1)));
	assert_int_equal(state_of(s, id), JOB_PAUSED);
}

static void an_administrators_pause_outlives_a_cancellation_by_the_owner(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *cancel = ann_ends(OP_JOB_CANCEL, id);
	AUTO(op) *other = op_add("free", NULL, NULL);
	AUTO(op) *same = op_add("held", NULL, NULL);

	assert_true(pause_job(s, id, T0, T0 + HOUR));
	assert_true(apply_one(s, cancel));
	assert_int_equal(state_of(s, id), JOB_CANCELLED);
	assert_denied(s, ann_resumes(op_resume(id, T0 + 2)));
	assert_denied(s, ann_ends(OP_JOB_REMOVE, id));
	assert_denied(s, op_add("held", NULL, NULL));
	assert_true(apply_one(s, other));
	job_add_op(same)->job.now = T0 + HOUR; /* the pause is over by then */
	assert_true(apply_one(s, same));
	assert_counts_true(s);
}

static void an_administrator_gives_a_paused_name_away(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "held", NULL);
	AUTO(op) *cancel = ann_ends(OP_JOB_CANCEL, id);
	AUTO(op) *add = op_add("held", NULL, NULL);

	assert_true(pause_job(s, id, T0, 0));
	assert_true(apply_one(s, cancel));
	job_add_op(add)->job.by_admin = true;
	assert_true(apply_one(s, add));
}

static void an_owner_does_not_lift_an_administrators_pause_of_the_owner(void **state)
{
	static const struct {
		enum pause_scope scope;
		const char *key;
	} cases[] = {{PAUSE_OWNER, "1000"}, {PAUSE_ALL, ""}, {PAUSE_TAG, "a=1"}};
	struct store *s = store_of(state);
	AUTO_DONE(strv) tags = {};
	int64_t id;

	strv_add(&tags, "a=1");
	id = add_recurring(s, "held", &tags);
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct op *trigger = ann_triggers(id, true);

		put_scope(s, cases[i].scope, cases[i].key, ANN);
		assert_denied(s, ann_resumes(op_unscope(cases[i].scope, cases[i].key, ANN)));
		assert_denied(s, ann_pauses(op_scope(cases[i].scope, cases[i].key, ANN, T0 + 5)));
		trigger_op(trigger)->tags = &tags;
		assert_denied(s, trigger);
		drop_scope(s, cases[i].scope, cases[i].key, ANN);
	}
}

static void an_owner_ends_pauses_of_his_own_and_of_an_exit_code(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "mine", NULL);
	AUTO(op) *pause = ann_pauses(op_pause(id, T0, 0));
	AUTO(op) *resume = ann_resumes(op_resume(id, T0 + 1));
	AUTO(op) *by_exit = op_pause(id, T0 + 2, 0);
	AUTO(op) *again = ann_resumes(op_resume(id, T0 + 3));
	AUTO(op) *scope = ann_pauses(op_scope(PAUSE_ALL, "", ANN, 0));
	AUTO(op) *unscope = ann_resumes(op_unscope(PAUSE_ALL, "", ANN));

	assert_true(apply_one(s, pause));
	assert_true(apply_one(s, resume));
	pause_op(by_exit)->pause.by_uid = -1;
	assert_true(apply_one(s, by_exit));
	assert_true(apply_one(s, again));
	assert_true(apply_one(s, scope));
	assert_true(apply_one(s, unscope));
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
}

/* ---- cancelled, and back ---- */

/* The schedule has a slot each full hour, up to the last one. */
static void hourly_until(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	usec_t next = due->slot / HOUR * HOUR + HOUR;

	(void)now;
	(void)horizon;
	ret->next_slot = next <= *(const usec_t *)arg ? next : 0;
}

static struct op *op_revive(int64_t job, usec_t now, usec_t *last)
{
	struct op *op = op_resume(job, now);

	resume_op(op)->fn = hourly_until;
	resume_op(op)->fn_arg = last;
	return op;
}

static void a_cancelled_job_that_is_resumed_goes_on_with_its_next_slot(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "tick", NULL);
	usec_t last = USEC_NEVER, later = T0 + 10 * HOUR;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *resume = op_revive(id, later, &last);
	struct batch_wake wake;

	assert_true(apply_one(s, cancel));
	wake = apply_all(s, &resume, 1);
	assert_true(resume->ok && resume_op(resume)->found);
	assert_int_equal(resume_op(resume)->was, JOB_CANCELLED);
	assert_int_equal(state_of(s, id), JOB_ACTIVE);
	assert_int_equal(wake.next_slot, later / HOUR * HOUR + HOUR); /* what passed meanwhile is not caught up */
	assert_counts_true(s);
}

static void a_cancelled_job_without_a_slot_left_becomes_finished(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "once");
	usec_t last = T0;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *resume = op_revive(id, T0 + 5, &last);
	AUTO(op) *trigger = op_trigger(id, T0 + 6);

	assert_true(apply_one(s, cancel));
	assert_true(apply_one(s, resume));
	assert_int_equal(state_of(s, id), JOB_FINISHED);
	assert_counts_true(s);
	assert_true(apply_one(s, trigger)); /* which is what jobctl advises */
}

static void a_cancelled_job_whose_name_is_taken_stays_cancelled(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_recurring(s, "tick", NULL);
	usec_t last = USEC_NEVER;
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO(op) *resume = op_revive(id, T0 + 5, &last);
	AUTO(op) *full = op_revive(add_recurring(s, "more", NULL), T0 + 5, &last);
	AUTO(op) *cancel_more = op_job_cancel(OP_JOB_CANCEL, resume_op(full)->job);

	assert_true(apply_one(s, cancel));
	add_recurring(s, "tick", NULL);
	assert_false(apply_one(s, resume));
	assert_int_equal(resume->err.kind, ERR_CONFLICT);
	assert_int_equal(state_of(s, id), JOB_CANCELLED);
	assert_true(apply_one(s, cancel_more));
	resume_op(full)->limit = 1;
	assert_false(apply_one(s, full));
	assert_int_equal(full->err.kind, ERR_LIMIT);
	assert_counts_true(s);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_slot_that_is_due_while_its_job_is_paused_is_skipped),
	STORE_TEST(what_is_planned_but_not_due_is_planned_again),
	STORE_TEST(the_only_slot_of_a_paused_job_waits_and_runs_after_resume),
	STORE_TEST(runs_that_go_on_are_told_by_a_pause),
	STORE_TEST(what_is_over_or_suspended_is_not_paused),
	STORE_TEST(others_jobs_are_not_there),
	STORE_TEST(a_pause_ends_by_itself_and_wakes_for_it),
	STORE_TEST(a_pause_that_is_over_counts_no_more_even_before_it_is_tidied),
	STORE_TEST(a_later_word_about_a_pause_counts),
	STORE_TEST(each_scope_covers_its_jobs_and_no_others),
	STORE_TEST(a_freeze_spares_a_tag_and_lets_go_what_it_held),
	STORE_TEST(what_another_pause_covers_waits_on),
	STORE_TEST(pauses_of_a_uid_are_bounded_and_seen_by_it),
	STORE_TEST(two_triggers_in_one_microsecond_are_two_runs),
	STORE_TEST(force_overrules_a_pause_and_a_freeze_only_for_administrators),
	STORE_TEST(a_finished_job_lives_for_its_run),
	STORE_TEST(cancelled_and_changed_jobs_are_not_triggered),
	STORE_TEST(a_suspended_job_is_resumed_when_the_cause_is_gone),
	STORE_TEST(a_job_added_paused_starts_nothing),
	STORE_TEST(a_boot_finds_paused_jobs_and_their_runs_wait),
	STORE_TEST(an_owner_does_not_lift_an_administrators_pause_of_a_job),
	STORE_TEST(a_resumed_job_is_paused_again_at_the_given_time),
	STORE_TEST(an_owner_does_not_lift_an_administrators_pause_that_is_to_come),
	STORE_TEST(an_administrators_pause_outlives_a_cancellation_by_the_owner),
	STORE_TEST(an_administrator_gives_a_paused_name_away),
	STORE_TEST(an_owner_does_not_lift_an_administrators_pause_of_the_owner),
	STORE_TEST(an_owner_ends_pauses_of_his_own_and_of_an_exit_code),
	STORE_TEST(a_cancelled_job_that_is_resumed_goes_on_with_its_next_slot),
	STORE_TEST(a_cancelled_job_without_a_slot_left_becomes_finished),
	STORE_TEST(a_cancelled_job_whose_name_is_taken_stays_cancelled),
};
const struct suite_part store_control_part = {tests, ELEMENTS(tests)};
