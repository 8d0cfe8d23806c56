/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of notices: written with the end of a run, taken by one engine, kept until they are done. */
#include "base/text.h"
#include "store/notice_row.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/notices.h"
#include "store/ops/notices_due.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/plans.h"
#include "store/read/list/list_notices.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <string.h>

#define SPEC "{\"command\":[\"true\"],\"notify\":[\"mail:ann\",\"exec:say it\"]}"
#define LEASE (3 * USEC_MIN)

/* One run per letter, a second apart: q queued, m missed slot, p skipped by a pause. */
static void by_letters(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	const char *letters = arg;

	(void)due;
	(void)now;
	(void)horizon;
	for (; *letters; letters++) {
		usec_t slot = T0 + (usec_t)ret->n * USEC_SEC;

		plan_run_add(ret, &(struct planned_run){
			.state = *letters == 'q' ? RUN_QUEUED : RUN_SKIPPED,
			.reason = *letters == 'm' ? "missed" : *letters == 'p' ? "paused" : NULL,
			.slot = slot,
			.due_at = slot,
		});
	}
	ret->policy.notifies = true;
	ret->next_slot = T0 + USEC_HOUR;
}

/* A job that notifies, with these runs. */
static int64_t plan_runs(struct store *s, const char *spec, const char *letters)
{
	AUTO(op) *add = op_add("backup", NULL, spec);
	AUTO(op) *plan = op_new(OP_PLAN, NULL, NULL);

	job_add_op(add)->job.run_at = 0;
	job_add_op(add)->job.next_slot = T0;
	assert_true(apply_one(s, add));
	op_fill(plan_op(plan), .now = T0, .horizon = T0 + USEC_SEC, .limit = 9, .fn = by_letters,
		.fn_arg = (void *)letters);
	assert_true(apply_one(s, plan));
	return job_add_op(add)->job.id;
}

static int64_t run_one(struct store *s, enum attempt_outcome outcome, usec_t at)
{
	AUTO(run) *r = claim_one(s, at);

	assert_non_null(r);
	start_run(s, r, at);
	end_run(s, r, outcome, at + 100);
	return r->id;
}

/* The kinds of all notices to 'channel', oldest first: F R M L T. */
static void assert_told(struct store *s, const char *channel, const char *want)
{
	static const char letters[NOTICE_KIND_MAX] = {'.', 'F', 'R', 'M', 'L', 'T'};
	struct notice_filter f = {.uid = -1, .limit = 100};
	AUTO_DONE(notice_list) all = {};
	struct err e = {};
	char got[32] = "";
	size_t n = 0;

	assert_true(list_notices_page(s, &f, &all, &e));
	for (size_t i = all.n; i-- > 0;)
		if (strcmp(all.v[i]->channel, channel) == 0)
			got[n++] = letters[all.v[i]->kind];
	assert_string_equal(got, want);
}

static struct op *op_take(usec_t now)
{
	struct op *op = op_new(OP_NOTICE_TAKE, NULL, NULL);

	op_fill(notices_due_op(op), .node = NODE, .now = now, .again_at = now + LEASE, .limit = 10);
	return op;
}

static bool tell_done(struct store *s, const struct notice *n, enum notice_state state, usec_t due_at)
{
	AUTO(op) *op = op_new(OP_NOTICE_DONE, NULL, NULL);

	op_fill(notice_done_op(op), .id = n->id, .try = n->tries, .state = state, .now = T0 + 500,
		.due_at = due_at, .error = state == NOTICE_SENT ? NULL : xstrdup("it did not answer"));
	assert_true(apply_one(s, op));
	return !notice_done_op(op)->stale;
}

static void assert_notice_counts(struct store *s, int64_t waiting, int64_t sent, int64_t failed)
{
	struct store_counts c = {};
	struct err e = {};

	assert_true(store_counts(s, &c, &e));
	assert_int_equal(c.notices[NOTICE_WAITING], waiting);
	assert_int_equal(c.notices[NOTICE_SENT], sent);
	assert_int_equal(c.notices[NOTICE_FAILED], failed);
}

static void the_end_of_a_run_and_its_notices_are_one_transaction(void **state)
{
	struct store *s = store_of(state);
	int64_t job = plan_runs(s, SPEC, "q"), run;
	AUTO(op) *take = op_take(T0 + USEC_SEC);
	AUTO(run) *r = claim_one(s, T0);
	AUTO(op) *end = op_ended(r, ATTEMPT_FAILED, T0 + 100);
	struct batch_wake wake = apply_all(s, &end, 1);

	assert_true(end->ok);
	assert_int_equal(wake.next_notice, T0 + 100);
	run = r->id;
	wake = apply_all(s, &take, 1);
	assert_int_equal(wake.next_notice, T0 + USEC_SEC + LEASE);
	assert_int_equal(notices_due_op(take)->taken.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct notice *n = notices_due_op(take)->taken.v[i];

		assert_int_equal(n->job, job);
		assert_int_equal(n->run, run);
		assert_int_equal(n->uid, 1000);
		assert_int_equal(n->tries, 1);
		assert_int_equal(n->kind, NOTICE_KIND_FAILED);
		assert_string_equal(n->job_name, "backup");
		assert_string_equal(n->owner, "ann");
		assert_string_equal(n->channel, i == 0 ? "mail:ann" : "exec:say it");
	}
	assert_counts_true(s);
}

static void a_series_of_runs_is_told_by_its_changes(void **state)
{
	struct store *s = store_of(state);

	plan_runs(s, SPEC, "qqqqqqq");
	run_one(s, ATTEMPT_SUCCEEDED, T0);
	run_one(s, ATTEMPT_FAILED, T0 + 1 * USEC_SEC);
	run_one(s, ATTEMPT_TIMED_OUT, T0 + 2 * USEC_SEC);
	run_one(s, ATTEMPT_SUCCEEDED, T0 + 3 * USEC_SEC);
	run_one(s, ATTEMPT_CANCELLED, T0 + 4 * USEC_SEC);
	run_one(s, ATTEMPT_SUCCEEDED, T0 + 5 * USEC_SEC);
	run_one(s, ATTEMPT_FAILED, T0 + 6 * USEC_SEC);
	assert_told(s, "mail:ann", "FRF");
	assert_told(s, "exec:say it", "FRF");
	assert_notice_counts(s, 6, 0, 0);
}

static void several_ends_in_one_batch_are_told_in_their_order(void **state)
{
	struct store *s = store_of(state);
	struct op *ends[3];

	plan_runs(s, SPEC, "qqq");
	for (size_t i = 0; i < 3; i++) {
		AUTO(run) *r = claim_one(s, T0 + USEC_MIN);

		ends[i] = op_ended(r, i == 2 ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED, T0 + USEC_MIN + (usec_t)i);
	}
	apply_all(s, ends, 3);
	for (size_t i = 0; i < 3; i++)
		op_free(ends[i]);
	assert_told(s, "mail:ann", "FR");
}

static void a_slot_that_did_not_run_is_told_once(void **state)
{
	struct store *s = store_of(state);

	plan_runs(s, SPEC, "pmmq");
	assert_told(s, "mail:ann", "M");
	run_one(s, ATTEMPT_SUCCEEDED, T0 + USEC_MIN);
	assert_told(s, "mail:ann", "MR");
}

static void nothing_is_written_for_a_job_that_does_not_notify(void **state)
{
	struct fixture *f = *state;
	AUTO_DONE(buf) rows = {};

	add_job(f->store, "quiet");
	run_one(f->store, ATTEMPT_FAILED, T0);
	place_query(f->where, "SELECT count(*) FROM job_health", &rows);
	place_query(f->where, "SELECT count(*) FROM notices", &rows);
	assert_null(strpbrk(rows.data, "123456789"));
}

static void a_notice_is_tried_again_and_given_up(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = op_take(T0 + USEC_SEC);
	AUTO(op) *early = op_take(T0 + USEC_SEC + LEASE - 1);
	AUTO(op) *second = op_take(T0 + USEC_SEC + LEASE);
	struct notice_filter failed = {.uid = -1, .states = 1u << NOTICE_FAILED, .limit = 10};
	AUTO_DONE(notice_list) found = {};
	struct batch_wake wake;
	struct err e = {};

	plan_runs(s, "{\"command\":[\"true\"],\"notify\":[\"webhook:http://x\"]}", "m");
	apply_all(s, &first, 1);
	assert_int_equal(notices_due_op(first)->taken.n, 1);
	apply_all(s, &early, 1);
	assert_int_equal(notices_due_op(early)->taken.n, 0);
	wake = apply_all(s, &second, 1); /* its result was not recorded */
	assert_int_equal(notices_due_op(second)->taken.n, 1);
	assert_int_equal(notices_due_op(second)->taken.v[0]->tries, 2);
	assert_int_equal(wake.next_notice, T0 + USEC_SEC + 2 * LEASE);
	assert_false(tell_done(s, notices_due_op(first)->taken.v[0], NOTICE_SENT, 0)); /* too late: another engine has taken it */
	assert_notice_counts(s, 1, 0, 0);
	assert_true(tell_done(s, notices_due_op(second)->taken.v[0], NOTICE_WAITING, T0 + USEC_HOUR));
	assert_false(tell_done(s, notices_due_op(second)->taken.v[0], NOTICE_FAILED, 0) &&
		     tell_done(s, notices_due_op(second)->taken.v[0], NOTICE_FAILED, 0));
	assert_notice_counts(s, 0, 0, 1);
	assert_true(list_notices_page(s, &failed, &found, &e));
	assert_int_equal(found.n, 1);
	assert_string_equal(found.v[0]->error, "it did not answer");
	assert_int_equal(found.v[0]->done_at, T0 + 500);
}

static void a_new_engine_sends_what_the_old_one_was_sending(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *take = op_take(T0 + USEC_SEC);
	AUTO(op) *newer = op_node_open("node-two-engine", "one", SPAWNER);
	AUTO(op) *resume = op_new(OP_NOTICE_RESUME, NULL, NULL);
	AUTO(op) *again = op_take(T0 + 2 * USEC_SEC);

	plan_runs(s, SPEC, "m");
	apply_all(s, &take, 1);
	assert_int_equal(notices_due_op(take)->taken.n, 2);
	assert_true(apply_one(s, newer));
	op_fill(notice_resume_op(resume), .node = "node-two-engine", .name = "one",
		.now = T0 + 2 * USEC_SEC, .under_way = xcalloc(1, sizeof(int64_t)), .n = 1);
	notice_resume_op(resume)->under_way[0] = notices_due_op(take)->taken.v[1]->id; /* the spawner still has it */
	assert_true(apply_one(s, resume));
	notices_due_op(again)->node = "node-two-engine";
	assert_true(apply_one(s, again));
	assert_int_equal(notices_due_op(again)->taken.n, 1);
	assert_int_equal(notices_due_op(again)->taken.v[0]->id, notices_due_op(take)->taken.v[0]->id);
	assert_true(tell_done(s, notices_due_op(take)->taken.v[1], NOTICE_SENT, 0));
}

static struct op *op_tell(int64_t uid, int64_t job, int64_t run, enum notice_kind kind)
{
	struct op *op = op_new(OP_NOTICE_ADD, NULL, NULL);

	op_fill(notice_add_op(op), .uid = uid, .job = job, .run = run, .kind = kind, .now = T0);
	return op;
}

/* A job of this owner with 'n' due notices. */
static void have_due(struct store *s, int64_t uid, const char *name, int n)
{
	AUTO(op) *add = op_add(name, NULL, "{\"command\":[\"true\"],\"notify\":[\"mail:ann\"]}");

	job_add_op(add)->job.uid = uid;
	job_add_op(add)->job.run_at = 0;
	assert_true(apply_one(s, add));
	while (n-- > 0) {
		AUTO(op) *tell = op_tell(uid, job_add_op(add)->job.id, 0, NOTICE_KIND_TEST);

		assert_true(apply_one(s, tell));
	}
}

static struct batch_wake take_shared(struct store *s, struct op **op, usec_t now, int64_t uid, int64_t in_use)
{
	*op = op_take(now);
	notices_due_op(*op)->shared = true;
	notices_due_op(*op)->limit = 8;
	notices_due_op(*op)->in_use = xcalloc(1, sizeof(struct notice_use));
	notices_due_op(*op)->in_use[0] = (struct notice_use){uid, in_use};
	notices_due_op(*op)->n_in_use = in_use > 0;
	return apply_all(s, op, 1);
}

static size_t taken_of(const struct op *op, int64_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < notices_due_op(op)->taken.n; i++)
		n += notices_due_op(op)->taken.v[i]->uid == uid;
	return n;
}

static void an_owner_with_many_notices_leaves_slots_to_others(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *first = NULL;
	AUTO(op) *second = NULL;
	AUTO(op) *third = NULL;
	struct batch_wake wake;

	have_due(s, 1000, "flood", 20);
	wake = take_shared(s, &first, T0, 0, 0);
	assert_int_equal(taken_of(first, 1000), 4); /* of 8 slots as many as remain free */
	assert_true(notices_due_op(first)->held);
	assert_int_equal(wake.next_notice, USEC_NEVER); /* it waits for a slot, not for a time */
	have_due(s, 1001, "alert", 1);
	wake = take_shared(s, &second, T0, 1000, 4);
	assert_int_equal(taken_of(second, 1001), 1);
	assert_int_equal(taken_of(second, 1000), 0);
	assert_int_equal(wake.next_notice, T0 + LEASE); /* the alert, if it is never recorded */
	take_shared(s, &third, T0, 1000, 1);
	assert_int_equal(taken_of(third, 1000), 3);
	assert_true(notices_due_op(third)->held);
}

static void test_notices_are_refused_while_very_many_wait(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[100];
	AUTO(op) *late = NULL;
	AUTO(op) *add = op_add("loud", NULL, "{\"command\":[\"true\"],\"notify\":[\"mail:a\",\"mail:b\",\"mail:c\",\"mail:d\"]}");

	job_add_op(add)->job.run_at = 0;
	assert_true(apply_one(s, add));
	for (int batch = 0; batch < 3; batch++) { /* 1000 notices after 250 of these */
		for (size_t i = 0; i < 100; i++)
			ops[i] = op_tell(1000, job_add_op(add)->job.id, 0, NOTICE_KIND_TEST);
		apply_all(s, ops, 100);
		for (size_t i = 0; i < 100; i++) {
			assert_int_equal(ops[i]->ok, batch < 2 || i < 50);
			op_free(ops[i]);
		}
	}
	late = op_tell(1000, job_add_op(add)->job.id, 7, NOTICE_KIND_LONG); /* notices of a run are not refused */
	assert_true(apply_one(s, late));
}

static void root_may_use_every_slot(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *all = NULL;

	have_due(s, 0, "of-root", 20);
	take_shared(s, &all, T0, 0, 0);
	assert_int_equal(taken_of(all, 0), 8);
}

static void owners_take_turns(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *both = NULL;

	have_due(s, 1000, "old", 20);
	have_due(s, 1001, "new", 20);
	take_shared(s, &both, T0, 0, 0);
	assert_int_equal(taken_of(both, 1000), 3);
	assert_int_equal(taken_of(both, 1001), 3); /* two slots stay free for a third owner */
}

static void that_a_run_takes_long_is_said_once(void **state)
{
	struct store *s = store_of(state);
	int64_t job = plan_runs(s, SPEC, "q");
	AUTO(op) *first = op_tell(-1, job, 1, NOTICE_KIND_LONG);
	AUTO(op) *second = op_tell(-1, job, 1, NOTICE_KIND_LONG);
	AUTO(op) *other = op_tell(-1, job, 2, NOTICE_KIND_LONG);

	assert_true(apply_one(s, first));
	assert_int_equal(notice_add_op(first)->added.n, 2);
	assert_true(apply_one(s, second));
	assert_int_equal(notice_add_op(second)->added.n, 0);
	assert_true(apply_one(s, other));
	assert_told(s, "mail:ann", "LL");
}

static void a_test_notice_is_for_the_owners_job(void **state)
{
	struct store *s = store_of(state);
	int64_t job = plan_runs(s, SPEC, ""), quiet = add_job(s, "quiet");
	AUTO(op) *foreign = op_tell(77, job, 0, NOTICE_KIND_TEST);
	AUTO(op) *missing = op_tell(1000, 999, 0, NOTICE_KIND_TEST);
	AUTO(op) *own = op_tell(1000, job, 0, NOTICE_KIND_TEST);
	AUTO(op) *silent = op_tell(1000, quiet, 0, NOTICE_KIND_TEST);

	assert_false(apply_one(s, foreign));
	assert_int_equal(foreign->err.kind, ERR_NOT_FOUND);
	assert_false(apply_one(s, missing));
	assert_true(apply_one(s, own));
	assert_int_equal(notice_add_op(own)->added.n, 2);
	assert_string_equal(notice_add_op(own)->added.v[0]->channel, "mail:ann");
	assert_true(apply_one(s, silent));
	assert_int_equal(notice_add_op(silent)->added.n, 0);
}

static void a_claim_carries_the_typical_duration(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *claim = op_claim(1, T0 + 2 * USEC_SEC);

	plan_runs(s, SPEC, "qq");
	run_one(s, ATTEMPT_SUCCEEDED, T0);
	assert_true(apply_one(s, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	assert_int_equal(claim_op(claim)->claimed.v[0].typical, 10);
}

static void pages_of_notices_follow_each_other(void **state)
{
	struct store *s = store_of(state);
	int64_t job = plan_runs(s, SPEC, "");
	struct notice_filter filters[] = {
		{.uid = -1, .limit = 3}, {.uid = 1000, .limit = 3}, {.uid = -1, .job = job, .limit = 3},
		{.uid = 1000, .job = job, .states = 1u << NOTICE_WAITING, .limit = 3},
		{.uid = -1, .states = 1u << NOTICE_SENT, .limit = 3}, {.uid = 7, .limit = 3},
	};
	static const size_t want[] = {10, 10, 10, 10, 0, 0};

	for (int64_t run = 1; run <= 5; run++) {
		AUTO(op) *op = op_tell(-1, job, run, NOTICE_KIND_LONG);

		assert_true(apply_one(s, op));
	}
	for (size_t i = 0; i < ELEMENTS(filters); i++) {
		int64_t last = INT64_MAX;
		size_t seen = 0;

		do {
			AUTO_DONE(notice_list) page = {};
			struct err e = {};

			assert_true(list_notices_page(s, &filters[i], &page, &e));
			assert_in_range(page.n, 0, 3);
			for (size_t k = 0; k < page.n; k++, seen++) {
				assert_true(page.v[k]->id < last);
				last = page.v[k]->id;
			}
			filters[i].before = page.next;
		} while (filters[i].before);
		assert_int_equal(seen, want[i]);
	}
}

static void old_notices_go_while_new_ones_come(void **state)
{
	struct store *s = store_of(state);
	AUTO(op) *take = op_take(T0 + USEC_SEC);
	AUTO(op) *later = op_take(T0 + 29 * USEC_DAY);
	AUTO(op) *much_later = op_take(T0 + 31 * USEC_DAY);

	plan_runs(s, SPEC, "m");
	apply_all(s, &take, 1);
	tell_done(s, notices_due_op(take)->taken.v[0], NOTICE_SENT, 0);
	apply_all(s, &later, 1);
	assert_notice_counts(s, 1, 1, 0);
	apply_all(s, &much_later, 1);
	assert_notice_counts(s, 1, 0, 0); /* waiting notices are kept */
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(the_end_of_a_run_and_its_notices_are_one_transaction),
	STORE_TEST(a_series_of_runs_is_told_by_its_changes),
	STORE_TEST(several_ends_in_one_batch_are_told_in_their_order),
	STORE_TEST(a_slot_that_did_not_run_is_told_once),
	STORE_TEST(nothing_is_written_for_a_job_that_does_not_notify),
	STORE_TEST(a_notice_is_tried_again_and_given_up),
	STORE_TEST(a_new_engine_sends_what_the_old_one_was_sending),
	STORE_TEST(an_owner_with_many_notices_leaves_slots_to_others),
	STORE_TEST(owners_take_turns),
	STORE_TEST(root_may_use_every_slot),
	STORE_TEST(test_notices_are_refused_while_very_many_wait),
	STORE_TEST(that_a_run_takes_long_is_said_once),
	STORE_TEST(a_test_notice_is_for_the_owners_job),
	STORE_TEST(a_claim_carries_the_typical_duration),
	STORE_TEST(pages_of_notices_follow_each_other),
	STORE_TEST(old_notices_go_while_new_ones_come),
};
const struct suite_part store_notices_part = {tests, ELEMENTS(tests)};
