/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the audit trail: which events a batch writes, and how they are read. */
#include "base/text.h"
#include "core/job/event.h"
#include "store/events.h"
#include "store/ops/event_op.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/read/list/list_events.h"
#include "unit/store/store_suite.h"
#include <string.h>

static const struct act alice = {.by = {.uid = 1000, .who = "alice", .origin = "unix pid 7"}, .what = EVENT_JOB_CANCEL,
	.object = "backup"};

static void read_events(struct store *s, struct event_filter f, struct event_list *ret)
{
	struct err e = {};

	if (f.limit == 0)
		f.limit = 1000;
	if (!list_events_page(s, &f, ret, &e))
		fail_msg("%s", e.msg);
}

static size_t count_of(struct store *s, enum event_what what)
{
	AUTO_DONE(event_list) l = {};

	read_events(s, (struct event_filter){.uid = -1, .whats = UINT64_C(1) << what}, &l);
	return l.n;
}

/* Adds an event of this job at this time that this uid can see. */
static struct op *op_event(int64_t job, int64_t owner, usec_t at)
{
	struct op *op = op_new(OP_EVENT, NULL, NULL);

	op->act = alice;
	op_fill(event_op(op), .result = "denied", .detail = "why", .job = job, .run = 9, .owner = owner, .now = at);
	return op;
}

static void put(struct store *s, int64_t job, int64_t owner, usec_t at)
{
	AUTO(op) *op = op_event(job, owner, at);

	assert_true(apply_one(s, op));
}

static void a_change_is_in_the_trail_with_who_and_from_where(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "backup");
	AUTO(op) *op = op_job_cancel(OP_JOB_CANCEL, id);
	AUTO_DONE(event_list) l = {};
	const struct event *ev;

	op->act = alice;
	assert_true(apply_one(s, op));
	read_events(s, (struct event_filter){.uid = -1, .jobs = &id, .n_jobs = 1}, &l);
	assert_int_equal(l.n, 2);
	ev = l.v[0];
	assert_int_equal(ev->what, EVENT_JOB_CANCEL);
	assert_int_equal(ev->uid, 1000);
	assert_string_equal(ev->who, "alice");
	assert_string_equal(ev->origin, "unix pid 7");
	assert_string_equal(ev->object, "backup");
	assert_string_equal(ev->result, "ok");
	assert_string_equal(ev->detail, "1 queued, 0 running");
	assert_int_equal(ev->job, id);
	assert_int_equal(l.v[1]->what, EVENT_JOB_ADD);
	assert_int_equal(l.v[1]->uid, -1);
	assert_null(l.v[1]->who);
}

static void a_refused_or_rolled_back_operation_leaves_no_event(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[3];
	size_t before;

	add_job(s, "taken");
	before = count_of(s, EVENT_JOB_ADD);
	ops[0] = op_add("taken", NULL, NULL);
	ops[1] = op_job_cancel(OP_JOB_CANCEL, 4711);
	ops[2] = op_new(OP_JOB_BULK, NULL, NULL);
	job_bulk_op(ops[2])->n = 2;
	job_bulk_op(ops[2])->v = xcalloc(2, sizeof(struct job_new));
	job_bulk_op(ops[2])->v[0] = job_add_op(ops[0])->job;
	job_bulk_op(ops[2])->v[0].name = "free";
	job_bulk_op(ops[2])->v[1] = job_add_op(ops[0])->job;
	apply_all(s, ops, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_false(ops[i]->ok);
		op_free(ops[i]);
	}
	assert_int_equal(count_of(s, EVENT_JOB_ADD), before);
	assert_int_equal(count_of(s, EVENT_JOB_CANCEL), 0);
}

static void the_events_of_a_batch_are_handed_out_once(void **state)
{
	struct store *s = store_of(state);
	struct op *ops[] = {op_add("a", NULL, NULL), op_add("b", NULL, NULL)};
	AUTO_DONE(event_list) l = {};
	struct event_list again = {};

	apply_all(s, ops, 2);
	event_take_written(s, &l);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[1]->object, "b");
	event_take_written(s, &again);
	assert_int_equal(again.n, 0);
	for (size_t i = 0; i < 2; i++)
		op_free(ops[i]);
}

static void a_user_sees_his_own_jobs_and_acts_only(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(event_list) mine = {};
	AUTO_DONE(event_list) all = {};
	AUTO_DONE(event_list) none = {};
	int64_t job = 5;

	put(s, 5, 2000, T0);  /* an administrator acts on bob's job */
	put(s, 0, 0, T0 + 1); /* alice acts, without a job */
	read_events(s, (struct event_filter){.uid = 2000}, &mine);
	assert_int_equal(mine.n, 1);
	assert_int_equal(mine.v[0]->job, 5);
	event_list_done(&mine);
	read_events(s, (struct event_filter){.uid = 1000}, &mine);
	assert_int_equal(mine.n, 1);
	assert_int_equal(mine.v[0]->job, 0);
	assert_string_equal(mine.v[0]->result, "denied");
	read_events(s, (struct event_filter){.uid = 1000, .jobs = &job, .n_jobs = 1}, &none);
	assert_int_equal(none.n, 0);
	read_events(s, (struct event_filter){.uid = -1}, &all);
	assert_true(all.n >= 3);
}

static void pages_join_without_gap_or_repetition(void **state)
{
	struct store *s = store_of(state);
	const int64_t jobs[] = {1, 2};

	for (int i = 0; i < 150; i++)
		put(s, 1 + i % 3, 1000, T0 + i);
	for (int way = 0; way < 4; way++) {
		struct event_filter f = {.uid = -1, .limit = 7, .ascending = way & 1, .jobs = jobs, .n_jobs = way & 2 ? 2 : 0,
			.whats = UINT64_C(1) << EVENT_JOB_CANCEL};
		int64_t seen = 0, last = 0;

		do {
			AUTO_DONE(event_list) l = {};

			read_events(s, f, &l);
			for (size_t i = 0; i < l.n; i++) {
				assert_true(last == 0 || (f.ascending ? l.v[i]->id > last : l.v[i]->id < last));
				assert_true(!f.n_jobs || l.v[i]->job < 3);
				last = l.v[i]->id;
			}
			seen += (int64_t)l.n;
			f.from = l.next;
		} while (f.from);
		assert_int_equal(seen, way & 2 ? 100 : 150);
	}
}

static void a_range_of_time_is_found_without_walking_there(void **state)
{
	struct store *s = store_of(state);

	for (int i = 0; i < 100; i++)
		put(s, 1, 1000, T0 + i * USEC_DAY);
	for (int way = 0; way < 2; way++) {
		AUTO_DONE(event_list) l = {};

		read_events(s, (struct event_filter){.uid = -1, .since = T0 + 40 * USEC_DAY, .until = T0 + 45 * USEC_DAY,
			.ascending = way}, &l);
		assert_int_equal(l.n, 5);
		assert_int_equal(l.v[way ? 0 : 4]->at, T0 + 40 * USEC_DAY);
		assert_int_equal(l.next, 0);
	}
}

static void a_follower_gets_what_is_committed_after_its_position(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(event_list) later = {};
	AUTO_DONE(event_list) none = {};
	int64_t from = 0;

	put(s, 1, 1000, T0);
	assert_true(list_events_newest(s, &from, NULL));
	put(s, 2, 1000, T0);
	put(s, 3, 1000, T0);
	read_events(s, (struct event_filter){.uid = -1, .ascending = true, .from = from}, &later);
	assert_int_equal(later.n, 2);
	assert_int_equal(later.v[0]->job, 2);
	assert_int_equal(later.v[1]->job, 3);
	assert_false(later.held);
	read_events(s, (struct event_filter){.uid = -1, .ascending = true, .from = later.v[1]->id}, &none);
	assert_int_equal(none.n, 0);
}

static void a_removed_job_keeps_its_events(void **state)
{
	struct store *s = store_of(state);
	int64_t id = add_job(s, "gone");
	AUTO(op) *op = op_job_cancel(OP_JOB_REMOVE, id);
	AUTO_DONE(event_list) l = {};

	assert_true(apply_one(s, op));
	read_events(s, (struct event_filter){.uid = -1, .jobs = &id, .n_jobs = 1}, &l);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.v[0]->what, EVENT_JOB_REMOVE);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_change_is_in_the_trail_with_who_and_from_where),
	STORE_TEST(a_refused_or_rolled_back_operation_leaves_no_event),
	STORE_TEST(the_events_of_a_batch_are_handed_out_once),
	STORE_TEST(a_user_sees_his_own_jobs_and_acts_only),
	STORE_TEST(pages_join_without_gap_or_repetition),
	STORE_TEST(a_range_of_time_is_found_without_walking_there),
	STORE_TEST(a_follower_gets_what_is_committed_after_its_position),
	STORE_TEST(a_removed_job_keeps_its_events),
};
const struct suite_part store_events_part = {tests, ELEMENTS(tests)};
