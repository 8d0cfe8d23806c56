/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of lists of thousands of jobs, whose filter and order have different indexes. */
#include "base/text.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/read/list/list_jobs.h"
#include "store/read/run_density.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <stdio.h>
#include <string.h>

#define JOBS 2600
#define SLOT(i) (T0 + USEC_DAY + (i) * 1117 % JOBS * USEC_SEC)

/* The values of job i + 1 that a filter uses. */
static const char *team_of(int i)
{
	return i % 2 ? "team=a" : i % 100 ? "team=b" : "team=c";
}

static void name_of(int i, char ret[32])
{
	snprintf(ret, 32, "%s-%04d_x%d", i % 5 ? "job" : "batch", i, i % 7);
}

static void add_thousands(struct store *s)
{
	AUTO(op) *op = op_new(OP_JOB_BULK, NULL, NULL);
	AUTO(op) *model = op_add(NULL, NULL, NULL);
	static char names[JOBS][32];
	struct strv tags[3] = {};

	job_bulk_op(op)->n = JOBS;
	job_bulk_op(op)->v = xcalloc(JOBS, sizeof(*job_bulk_op(op)->v));
	for (int i = 0; i < 3; i++)
		strv_add(&tags[i], i == 0 ? "team=a" : i == 1 ? "team=b" : "team=c");
	for (int i = 0; i < JOBS; i++) {
		struct job_new *j = &job_bulk_op(op)->v[i];

		name_of(i, names[i]);
		*j = job_add_op(model)->job;
		j->name = names[i];
		j->tags = &tags[team_of(i)[5] - 'a'];
		j->run_at = 0;
		j->next_slot = SLOT(i);
	}
	assert_true(apply_one(s, op));
	for (int i = 198; i < JOBS; i += 200) {
		AUTO(op) *end = op_job_cancel(OP_JOB_CANCEL, job_bulk_op(op)->v[i].id);

		assert_true(apply_one(s, end));
	}
	for (int i = 0; i < 3; i++)
		strv_done(&tags[i]);
}

/* A comparison that shares no code with the store: '*' at either end only. */
static bool name_fits(const char *glob, const char *name)
{
	AUTO_TEXT core = xstrndup(glob + (*glob == '*'), strcspn(glob + (*glob == '*'), "*"));
	const char *at = strstr(name, core);

	return at && (*glob == '*' || at == name);
}

static bool fits(const struct job_filter *f, int i)
{
	char name[32];
	bool cancelled = i % 200 == 198;

	name_of(i, name);
	return (!f->name_glob || name_fits(f->name_glob, name)) && (!f->tag_value || strcmp(team_of(i) + 5, f->tag_value) == 0) &&
	       (!f->states || f->states & 1u << (cancelled ? JOB_CANCELLED : JOB_ACTIVE));
}

static bool read_page(struct store *s, struct job_filter *f, struct job_place *place, struct job_search *search,
	struct job_list *ret)
{
	struct err e = {};

	if (f->sort == JOB_SORT_NUMBER ? !list_jobs_numbered(s, f, search, ret, &e) : !list_jobs_sorted(s, f, place, search, ret, &e))
		fail_msg("%s", e.msg);
	f->after = ret->next;
	return ret->next != 0;
}

static bool in_order(const struct job_filter *f, const struct job *a, const struct job *b)
{
	int64_t c = b->id - a->id;

	if (f->sort == JOB_SORT_NAME)
		c = strcmp(b->name, a->name);
	if (f->sort == JOB_SORT_NEXT) /* a cancelled job has no next slot and comes last */
		c = a->next_slot && b->next_slot ? b->next_slot - a->next_slot : !b->next_slot - !a->next_slot;
	if (f->sort == JOB_SORT_NEXT && (!a->next_slot || !b->next_slot))
		return c >= 0;
	return f->down ? c <= 0 : c >= 0;
}

/* Reads a list in pages, some with the search of the page before and some with a new one, as clients do. */
static void check_list(struct store *s, struct job_filter f)
{
	struct job_place place = {};
	AUTO_DONE(job_search) search = {};
	AUTO(job) *before = NULL;
	static bool seen[JOBS];
	int n = 0, expected = 0, pages = 0;
	bool more = true;

	memset(seen, 0, sizeof(seen));
	f.limit = 170;
	while (more) {
		AUTO_DONE(job_list) page = {};

		assert_true(++pages < 4000);
		more = read_page(s, &f, &place, &search, &page);
		for (size_t i = 0; i < page.n; i++, n++) {
			int k = (int)page.v[i]->id - 1;

			assert_true(k >= 0 && k < JOBS && !seen[k] && fits(&f, k));
			seen[k] = true;
			if (before && !in_order(&f, before, page.v[i]))
				fail_msg("sort %d%s, %s, %s: %s is after %s", f.sort, f.down ? " down" : "", f.name_glob, f.tag_value,
					page.v[i]->name, before->name);
			job_free(before);
			before = page.v[i];
			page.v[i] = NULL;
		}
		if (page.n > 0 && n % 2)
			job_search_done(&search);
	}
	for (int i = 0; i < JOBS; i++)
		expected += fits(&f, i);
	if (n != expected)
		fail_msg("sort %d%s, pattern %s, tag %s: %d instead of %d", f.sort, f.down ? " down" : "", f.name_glob, f.tag_value, n, expected);
}

static void a_filter_gives_each_of_thousands_of_jobs_once_in_any_order(void **state)
{
	struct store *s = store_of(state);
	const struct job_filter filters[] = {
		{.uid = -1, .name_glob = "*_x3"},                                         /* few: the names are compared */
		{.uid = -1, .name_glob = "*x*"},                                          /* dense */
		{.uid = -1, .name_glob = "job-*"},                                        /* many names with a prefix */
		{.uid = -1, .name_glob = "batch-1*"},
		{.uid = -1, .name_glob = "*_x8*"},                                        /* none */
		{.uid = -1, .tag_key = "team", .tag_value = "a"},                         /* too many to be sorted in memory */
		{.uid = -1, .tag_key = "team", .tag_value = "c"},
		{.uid = -1, .tag_key = "team"},                                           /* any value */
		{.uid = -1, .tag_key = "team", .tag_value = "a", .name_glob = "*_x5*"},
		{.uid = -1, .tag_key = "team", .tag_value = "b", .name_glob = "*99*", .states = 1u << JOB_ACTIVE},
		{.uid = -1, .states = 1u << JOB_CANCELLED, .owner = "ann"},
		{.uid = -1, .states = 1u << JOB_CANCELLED, .name_glob = "job*"},           /* few of many names */
		{.uid = -1, .states = 1u << JOB_ACTIVE | 1u << JOB_CANCELLED},
		{.uid = 1000, .name_glob = "*_x2*"},
	};

	add_thousands(s);
	for (size_t i = 0; i < ELEMENTS(filters); i++)
		for (int sort = JOB_SORT_NUMBER; sort < JOB_SORT_MAX; sort++)
			for (int down = 0; down < 2; down++) {
				struct job_filter f = filters[i];

				f.sort = (enum job_sort)sort;
				f.down = down;
				if (sort != JOB_SORT_LAST) /* no job has run: that order is the one of numbers */
					check_list(s, f);
			}
}

static int64_t count_runs(struct store *s, int64_t uid, int64_t counts[20])
{
	struct run_density d = {.uid = uid, .since = T0, .at = T0, .width = USEC_SEC, .n = 20};
	struct err e = {};
	bool more = true;
	int64_t sum = 0;

	while (more)
		if (!run_density_step(s, &d, &more, &e))
			fail_msg("%s", e.msg);
	for (size_t i = 0; i < d.n; i++) {
		counts[i] = d.counts[i].runs;
		sum += counts[i];
		assert_int_equal(d.counts[i].failed, 0);
	}
	return sum;
}

static void runs_are_counted_for_one_owner_or_for_all(void **state)
{
	struct store *s = store_of(state);
	int64_t all[20], one[20];

	for (int i = 0; i < 12; i++) {
		AUTO(op) *op = op_add(NULL, NULL, NULL);

		job_add_op(op)->job.uid = i % 3 ? 1000 : 1001;
		job_add_op(op)->job.run_at = T0 + (i < 10 ? i : 25) * USEC_SEC;
		assert_true(apply_one(s, op));
	}
	assert_int_equal(count_runs(s, -1, all), 10);
	assert_int_equal(count_runs(s, 1001, one), 4);
	assert_int_equal(count_runs(s, 1002, one), 0);
	count_runs(s, 1001, one);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(all[i], i < 10);
		assert_int_equal(one[i], i < 10 && i % 3 == 0);
	}
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(runs_are_counted_for_one_owner_or_for_all),
	STORE_TEST(a_filter_gives_each_of_thousands_of_jobs_once_in_any_order),
};
const struct suite_part store_search_part = {tests, ELEMENTS(tests)};
