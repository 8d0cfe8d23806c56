/* SPDX-License-Identifier: Apache-2.0 */
/* The store suite: results of runs. */
#include "base/text.h"
#include "core/job/run.h"
#include "store/lists.h"
#include "store/ops/op.h"
#include "store/ops/owner_quota.h"
#include "store/ops/retention.h"
#include "store/ops/run/run_results.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_runs.h"
#include "store/read/run_results.h"
#include "unit/store/store_suite.h"
#include <string.h>

/* Ends an attempt with results, "a=1 b=2". */
static void end_with(struct store *s, const struct run *r, enum run_state state, const char *results, usec_t at)
{
	AUTO(op) *end = op_ended(r, state == RUN_SUCCEEDED ? ATTEMPT_SUCCEEDED : ATTEMPT_FAILED, at);
	AUTO_TEXT words = xstrdup(results);
	char *save = NULL;

	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		strv_add(&run_ended_op(end)->results, w);
	run_ended_op(end)->state = state;
	run_ended_op(end)->due_at = at;
	assert_true(apply_one(s, end));
}

static void expect_results(struct store *s, int64_t run, const char *results)
{
	AUTO(run) *r = get_run(s, run);
	AUTO_DONE(buf) all = {};
	struct err e = {};

	assert_true(run_results_read(s, &r, 1, &e));
	for (size_t i = 0; i < r->results.n; i++)
		buf_printf(&all, "%s%s", i ? " " : "", r->results.v[i]);
	assert_string_equal(all.data ? all.data : "", results);
}

static void the_last_attempt_replaces_the_results_of_a_run(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL, *second = NULL;

	add_job(s, "a");
	first = claim_one(s, T0);
	start_run(s, first, T0);
	end_with(s, first, RUN_QUEUED, "rows=1 only_first=1", T0 + 1);
	expect_results(s, first->id, "only_first=1 rows=1");
	assert_counts_true(s); /* includes the bytes of the owner */
	second = claim_one(s, T0 + 1);
	start_run(s, second, T0 + 2);
	end_with(s, second, RUN_SUCCEEDED, "rows=2", T0 + 3);
	expect_results(s, first->id, "rows=2");
	end_with(s, second, RUN_SUCCEEDED, "rows=3", T0 + 3); /* a repeated report changes nothing */
	expect_results(s, first->id, "rows=2");
	assert_counts_true(s);
}

/* The runs with a result, one page of at most 'limit' after 'before'; numbers of their jobs. */
static int64_t expect_page(struct store *s, struct run_filter f, const char *jobs)
{
	AUTO_DONE(run_list) found = {};
	AUTO_DONE(buf) all = {};
	struct err e = {};

	assert_true(list_runs_page(s, &f, &found, &e));
	for (size_t i = 0; i < found.n; i++)
		buf_printf(&all, "%s%s", i ? " " : "", found.v[i]->job_name);
	assert_string_equal(all.data ? all.data : "", jobs);
	return found.next;
}

static void runs_are_found_by_a_result_in_pages(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	struct store *s = store_of(state);
	struct run_filter f = {.uid = -1, .result_key = "kind", .result_value = "full", .limit = 2};
	int64_t job_b = 0;

	for (size_t i = 0; i < ELEMENTS(names); i++) {
		AUTO(run) *r = NULL;

		add_job(s, names[i]);
		r = claim_one(s, T0);
		start_run(s, r, T0);
		end_with(s, r, RUN_SUCCEEDED, "kind=full n=1", T0 + 1);
		job_b = i == 1 ? r->job : job_b;
	}
	f.before = expect_page(s, f, "c b");
	assert_true(f.before != 0);
	assert_int_equal(expect_page(s, f, "a"), 0);
	f.before = 0;
	f.job = job_b;
	expect_page(s, f, "b");
	f.job = 0;
	f.uid = 4242; /* the runs of another owner */
	expect_page(s, f, "");
	f.uid = -1;
	f.result_value = "ful";
	expect_page(s, f, "");
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(the_last_attempt_replaces_the_results_of_a_run),
	STORE_TEST(runs_are_found_by_a_result_in_pages),
};
const struct suite_part store_results_part = {tests, ELEMENTS(tests)};
