/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pauses of jobs and scopes: which runs start, wait or are skipped. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/pause_times.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/op.h"
#include "store/ops/run/boot_runs.h"
#include "store/ops/run/plans.h"
#include "store/ops/run/triggers.h"
#include "store/pause_rows.h"
#include "unit/store/pause_fixture.h"
#include <string.h>

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

static void planned_runs_that_are_not_due_are_planned_again(void **state)
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
	assert_int_equal(wake.next_slot, T0 + 3 * USEC_SEC); /* the planner starts there */
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
	assert_int_equal(state_of(s, id), JOB_PAUSED); /* the job stays paused */
	{
		AUTO(op) *resume = op_resume(id, T0 + 3);

		assert_true(apply_one(s, resume));
	}
	assert_int_equal(state_of(s, id), JOB_FINISHED); /* it had no slot left */
	assert_counts_true(s);
}

static void a_finished_or_suspended_job_is_not_paused(void **state)
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

static void a_run_covered_by_another_pause_keeps_waiting(void **state)
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

	assert_true(pause_job(s, id, T0, 0)); /* paused jobs have slots as well */
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

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_slot_that_is_due_while_its_job_is_paused_is_skipped),
	STORE_TEST(planned_runs_that_are_not_due_are_planned_again),
	STORE_TEST(the_only_slot_of_a_paused_job_waits_and_runs_after_resume),
	STORE_TEST(runs_that_go_on_are_told_by_a_pause),
	STORE_TEST(a_finished_or_suspended_job_is_not_paused),
	STORE_TEST(others_jobs_are_not_there),
	STORE_TEST(a_pause_ends_by_itself_and_wakes_for_it),
	STORE_TEST(a_pause_that_is_over_counts_no_more_even_before_it_is_tidied),
	STORE_TEST(a_later_word_about_a_pause_counts),
	STORE_TEST(each_scope_covers_its_jobs_and_no_others),
	STORE_TEST(a_freeze_spares_a_tag_and_lets_go_what_it_held),
	STORE_TEST(a_run_covered_by_another_pause_keeps_waiting),
	STORE_TEST(pauses_of_a_uid_are_bounded_and_seen_by_it),
	STORE_TEST(a_suspended_job_is_resumed_when_the_cause_is_gone),
	STORE_TEST(a_job_added_paused_starts_nothing),
	STORE_TEST(a_boot_finds_paused_jobs_and_their_runs_wait),
};
const struct suite_part store_pauses_part = {tests, ELEMENTS(tests)};
