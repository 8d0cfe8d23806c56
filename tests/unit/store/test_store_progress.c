/* SPDX-License-Identifier: Apache-2.0 */
/* The store suite: progress of running attempts. */
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/run.h"
#include "store/lists.h"
#include "store/ops/op.h"
#include "store/ops/run/run_progress.h"
#include "store/ops/run/runs.h"
#include "store/read/list/list_events.h"
#include "store/read/run_progress.h"
#include "unit/store/store_suite.h"
#include <string.h>

static void report(struct store *s, const struct run *r, int percent, const char *text, usec_t at, bool event)
{
	AUTO(op) *op = op_new(OP_PROGRESS, NULL, NULL);
	struct run_progress_row *row = xcalloc(1, sizeof(*row));

	*row = (struct run_progress_row){.run = r->id, .fence = r->fence, .progress = {.percent = percent, .at = at}, .event = event};
	sign_text(text, strlen(text), row->progress.text);
	run_progress_op(op)->v = row;
	run_progress_op(op)->n = 1;
	assert_true(apply_one(s, op));
}

static struct run *shown(struct store *s, int64_t id, usec_t now)
{
	struct run *r = get_run(s, id);
	struct err e = {};

	assert_true(run_progress_read(s, &r, 1, now, &e));
	return r;
}

static void progress_is_kept_and_belongs_to_one_attempt(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *first = NULL, *second = NULL, *seen = NULL, *later = NULL, *again = NULL;
	AUTO(op) *end = NULL;

	add_job(s, "a");
	first = claim_one(s, T0);
	start_run(s, first, T0 + 10 * USEC_SEC);
	seen = shown(s, first->id, T0 + 20 * USEC_SEC);
	assert_true(seen->progress.at == 0 && seen->estimated_end == 0);
	report(s, first, 10, "one", T0 + 15 * USEC_SEC, false);
	report(s, first, 25, "two", T0 + 20 * USEC_SEC, false);
	later = shown(s, first->id, T0 + 21 * USEC_SEC);
	assert_int_equal(later->progress.percent, 25);
	assert_string_equal(later->progress.text, "two");
	assert_true(later->estimated_end == T0 + 50 * USEC_SEC);
	end = op_ended(first, ATTEMPT_STALLED, T0 + 60 * USEC_SEC);
	run_ended_op(end)->state = RUN_QUEUED;
	run_ended_op(end)->due_at = T0 + 60 * USEC_SEC;
	assert_true(apply_one(s, end));
	second = claim_one(s, T0 + 60 * USEC_SEC);
	start_run(s, second, T0 + 61 * USEC_SEC);
	report(s, first, 99, "late", T0 + 62 * USEC_SEC, false); /* of an attempt that is over */
	again = shown(s, first->id, T0 + 63 * USEC_SEC);
	assert_true(again->progress.at == 0);
	assert_counts_true(s);
}

static void an_event_is_added_when_it_is_wanted(void **state)
{
	struct store *s = store_of(state);
	AUTO(run) *r = NULL;
	AUTO_DONE(event_list) found = {};
	struct err e = {};

	add_job(s, "a");
	r = claim_one(s, T0);
	start_run(s, r, T0 + 1);
	report(s, r, 10, "ten", T0 + 2, true);
	report(s, r, 11, "eleven", T0 + 3, false);
	assert_true(list_events_page(s, &(struct event_filter){.uid = -1, .whats = UINT64_C(1) << EVENT_RUN_PROGRESS, .limit = 9}, &found, &e));
	assert_int_equal(found.n, 1);
	assert_string_equal(found.v[0]->detail, "10% ten");
	assert_int_equal(found.v[0]->run, r->id);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(progress_is_kept_and_belongs_to_one_attempt),
	STORE_TEST(an_event_is_added_when_it_is_wanted),
};
const struct suite_part store_progress_part = {tests, ELEMENTS(tests)};
