/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the journal that judge_life.py checks. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "sim/life.h"
#include "store/lists.h"
#include "store/read/list/list_runs.h"
#include "store/read/run_results.h"
#include "store/read/single.h"
#include "store/store.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

void life_say(struct life *l, const char *event, const char *fmt, ...)
{
	va_list ap;

	fprintf(l->journal, "{\"e\":\"%s\",\"t\":%" PRId64 ",", event, l->now);
	va_start(ap, fmt);
	vfprintf(l->journal, fmt, ap);
	va_end(ap);
	fputs("}\n", l->journal);
}

static void say_attempts(struct life *l, int64_t run)
{
	struct attempt_list list = {};
	struct err e = {};

	if (!store_attempts(l->store, run, &list, &e)) {
		fprintf(stderr, "attempts of %" PRId64 ": %s\n", run, e.msg);
		abort();
	}
	for (size_t i = 0; i < list.n; i++) {
		const struct attempt *a = list.v[i];

		life_say(l, "attempt",
			"\"run\":%" PRId64 ",\"number\":%" PRId64 ",\"fence\":%" PRId64 ",\"outcome\":\"%s\","
			"\"code\":%" PRId64 ",\"began\":%" PRId64 ",\"ended\":%" PRId64,
			run, a->number, a->fence, attempt_outcome_name(a->outcome), a->exit_code, a->started_at,
			a->ended_at);
	}
	attempt_list_done(&list);
}

/* The results as "KEY=VALUE", separated by spaces. */
static char *results_of(struct life *l, struct run *r)
{
	AUTO_DONE(buf) all = {};
	struct err e = {};

	if (!run_results_read(l->store, &r, 1, &e)) {
		fprintf(stderr, "results of %" PRId64 ": %s\n", r->id, e.msg);
		abort();
	}
	for (size_t i = 0; i < r->results.n; i++)
		buf_printf(&all, "%s%s", i ? " " : "", r->results.v[i]);
	return xstrdup(all.data ? all.data : "");
}

static void say_run(struct life *l, struct run *r)
{
	AUTO_TEXT results = results_of(l, r);

	life_say(l, "run",
		"\"run\":%" PRId64 ",\"job\":%" PRId64 ",\"kind\":\"%s\",\"state\":\"%s\",\"reason\":\"%s\","
		"\"slot\":%" PRId64 ",\"last\":%" PRId64 ",\"count\":%" PRId64 ",\"due\":%" PRId64
		",\"attempt\":%" PRId64 ",\"lost\":%" PRId64 ",\"failures\":%" PRId64 ",\"made\":%" PRId64
		",\"ended\":%" PRId64 ",\"dead\":%" PRId64 ",\"forced\":%d,\"hold\":%d,\"prio\":%" PRId64
		",\"queue\":\"%s\",\"uid\":%" PRId64 ",\"cancel\":%d,\"results\":\"%s\"",
		r->id, r->job, run_kind_name(r->kind), run_state_name(r->state), r->reason ? r->reason : "", r->slot,
		r->slot_last, r->slot_count, r->due_at, r->attempt, r->lost, r->failures, r->created_at, r->ended_at,
		r->dead_at, r->forced, r->hold, r->priority, r->queue, r->uid, r->cancel_asked, results);
	if (r->attempt > 0 || r->fence > 0)
		say_attempts(l, r->id);
}

static void say_runs(struct life *l)
{
	struct run_filter f = {.uid = -1, .limit = 1000};
	struct err e = {};

	do {
		struct run_list list = {};

		if (!list_runs_page(l->store, &f, &list, &e)) {
			fprintf(stderr, "runs: %s\n", e.msg);
			abort();
		}
		for (size_t i = 0; i < list.n; i++)
			say_run(l, list.v[i]);
		f.before = list.next;
		run_list_done(&list);
	} while (f.before);
}

static void say_jobs(struct life *l)
{
	for (size_t i = 0; i < l->n_jobs; i++) {
		AUTO(job) *j = NULL;
		struct err e = {};

		if (!store_job_get(l->store, -1, l->jobs[i].id, &j, &e)) {
			fprintf(stderr, "job: %s\n", e.msg);
			abort();
		}
		life_say(l, "jobend", "\"id\":%" PRId64 ",\"state\":\"%s\"", j->id, job_state_name(j->state));
	}
}

void life_say_rows(struct life *l)
{
	struct store_counts counts = {};
	struct err e = {};

	say_runs(l);
	say_jobs(l);
	if (!store_counts(l->store, &counts, &e))
		abort();
	for (int i = 0; i < RUN_STATE_MAX; i++)
		life_say(l, "count", "\"of\":\"run\",\"state\":\"%s\",\"n\":%" PRId64, run_state_name((enum run_state)i),
			counts.runs[i]);
	for (int i = 0; i < JOB_STATE_MAX; i++)
		life_say(l, "count", "\"of\":\"job\",\"state\":\"%s\",\"n\":%" PRId64, job_state_name((enum job_state)i),
			counts.jobs[i]);
}
