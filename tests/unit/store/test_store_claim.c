/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of claims: permits, deadlines, conditions and pauses. */
#include "base/text.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/run_cancel.h"
#include "unit/store/claim_fixture.h"
#include <string.h>

/* ---- permits ---- */

static void a_slot_that_overlaps_is_skipped(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 3, .policy = {.overlap = OVERLAP_SKIP, .permits = 1}};

	add_slots(s, &w);
	claim_is(state, 10, T0, "1"); /* two runs are due at once, one permit */
	states_are(state, "claimed queued queued");
	claim_is(state, 10, T0 + 2 * USEC_SEC, "");
	states_are(state, "claimed skipped:overlap skipped:overlap");
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 3 * USEC_SEC);
	kept_is_true(state);
}

static void slots_of_one_claim_overlap_too(void **state)
{
	struct slots w = {.n = 3, .policy = {.overlap = OVERLAP_SKIP, .permits = 1}};

	add_slots(store_of(state), &w);
	claim_is(state, 10, T0 + 2 * USEC_SEC, "1");
	states_are(state, "claimed skipped:overlap skipped:overlap");
	kept_is_true(state);
}

static void queued_ones_wait_up_to_their_number_and_go_in_order(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 5, .policy = {.overlap = OVERLAP_QUEUE, .overlap_waiting = 2, .permits = 1}};

	add_slots(s, &w);
	claim_is(state, 10, T0 + USEC_SEC, "1");
	states_are(state, "claimed held queued queued queued");
	claim_is(state, 10, T0 + 4 * USEC_SEC, "");
	states_are(state, "claimed held held skipped:limit skipped:limit");
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 5 * USEC_SEC);
	states_are(state, "succeeded queued:overlap held skipped:limit skipped:limit");
	claim_is(state, 10, T0 + 5 * USEC_SEC, "2");
	end_by_number(s, 2, ATTEMPT_FAILED, T0 + 6 * USEC_SEC);
	claim_is(state, 10, T0 + 6 * USEC_SEC, "3");
	kept_is_true(state);
}

static void a_job_that_may_overlap_has_as_many_places_as_it_was_given(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 5, .policy = {.overlap = OVERLAP_ALLOW, .permits = 2}};

	add_slots(s, &w);
	claim_is(state, 10, T0 + 4 * USEC_SEC, "1 2");
	states_are(state, "claimed claimed held held held");
	end_both(s, 1, 2, T0 + 5 * USEC_SEC); /* two permits in one batch */
	states_are(state, "succeeded succeeded queued:limit queued:limit held");
	claim_is(state, 10, T0 + 5 * USEC_SEC, "3 4");
	end_by_number(s, 4, ATTEMPT_SUCCEEDED, T0 + 6 * USEC_SEC);
	claim_is(state, 10, T0 + 6 * USEC_SEC, "5");
	kept_is_true(state);
}

static void without_a_number_all_may_overlap(void **state)
{
	struct slots w = {.n = 4, .policy = {.overlap = OVERLAP_ALLOW}};

	add_slots(store_of(state), &w);
	claim_is(state, 10, T0 + 4 * USEC_SEC, "1 2 3 4");
	kept_is_true(state);
}

static void a_newer_run_replaces_the_one_that_goes_on(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 3, .policy = {.overlap = OVERLAP_REPLACE, .permits = 1}};
	AUTO(op) *second = op_claim(10, T0 + USEC_SEC);
	AUTO(run) *asked = NULL;

	add_slots(s, &w);
	claim_is(state, 10, T0, "1");
	assert_true(apply_one(s, second));
	assert_int_equal(claim_op(second)->claimed.n, 0);
	assert_int_equal(claim_op(second)->replaced.n, 1);
	assert_int_equal(claim_op(second)->replaced.v[0].run, 1);
	assert_int_equal(claim_op(second)->replaced.v[0].fence, 1);
	asked = get_run(s, 1);
	assert_true(asked->cancel_asked);
	states_are(state, "claimed:replaced held queued");
	claim_is(state, 10, T0 + 2 * USEC_SEC, ""); /* the waiting run is replaced by a newer one */
	states_are(state, "claimed:replaced skipped:overlap held");
	end_by_number(s, 1, ATTEMPT_CANCELLED, T0 + 3 * USEC_SEC);
	states_are(state, "cancelled:replaced skipped:overlap queued:overlap");
	claim_is(state, 10, T0 + 3 * USEC_SEC, "3");
	kept_is_true(state);
}

static void of_several_that_replace_at_once_the_newest_starts(void **state)
{
	struct slots w = {.n = 3, .policy = {.overlap = OVERLAP_REPLACE, .permits = 1}};

	add_slots(store_of(state), &w);
	claim_is(state, 10, T0 + 2 * USEC_SEC, "3");
	states_are(state, "skipped:overlap skipped:overlap claimed");
	kept_is_true(state);
}

static void a_run_that_waits_for_its_retry_is_replaced_at_once(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 2, .policy = {.overlap = OVERLAP_REPLACE, .permits = 1}};

	add_slots(s, &w);
	claim_is(state, 10, T0, "1");
	requeue(s, 1, T0 + 60 * USEC_SEC);
	claim_is(state, 10, T0 + USEC_SEC, "2");
	states_are(state, "cancelled:replaced claimed");
	kept_is_true(state);
}

/* A released run expires before it is claimed: the next one is released. */
static void a_place_goes_to_the_next_when_the_one_it_was_meant_for_is_over(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 3, .policy = {.overlap = OVERLAP_QUEUE, .overlap_waiting = 5, .permits = 1,
		.expires = 10 * USEC_SEC}, .step = 5 * USEC_SEC};

	add_slots(s, &w);
	claim_is(state, 10, T0, "1");
	claim_is(state, 10, T0 + 5 * USEC_SEC, "");
	claim_is(state, 10, T0 + 10 * USEC_SEC, "");
	states_are(state, "claimed held held");
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 12 * USEC_SEC);
	states_are(state, "succeeded queued:overlap held");
	claim_is(state, 10, T0 + 16 * USEC_SEC, ""); /* too late for the second */
	claim_is(state, 10, T0 + 16 * USEC_SEC, "3");
	kept_is_true(state);
}

/* The retry is due, too, before the newer slot or after it. */
static void a_run_whose_retry_is_due_with_a_newer_slot_is_replaced_and_not_started(void **state)
{
	static const usec_t retry_at[] = {USEC_SEC / 2, 3 * USEC_SEC / 2};
	struct store *s = store_of(state);

	for (size_t i = 0; i < ELEMENTS(retry_at); i++) {
		usec_t first = T0 + (usec_t)i * USEC_HOUR;
		struct slots w = {.first = first, .n = 2, .policy = {.overlap = OVERLAP_REPLACE, .permits = 1}};

		add_slots(s, &w);
		claim_is(state, 10, first, i ? "3" : "1");
		requeue(s, i ? 3 : 1, first + retry_at[i]);
		claim_is(state, 10, first + 2 * USEC_SEC, i ? "4" : "2");
		states_are(state, i ? "cancelled:replaced claimed cancelled:replaced claimed" : "cancelled:replaced claimed");
		kept_is_true(state);
	}
}

static void a_place_is_kept_through_the_wait_for_a_retry(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 2, .policy = {.overlap = OVERLAP_QUEUE, .overlap_waiting = 1, .permits = 1}};

	add_slots(s, &w);
	claim_is(state, 10, T0, "1");
	requeue(s, 1, T0 + 60 * USEC_SEC);
	claim_is(state, 10, T0 + USEC_SEC, "");
	states_are(state, "queued:again held");
	claim_is(state, 10, T0 + 60 * USEC_SEC, "1");
	end_by_number(s, 1, ATTEMPT_SUCCEEDED, T0 + 61 * USEC_SEC);
	claim_is(state, 10, T0 + 61 * USEC_SEC, "2");
	kept_is_true(state);
}

static void a_cancelled_retry_gives_its_place_to_the_next(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 2, .policy = {.overlap = OVERLAP_QUEUE, .overlap_waiting = 1, .permits = 1}};
	AUTO(op) *cancel = op_new(OP_RUN_CANCEL, NULL, NULL);

	add_slots(s, &w);
	claim_is(state, 10, T0, "1");
	requeue(s, 1, T0 + 60 * USEC_SEC);
	claim_is(state, 10, T0 + USEC_SEC, "");
	op_fill(run_cancel_op(cancel), .uid = -1, .id = 1, .now = T0 + 2 * USEC_SEC);
	assert_true(apply_one(s, cancel));
	claim_is(state, 10, T0 + 2 * USEC_SEC, "2");
	kept_is_true(state);
}

static void a_run_given_back_keeps_its_place_unless_it_was_cancelled(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 2, .policy = {.overlap = OVERLAP_QUEUE, .overlap_waiting = 1, .permits = 1}};
	AUTO(op) *cancel = op_new(OP_RUN_CANCEL, NULL, NULL);

	add_slots(s, &w);
	claim_is(state, 10, T0, "1");
	give_back(s, 1, T0 + USEC_SEC);
	claim_is(state, 10, T0 + USEC_SEC, "1");
	states_are(state, "claimed held");
	op_fill(run_cancel_op(cancel), .uid = -1, .id = 1, .now = T0 + 2 * USEC_SEC);
	assert_true(apply_one(s, cancel));
	give_back(s, 1, T0 + 2 * USEC_SEC);
	states_are(state, "cancelled:cancelled queued:overlap");
	claim_is(state, 10, T0 + 2 * USEC_SEC, "2");
	kept_is_true(state);
}

static void a_cancelled_job_leaves_no_place_behind(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 2, .policy = {.overlap = OVERLAP_QUEUE, .overlap_waiting = 1, .permits = 1}};
	int64_t job = add_slots(s, &w);
	AUTO(op) *cancel = op_job_cancel(OP_JOB_CANCEL, job);

	claim_is(state, 10, T0, "1");
	requeue(s, 1, T0 + 60 * USEC_SEC);
	claim_is(state, 10, T0 + USEC_SEC, "");
	job_cancel_op(cancel)->now = T0 + 2 * USEC_SEC;
	assert_true(apply_one(s, cancel));
	states_are(state, "cancelled:job cancelled cancelled:job cancelled");
	kept_is_true(state);
}

static void a_forced_run_starts_beside_the_others(void **state)
{
	struct slots w = {.n = 3, .policy = {.overlap = OVERLAP_SKIP, .permits = 1}};

	add_slots(store_of(state), &w);
	sql(state, "UPDATE runs SET forced = 1 WHERE id = 2");
	claim_is(state, 10, T0 + 2 * USEC_SEC, "1 2");
	states_are(state, "claimed claimed skipped:overlap");
	kept_is_true(state);
}

static void a_claim_takes_the_definition_as_it_is_then(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 1};
	int64_t job = add_slots(s, &w);
	AUTO(run) *run = NULL;

	sql(state, "UPDATE jobs SET revision = 7 WHERE id = %lld", (long long)job);
	run = claim_one(s, T0);
	assert_int_equal(run->revision, 7);
}

/* ---- too late ---- */

static void too_late_is_expired(void **state)
{
	struct store *s = store_of(state);
	struct slots deadline = {.n = 1, .policy = {.deadline = USEC_MIN}};
	struct slots expires = {.n = 1, .policy = {.expires = USEC_MIN}};
	AUTO(op) *claim = op_claim(10, T0 + 2 * USEC_MIN);

	add_slots(s, &deadline);
	add_slots(s, &expires);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 0);
	assert_int_equal(claim_op(claim)->settled.n, 2); /* clients may wait for them */
	states_are(state, "expired:deadline expired:expires");
	kept_is_true(state);
}

/* Each step of a backlog ends up to twice as many runs as the one before. */
static void steps_of_expiry_grow_with_the_backlog(void **state)
{
	static const struct {
		size_t late, steps[4];
	} table[] = {{1700, {500, 1000, 200}}, {600, {500, 100}}, {1, {1}}};
	struct store *s = store_of(state);

	for (size_t i = 0; i < ELEMENTS(table); i++) {
		add_slots(s, &(struct slots){.n = table[i].late, .policy = {.expires = USEC_SEC}});
		for (size_t j = 0; table[i].steps[j]; j++) {
			AUTO(op) *expire = op_new(OP_EXPIRE, NULL, NULL);

			expired_runs_op(expire)->now = T0 + 2 * USEC_DAY;
			assert_true(apply_one(s, expire));
			assert_int_equal(expired_runs_op(expire)->expired.n, table[i].steps[j]);
		}
	}
	kept_is_true(state);
}

static void a_deadline_is_for_the_first_attempt_and_expiry_for_all(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 2, .policy = {.deadline = USEC_MIN, .expires = 5 * USEC_MIN, .overlap = OVERLAP_QUEUE,
		.overlap_waiting = 1, .permits = 1}};

	add_slots(s, &w);
	claim_is(state, 10, T0 + USEC_SEC, "1");
	requeue(s, 1, T0 + 3 * USEC_MIN);
	claim_is(state, 10, T0 + 3 * USEC_MIN, "1");
	requeue(s, 1, T0 + 6 * USEC_MIN);
	claim_is(state, 10, T0 + 6 * USEC_MIN, ""); /* its permit goes to the waiting run, which is late as well */
	states_are(state, "expired:expires queued:overlap");
	claim_is(state, 10, T0 + 6 * USEC_MIN, "");
	states_are(state, "expired:expires expired:deadline (overlap)");
	kept_is_true(state);
}

/* ---- conditions and rates ---- */

static void gate_by_spec(const char *spec, const struct machine_figures *machine, struct gate_says *ret)
{
	*ret = (struct gate_says){.met = !strstr(spec, "idle") || machine->thousandths[MACHINE_LOAD] < 1000};
	if (strstr(spec, "rate"))
		ret->rate = (struct rate){.n = 6, .per = USEC_MIN, .burst = 1};
}

static struct op *op_claim_gated(usec_t now, int64_t load)
{
	struct op *op = op_claim(10, now);

	claim_op(op)->gate = gate_by_spec;
	claim_op(op)->machine.thousandths[MACHINE_LOAD] = load;
	return op;
}

static void an_unmet_condition_is_looked_at_again_in_a_while(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 1, .spec = "{\"command\":[\"true\"],\"idle\":1}", .policy = {.permits = 1, .gated = true}};
	AUTO(op) *busy = op_claim_gated(T0, 5000);
	AUTO(op) *idle = op_claim_gated(T0 + 15 * USEC_SEC, 500);
	struct batch_wake wake;

	add_slots(s, &w);
	wake = apply_all(s, &busy, 1);
	assert_int_equal(claim_op(busy)->claimed.n, 0);
	assert_int_equal(wake.next_due, T0 + 15 * USEC_SEC);
	states_are(state, "queued:condition");
	assert_true(apply_one(s, idle));
	assert_int_equal(claim_op(idle)->claimed.n, 1);
	states_are(state, "claimed");
	kept_is_true(state);
}

static void a_newer_slot_takes_over_from_one_that_waits_for_its_condition(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 3, .spec = "{\"command\":[\"true\"],\"idle\":1}",
		.policy = {.overlap = OVERLAP_ALLOW, .gated = true}};
	AUTO(op) *first = op_claim_gated(T0, 5000);
	AUTO(op) *both = op_claim_gated(T0 + 2 * USEC_SEC, 5000);

	add_slots(s, &w);
	assert_true(apply_one(s, first));
	states_are(state, "queued:condition queued queued");
	assert_true(apply_one(s, both));
	states_are(state, "skipped:condition skipped:condition queued:condition");
	assert_int_equal(claim_op(both)->settled.n, 2);
	kept_is_true(state);
}

static void a_jobs_rate_spreads_its_runs(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 4, .spec = "{\"command\":[\"true\"],\"rate\":1}",
		.policy = {.overlap = OVERLAP_ALLOW, .gated = true}};
	AUTO(op) *first = op_claim_gated(T0 + 3 * USEC_SEC, 0);
	AUTO(op) *second = op_claim_gated(T0 + 13 * USEC_SEC, 0);
	AUTO_TEXT due = NULL;
	struct batch_wake wake;

	add_slots(s, &w);
	wake = apply_all(s, &first, 1);
	assert_int_equal(claim_op(first)->claimed.n, 1);
	assert_int_equal(wake.next_due, T0 + 13 * USEC_SEC);
	states_are(state, "claimed queued:rate queued:rate queued:rate");
	due = ask(state, "SELECT (due_at - 1800000000000000) / 1000000 FROM runs WHERE id > 1 ORDER BY id");
	assert_string_equal(due, "13|\n23|\n33|\n"); /* each has its own time */
	wake = apply_all(s, &second, 1);
	assert_int_equal(claim_op(second)->claimed.n, 1);
	assert_int_equal(wake.next_due, T0 + 23 * USEC_SEC);
	kept_is_true(state);
}

/* ---- pauses ---- */

static void pause_scope(void **state, const char *scope, const char *key, int64_t uid, usec_t until, const char *spared)
{
	sql(state, "DELETE FROM pauses");
	sql(state, "INSERT INTO pauses (scope, key, uid, by_uid, by_name, at, until, spared) "
		"VALUES ('%s', '%s', %lld, 0, 'root', 0, %lld, '%s')", scope, key, (long long)uid, (long long)until, spared);
}

static void a_paused_job_skips_its_slots_and_keeps_what_cannot_be_skipped(void **state)
{
	struct store *s = store_of(state);
	struct slots w = {.n = 3, .next = T0 + USEC_DAY};
	int64_t job = add_slots(s, &w);

	sql(state, "UPDATE jobs SET state = 1 WHERE id = %lld", (long long)job);
	sql(state, "UPDATE runs SET kind = 1 WHERE id = 2");
	sql(state, "UPDATE runs SET attempt = 1 WHERE id = 3");
	claim_is(state, 10, T0 + 2 * USEC_SEC, "");
	states_are(state, "skipped:paused held:paused held:paused");
	sql(state, "UPDATE jobs SET state = 0");
	kept_is_true(state);
}

static void the_last_slot_of_a_paused_job_is_kept(void **state)
{
	struct slots w = {.n = 1};
	int64_t job = add_slots(store_of(state), &w);

	sql(state, "UPDATE jobs SET state = 1 WHERE id = %lld", (long long)job);
	claim_is(state, 10, T0, "");
	states_are(state, "held:paused");
	sql(state, "UPDATE jobs SET state = 0");
	kept_is_true(state);
}

static void a_pause_whose_time_is_over_stops_nothing(void **state)
{
	struct slots w = {.n = 1, .next = T0 + USEC_DAY};
	int64_t job = add_slots(store_of(state), &w);

	sql(state, "UPDATE jobs SET state = 1 WHERE id = %lld", (long long)job);
	sql(state, "INSERT INTO job_pauses (job, by_uid, by_name, at, until) VALUES (%lld, 0, 'root', 0, %lld)",
		(long long)job, (long long)T0);
	pause_scope(state, "all", "", -1, T0, "");
	claim_is(state, 10, T0, "1");
}

static void each_scope_of_a_pause_covers_its_own(void **state)
{
	static const struct {
		const char *scope, *key;
		int64_t uid;
		const char *spared, *becomes;
	} cases[] = {
		{"all", "", -1, "", "skipped:paused"},
		{"all", "", 1000, "", "skipped:paused"},
		{"all", "", 1001, "", "claimed"},
		{"queue", "default", -1, "", "skipped:paused"},
		{"queue", "other", -1, "", "claimed"},
		{"owner", "ann", 1000, "", "skipped:paused"},
		{"owner", "bob", 1001, "", "claimed"},
		{"tag", "team=blue", -1, "", "skipped:paused"},
		{"tag", "team=red", -1, "", "claimed"},
		{"tag", "team=blue", 1001, "", "claimed"},
		{"freeze", "", -1, "", "skipped:frozen"},
		{"freeze", "", -1, "team=blue", "claimed"},
		{"freeze", "", -1, "team=red", "skipped:frozen"},
		{"freeze", "", -1, "team", "claimed"}, /* any value of the tag */
		{"freeze", "", -1, "tea", "skipped:frozen"},
	};
	struct store *s = store_of(state);

	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct slots w = {.first = T0 + (usec_t)i * USEC_MIN, .n = 1, .next = T0 + USEC_DAY};
		int64_t job = add_slots(s, &w);
		AUTO(op) *claim = op_claim(10, w.first);
		AUTO(run) *run = NULL;

		sql(state, "INSERT INTO job_tags (key, value, job) VALUES ('team', 'blue', %lld)", (long long)job);
		pause_scope(state, cases[i].scope, cases[i].key, cases[i].uid, 0, cases[i].spared);
		assert_true(apply_one(s, claim));
		run = get_run(s, (int64_t)i + 1);
		run_is(run, cases[i].becomes);
	}
	kept_is_true(state);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_slot_that_overlaps_is_skipped),
	STORE_TEST(slots_of_one_claim_overlap_too),
	STORE_TEST(queued_ones_wait_up_to_their_number_and_go_in_order),
	STORE_TEST(a_job_that_may_overlap_has_as_many_places_as_it_was_given),
	STORE_TEST(without_a_number_all_may_overlap),
	STORE_TEST(a_newer_run_replaces_the_one_that_goes_on),
	STORE_TEST(of_several_that_replace_at_once_the_newest_starts),
	STORE_TEST(a_run_that_waits_for_its_retry_is_replaced_at_once),
	STORE_TEST(a_place_goes_to_the_next_when_the_one_it_was_meant_for_is_over),
	STORE_TEST(a_run_whose_retry_is_due_with_a_newer_slot_is_replaced_and_not_started),
	STORE_TEST(a_place_is_kept_through_the_wait_for_a_retry),
	STORE_TEST(a_cancelled_retry_gives_its_place_to_the_next),
	STORE_TEST(a_run_given_back_keeps_its_place_unless_it_was_cancelled),
	STORE_TEST(a_cancelled_job_leaves_no_place_behind),
	STORE_TEST(a_forced_run_starts_beside_the_others),
	STORE_TEST(a_claim_takes_the_definition_as_it_is_then),
	STORE_TEST(too_late_is_expired),
	STORE_TEST(steps_of_expiry_grow_with_the_backlog),
	STORE_TEST(a_deadline_is_for_the_first_attempt_and_expiry_for_all),
	STORE_TEST(an_unmet_condition_is_looked_at_again_in_a_while),
	STORE_TEST(a_newer_slot_takes_over_from_one_that_waits_for_its_condition),
	STORE_TEST(a_jobs_rate_spreads_its_runs),
	STORE_TEST(a_paused_job_skips_its_slots_and_keeps_what_cannot_be_skipped),
	STORE_TEST(the_last_slot_of_a_paused_job_is_kept),
	STORE_TEST(a_pause_whose_time_is_over_stops_nothing),
	STORE_TEST(each_scope_of_a_pause_covers_its_own),
};
const struct suite_part store_claim_part = {tests, ELEMENTS(tests)};
