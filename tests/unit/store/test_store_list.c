/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pages of jobs and runs: every filter, without gap or repetition. */
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/owners.h"
#include "store/ops/run/claims.h"
#include "store/read/list/list_jobs.h"
#include "store/read/list/list_runs.h"
#include "store/read/single.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <stdio.h>
#include <string.h>

#define JOBS 120
#define RUNS 300
#define RARE(i) ((i) % 20 == 7)

/* Adds jobs that differ in every value a filter uses. */
static void add_many(struct store *s)
{
	struct op *ops[JOBS];
	char names[JOBS][24];
	struct strv tags[JOBS] = {};

	for (int i = 0; i < JOBS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%d", i % 2 ? "web" : "db", i);
		ops[i] = op_add(i % 5 ? names[i] : NULL, NULL, NULL);
		job_add_op(ops[i])->job.uid = 1000 + (uint32_t)i % 3;
		job_add_op(ops[i])->job.owner = i % 3 == 0 ? "ann" : i % 3 == 1 ? "bob" : "cleo";
		job_add_op(ops[i])->job.now = T0 + i / 2 * USEC_SEC; /* pairs share an instant */
		job_add_op(ops[i])->job.run_at = 0;
		job_add_op(ops[i])->job.next_slot = T0 + USEC_DAY;
		strv_add(&tags[i], i % 4 ? "team=ops" : "team=dev");
		strv_add(&tags[i], "all=yes");
		job_add_op(ops[i])->job.tags = &tags[i];
	}
	apply_all(s, ops, JOBS);
	for (int i = 0; i < JOBS; i++) {
		AUTO(op) *end = op_job_cancel(i % 7 == 0 ? OP_JOB_CANCEL : OP_JOB_REMOVE, job_add_op(ops[i])->job.id);

		assert_true(ops[i]->ok);
		if (i % 7 == 0 || i % 11 == 0)
			assert_true(apply_one(s, end));
		strv_done(&tags[i]);
		op_free(ops[i]);
	}
}

static bool job_fits(const struct job *j, int i, const struct job_filter *f)
{
	unsigned states = f->states ? f->states : ~(1u << JOB_REMOVED);
	size_t literal = f->name_glob ? strcspn(f->name_glob, "*") : 0;

	return states & 1u << j->state && (f->uid < 0 || j->uid == f->uid) &&
	       (!f->owner || strcmp(j->owner, f->owner) == 0) &&
	       (!f->name_glob || (j->name && strncmp(j->name, f->name_glob, literal) == 0)) &&
	       (!f->tag_key || strcmp(f->tag_key, "all") == 0 || !f->tag_value ||
		       strcmp(f->tag_value, i % 4 ? "ops" : "dev") == 0) &&
	       j->created_at >= f->created_since && (!f->created_until || j->created_at < f->created_until);
}

static void check_job_filter(struct store *s, struct job_filter f, const struct job_list *all)
{
	size_t at = 0;
	int pages = 0;

	f.limit = 7;
	do {
		AUTO_DONE(job_list) page = {};
		struct err e = {};

		assert_true(++pages < 100);
		if (!list_jobs_page(s, &f, &page, &e))
			fail_msg("%s", e.msg);
		for (size_t i = 0; i < page.n; i++, at++) {
			while (at < all->n && !job_fits(all->v[at], (int)at, &f))
				at++;
			assert_true(at < all->n);
			assert_int_equal(page.v[i]->id, all->v[at]->id);
		}
		f.after = page.next;
	} while (f.after);
	for (; at < all->n; at++)
		assert_false(job_fits(all->v[at], (int)at, &f));
}

/* Reads a whole sorted list in pages of 7. */
static size_t read_sorted(struct store *s, struct job_filter f, int64_t ids[JOBS])
{
	AUTO_DONE(job_search) search = {};
	struct job_place place = {};
	size_t n = 0;
	bool more;
	int pages = 0;

	f.limit = 7;
	do {
		AUTO_DONE(job_list) page = {};
		struct err e = {};

		assert_true(++pages < 100);
		if (!list_jobs_sorted(s, &f, &place, &search, &page, &e))
			fail_msg("%s", e.msg);
		assert_true(n + page.n <= JOBS);
		for (size_t i = 0; i < page.n; i++)
			ids[n++] = page.v[i]->id;
		more = page.next != 0;
	} while (more);
	return n;
}

/* The order that the list must have, from the rows as they are shown. 0: not determined by the key. */
static int sort_order(const struct job *a, const struct job *b, enum job_sort sort)
{
	int64_t x = sort == JOB_SORT_NEXT ? a->next_slot : a->last_run.slot, y = sort == JOB_SORT_NEXT ? b->next_slot : b->last_run.slot;

	if (sort == JOB_SORT_NAME && a->name && b->name)
		return strcmp(a->name, b->name);
	if (sort == JOB_SORT_NAME)
		return (a->name == NULL) - (b->name == NULL);
	return (x > y) - (x < y);
}

static bool has_key(const struct job *j, enum job_sort sort)
{
	return sort == JOB_SORT_NAME ? j->name != NULL : sort == JOB_SORT_NEXT ? (j->next_slot != 0 && j->next_slot != USEC_NEVER) : j->last_run.id != 0;
}

static void check_order(struct store *s, struct job_filter f)
{
	AUTO(job) *before = NULL;
	int64_t ids[JOBS], few[JOBS];
	size_t n = read_sorted(s, f, ids), n_few;
	bool seen[JOBS + 1] = {};

	for (size_t i = 0; i < n; i++) {
		struct job *j = get_job(s, ids[i]);

		assert_false(seen[ids[i]]);
		seen[ids[i]] = true;
		if (before && has_key(j, f.sort) && has_key(before, f.sort))
			assert_true(f.down ? sort_order(before, j, f.sort) >= 0 : sort_order(before, j, f.sort) <= 0);
		assert_false(before && has_key(j, f.sort) && !has_key(before, f.sort));
		job_free(before);
		before = j;
	}
	/* The same filter in another form is sorted in memory; the order is the same. */
	if (f.states)
		return;
	f.states = (1u << JOB_STATE_MAX) - 1 - (1u << JOB_REMOVED);
	n_few = read_sorted(s, f, few);
	assert_int_equal(n_few, n);
	assert_memory_equal(ids, few, n * sizeof(*ids));
}

/* Jobs with and without a name, a queued run, a next slot and a last run. */
static void add_sortable(struct store *s)
{
	struct op *ops[JOBS];
	char names[JOBS][24];
	AUTO(op) *claim = op_claim(25, T0 + USEC_MIN);

	for (int i = 0; i < JOBS; i++) {
		snprintf(names[i], sizeof(names[i]), "%c%d", 'a' + i * 7 % 26, i % 9);
		ops[i] = op_add(i % 5 ? names[i] : NULL, NULL, NULL);
		job_add_op(ops[i])->job.uid = 1000 + (uint32_t)i; /* names may be equal */
		job_add_op(ops[i])->job.queue = i % 4 ? "default" : "slow";
		job_add_op(ops[i])->job.run_at = i % 3 ? 0 : T0 + i * 5 % 11 * USEC_SEC;
		/* USEC_NEVER: it waits for something that is not a slot */
		job_add_op(ops[i])->job.next_slot = i % 3 == 0 ? 0 : i % 10 == 1 ? USEC_NEVER : T0 + USEC_DAY + i * 7 % 13 * USEC_SEC;
	}
	apply_all(s, ops, JOBS);
	for (int i = 0; i < JOBS; i++) {
		assert_true(ops[i]->ok);
		op_free(ops[i]);
	}
	assert_true(apply_one(s, claim));
	for (size_t i = 0; i < claim_op(claim)->claimed.n; i++)
		end_run(s, claim_op(claim)->claimed.v[i].run, ATTEMPT_SUCCEEDED, T0 + USEC_MIN);
}

static void sorted_lists_have_each_job_once_and_in_order(void **state)
{
	struct store *s = store_of(state);
	const struct job_filter filters[] = {{.uid = -1}, {.uid = -1, .name_glob = "c*"}, {.uid = -1, .name_glob = "*3"}, {.uid = -1, .name_glob = "*", .queue = "slow"}, {.uid = 1007, .name_glob = "*"},
		{.uid = -1, .states = 1u << JOB_ACTIVE}, {.uid = -1, .queue = "slow"}, {.uid = -1, .bytes = 60}};
	int64_t ids[JOBS];

	place_query(where_of(state), "INSERT INTO limits (scope, key, running, weight, rate_n, rate_per, rate_burst) VALUES ('queue', 'slow', 0, 100, 0, 0, 0)", NULL);
	add_sortable(s);
	for (size_t i = 0; i < ELEMENTS(filters); i++)
		for (int sort = JOB_SORT_NAME; sort < JOB_SORT_MAX; sort++)
			for (int down = 0; down < 2; down++) {
				struct job_filter f = filters[i];

				f.sort = (enum job_sort)sort;
				f.down = down;
				check_order(s, f);
			}
	assert_int_equal(read_sorted(s, (struct job_filter){.uid = -1, .sort = JOB_SORT_NEXT}, ids), JOBS);
	assert_int_equal(read_sorted(s, (struct job_filter){.uid = -1, .sort = JOB_SORT_LAST, .queue = "slow"}, ids), JOBS / 4);
	assert_int_equal(read_sorted(s, (struct job_filter){.uid = -1, .sort = JOB_SORT_NAME, .name_glob = "c*", .down = true}, ids), 4);
}

static void lists_by_number_can_be_descending(void **state)
{
	struct store *s = store_of(state);
	struct job_filter f = {.uid = -1, .down = true, .limit = 7};
	int64_t last = INT64_MAX;
	size_t n = 0;

	add_many(s);
	do {
		AUTO_DONE(job_list) page = {};
		struct err e = {};

		assert_true(list_jobs_page(s, &f, &page, &e));
		for (size_t i = 0; i < page.n; i++, n++) {
			assert_true(page.v[i]->id < last);
			last = page.v[i]->id;
		}
		f.after = page.next;
	} while (f.after);
	assert_in_range(n, JOBS * 8 / 10, JOBS);
}

static void each_filter_of_jobs_gives_each_job_once(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(job_list) all = {};
	struct job_filter every = {.uid = -1, .states = ~0u, .limit = 1000};
	const struct job_filter filters[] = {
		{.uid = -1},
		{.uid = -1, .states = ~0u},
		{.uid = 1001},
		{.uid = 1001, .states = 1u << JOB_CANCELLED},
		{.uid = -1, .states = 1u << JOB_REMOVED},
		{.uid = -1, .states = 1u << JOB_REMOVED | 1u << JOB_CANCELLED},
		{.uid = -1, .owner = "cleo"},
		{.uid = -1, .owner = "nobody"},
		{.uid = -1, .tag_key = "team", .tag_value = "dev"},
		{.uid = -1, .tag_key = "team"},
		{.uid = 1002, .tag_key = "all", .tag_value = "yes", .states = 1u << JOB_ACTIVE},
		{.uid = -1, .name_glob = "web-*"},
		{.uid = -1, .name_glob = "*"},
		{.uid = 1000, .name_glob = "db-1*", .states = ~0u},
		{.uid = -1, .name_glob = "w\xff*"},
		{.uid = -1, .created_since = T0 + 10 * USEC_SEC, .created_until = T0 + 30 * USEC_SEC},
		{.uid = 1001, .created_since = T0 + 11 * USEC_SEC},
		{.uid = -1, .created_until = T0 + 5 * USEC_SEC, .name_glob = "web*"},
	};
	struct err e = {};

	add_many(s);
	assert_true(list_jobs_page(s, &every, &all, &e));
	assert_int_equal(all.n, JOBS);
	assert_int_equal(all.next, 0);
	for (size_t i = 0; i < ELEMENTS(filters); i++) {
		struct job_filter short_pages = filters[i];

		short_pages.bytes = 60; /* three definitions, of those of add_many() */
		check_job_filter(s, filters[i], &all);
		check_job_filter(s, short_pages, &all);
	}
}

static void stars_and_question_marks_are_the_whole_glob_language(void **state)
{
	struct store *s = store_of(state);
	static const struct {
		const char *glob;
		size_t matches;
	} cases[] = {{"backup", 1}, {"backup?", 1}, {"*up*", 3}, {"b*2", 1}, {"?ackup", 1}, {"[b]ackup", 0}, {"", 0},
		{"*a*c*k*u*p*", 2}, {"startup", 1}, {"backup*", 2}};

	add_job(s, "backup");
	add_job(s, "backup2");
	add_job(s, "startup");
	for (size_t i = 0; i < ELEMENTS(cases); i++) {
		struct job_filter f = {.uid = -1, .name_glob = cases[i].glob, .limit = 10};
		AUTO_DONE(job_list) page = {};
		struct err e = {};

		assert_true(list_jobs_page(s, &f, &page, &e));
		assert_int_equal(page.n, cases[i].matches);
	}
}

/* Runs in many states, several of one job. */
static void make_runs(struct store *s)
{
	struct op *adds[RUNS];
	struct strv tags[RUNS] = {};

	for (uint32_t uid = 1000; uid < 1003; uid++) {
		AUTO(op) *owner = op_new(OP_OWNER, NULL, NULL);

		op_fill(owner_op(owner), .uid = uid, .name = uid == 1000 ? "ann" : "bob", .now = T0); /* two had one name */
		assert_true(apply_one(s, owner));
	}
	for (int i = 0; i < RUNS; i++) {
		adds[i] = op_add(NULL, NULL, NULL);
		job_add_op(adds[i])->job.uid = 1000 + (uint32_t)i % 3;
		job_add_op(adds[i])->job.run_at = T0 + i / 3; /* three share a slot */
		strv_add(&tags[i], RARE(i) ? "team=few" : "team=many");
		job_add_op(adds[i])->job.tags = &tags[i];
	}
	apply_all(s, adds, RUNS);
	for (int i = 0; i < RUNS; i++)
		strv_done(&tags[i]);
	for (int i = 0; i < RUNS; i += 50) {
		AUTO(op) *claim = op_claim(33, T0 + RUNS);
		struct op *ends[33];
		size_t n;

		assert_true(apply_one(s, claim));
		n = claim_op(claim)->claimed.n;
		for (size_t k = 0; k < n; k++) {
			static const enum attempt_outcome outcomes[] = {ATTEMPT_TIMED_OUT, ATTEMPT_FAILED,
				ATTEMPT_SUCCEEDED, ATTEMPT_SUCCEEDED};

			ends[k] = op_ended(claim_op(claim)->claimed.v[k].run, outcomes[k % 4], T0 + RUNS);
		}
		if (i < 200)
			apply_all(s, ends, n);
		for (size_t k = 0; k < n; k++)
			op_free(ends[k]);
	}
	for (int i = 0; i < RUNS; i++)
		op_free(adds[i]);
}

static bool among(const struct run_filter *f, int64_t job)
{
	for (size_t i = 0; i < f->jobs_n; i++)
		if (f->jobs[i] == job)
			return true;
	return f->jobs_n == 0;
}

/* The jobs have the numbers from 1 on. */
static bool run_fits(const struct run *r, const struct run_filter *f)
{
	if (!among(f, r->job) || (f->due_by && r->state == RUN_QUEUED && r->slot > f->due_by) ||
	    (f->owner && strcmp(f->owner, r->uid == 1000 ? "ann" : r->uid <= 1002 ? "bob" : "") != 0) ||
	    (f->tag_value && strcmp(f->tag_value, RARE((int)r->job - 1) ? "few" : "many") != 0))
		return false;
	return (f->uid < 0 || r->uid == f->uid) && (!f->job || r->job == f->job) &&
	       (!f->states || f->states & 1u << r->state) && r->slot >= f->slot_since &&
	       (!f->slot_until || r->slot < f->slot_until);
}

static void check_run_filter(struct store *s, struct run_filter f, const struct run_list *all)
{
	size_t at = 0;
	int pages = 0;

	f.limit = 9;
	do {
		AUTO_DONE(run_list) page = {};
		struct err e = {};

		assert_true(++pages < 100);
		if (!list_runs_page(s, &f, &page, &e))
			fail_msg("%s", e.msg);
		for (size_t i = 0; i < page.n; i++, at++) {
			while (at < all->n && !run_fits(all->v[at], &f))
				at++;
			assert_true(at < all->n);
			assert_int_equal(page.v[i]->id, all->v[at]->id);
		}
		f.before = page.next;
	} while (f.before);
	for (; at < all->n; at++)
		assert_false(run_fits(all->v[at], &f));
}

static void each_filter_of_runs_gives_each_run_once(void **state)
{
	struct store *s = store_of(state);
	AUTO_DONE(run_list) all = {};
	static const int64_t some[] = {3, 300, 8, 9, 7, 299, 150, 9, 298, 151, 17, 18};
	struct run_filter every = {.uid = -1, .limit = 1000};
	const struct run_filter filters[] = {
		{.uid = -1},
		{.uid = 1002},
		{.uid = -1, .states = 1u << RUN_FAILED},
		{.uid = -1, .states = 1u << RUN_SUCCEEDED},
		{.uid = -1, .states = 1u << RUN_QUEUED | 1u << RUN_FAILED | 1u << RUN_CLAIMED},
		{.uid = 1000, .states = 1u << RUN_QUEUED | 1u << RUN_FAILED},
		{.uid = -1, .states = 1u << RUN_SUCCEEDED | 1u << RUN_FAILED},
		{.uid = -1, .states = 1u << RUN_TIMED_OUT | 1u << RUN_FAILED},
		{.uid = -1, .slot_since = T0 + 10, .slot_until = T0 + 40},
		{.uid = 1001, .slot_since = T0 + 11},
		{.uid = -1, .slot_until = T0 + 9, .states = 1u << RUN_FAILED},
		{.uid = -1, .job = 7},
		{.uid = 1001, .job = 7},
		{.uid = -1, .job = 999999},
		{.uid = -1, .jobs = some, .jobs_n = ELEMENTS(some)},
		{.uid = 1001, .jobs = some, .jobs_n = ELEMENTS(some), .slot_until = T0 + 60},
		{.uid = -1, .jobs = some, .jobs_n = ELEMENTS(some), .tag_key = "team", .tag_value = "few"},
		{.uid = -1, .owner = "ann"},
		{.uid = -1, .owner = "bob"},
		{.uid = 1002, .owner = "bob", .states = 1u << RUN_FAILED | 1u << RUN_SUCCEEDED},
		{.uid = 1002, .owner = "ann"},
		{.uid = -1, .owner = "cleo"},
		{.uid = -1, .tag_key = "team", .tag_value = "few"},
		{.uid = -1, .tag_key = "team", .tag_value = "many"},
		{.uid = -1, .tag_key = "team", .tag_value = "many", .owner = "bob", .states = 1u << RUN_QUEUED},
		{.uid = -1, .tag_key = "team", .tag_value = "none"},
		{.uid = -1, .due_by = T0 + 80},
		{.uid = -1, .states = 1u << RUN_QUEUED, .due_by = T0 + 90},
	};
	struct err e = {};

	make_runs(s);
	assert_true(list_runs_page(s, &every, &all, &e));
	assert_int_equal(all.n, RUNS);
	for (size_t i = 1; i < all.n; i++)
		assert_true(all.v[i - 1]->slot > all.v[i]->slot ||
			    (all.v[i - 1]->slot == all.v[i]->slot && all.v[i - 1]->id > all.v[i]->id));
	for (size_t i = 0; i < ELEMENTS(filters); i++)
		check_run_filter(s, filters[i], &all);
	assert_counts_true(s);
}

static void a_cursor_that_is_gone_is_told(void **state)
{
	struct store *s = store_of(state);
	struct run_filter runs = {.uid = -1, .before = 12345, .limit = 5};
	struct job_filter jobs = {.uid = -1, .after = 12345, .created_since = T0, .limit = 5};
	AUTO_DONE(run_list) page = {};
	AUTO_DONE(job_list) job_page = {};
	struct err e = {};

	assert_false(list_runs_page(s, &runs, &page, &e));
	assert_int_equal(e.kind, ERR_INVALID);
	assert_string_equal(e.field, "cursor");
	assert_false(list_jobs_page(s, &jobs, &job_page, &e));
	assert_int_equal(e.kind, ERR_INVALID);
}

static void a_reader_sees_what_was_committed_and_writes_nothing(void **state)
{
	struct fixture *f = *state;
	AUTO(store) *reader = open_or_fail(f->where, true);
	AUTO(op) *op = op_add("r", NULL, NULL);
	AUTO(job) *job = NULL;
	struct batch_wake wake;
	struct err e = {};
	int64_t id = add_job(f->store, "seen");

	assert_string_equal(store_id(reader), store_id(f->store));
	assert_int_equal(strlen(store_id(reader)), 32);
	assert_true(store_job_get(reader, -1, id, &job, &e));
	assert_false(batch_apply(reader, &op, 1, &wake, &e));
	assert_false(op->ok);
	job_free(STEAL(job));
	assert_true(store_job_get(reader, -1, id, &job, &e));
}

static void a_page_ends_with_the_job_that_reaches_its_bytes(void **state)
{
	struct store *s = store_of(state);
	AUTO_TEXT large = xprintf("{\"command\":[\"true\"],\"stdin\":\"%01000d\"}", 0);
	struct job_filter f = {.uid = -1, .limit = 60, .bytes = 10000};
	AUTO_DONE(job_list) small = {};
	AUTO_DONE(job_list) rest = {};
	struct err e = {};

	for (int i = 0; i < 60; i++) {
		AUTO(op) *op = op_add(NULL, NULL, i < 5 ? NULL : large);

		assert_true(apply_one(s, op));
	}
	assert_true(list_jobs_page(s, &f, &small, &e));
	assert_in_range(small.n, 10, 27); /* extrapolated from the small ones */
	assert_int_equal(small.next, small.v[small.n - 1]->id);
	f.after = small.next;
	assert_true(list_jobs_page(s, &f, &rest, &e));
	assert_in_range(rest.n, 9, 11);
	assert_true(rest.next > 0);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(each_filter_of_jobs_gives_each_job_once),
	STORE_TEST(sorted_lists_have_each_job_once_and_in_order),
	STORE_TEST(lists_by_number_can_be_descending),
	STORE_TEST(stars_and_question_marks_are_the_whole_glob_language),
	STORE_TEST(each_filter_of_runs_gives_each_run_once),
	STORE_TEST(a_page_ends_with_the_job_that_reaches_its_bytes),
	STORE_TEST(a_cursor_that_is_gone_is_told),
	STORE_TEST(a_reader_sees_what_was_committed_and_writes_nothing),
};
const struct suite_part store_list_part = {tests, ELEMENTS(tests)};
