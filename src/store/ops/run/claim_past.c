/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes past pauses whose slots are all planned, and skips runs of these slots that are still
 * queued.
 */
#include "base/map.h"
#include "base/text.h"
#include "core/job/run.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claim_private.h"
#include "store/ops/run/runs.h"
#include "store/set.h"
#include "store/store_private.h"

struct past {
	struct claim_pause *v; /* of scopes; owned */
	size_t n;
	struct set jobs;       /* {job, since, before}: of single jobs */
};

static void past_done(struct past *p)
{
	for (size_t i = 0; i < p->n; i++)
		claim_pause_done(&p->v[i]);
	free(p->v);
	set_done(&p->jobs);
}

static bool past_pauses_take(struct store *s, struct past *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSES_PAST_DROP, e);

	while (query_row(&q)) {
		int64_t job = query_get_int(&q);
		struct claim_pause p = {};

		claim_pause_read(&p, &q);
		if (job) {
			set_item(&ret->jobs);
			set_int(&ret->jobs, "job", job);
			set_int(&ret->jobs, "since", p.at);
			set_int(&ret->jobs, "before", p.until);
			claim_pause_done(&p);
			continue;
		}
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = p;
	}
	return !q.failed;
}

/* A run can be inside several pauses; it is skipped once. */
static void run_skip(struct claim *c, int64_t run, const char *reason)
{
	if (map_get(&c->gone, run))
		return;
	map_put(&c->gone, run, c);
	runs_describe_end(&c->ended, run, RUN_SKIPPED, reason);
}

static bool skip_runs_of_jobs(struct claim *c, struct set *jobs, struct err *e)
{
	AUTO_QUERY q = {};

	if (jobs->n == 0)
		return true;
	q = query_start(c->s->db, Q_RUNS_INSIDE_JOBS, e);
	set_bind(&q, jobs);
	while (query_row(&q))
		run_skip(c, query_get_int(&q), "paused");
	return !q.failed;
}

struct inside {
	int64_t *v; /* run, job, run, job ...; owned */
	size_t n;
	struct set jobs;
};

static void inside_done(struct inside *i)
{
	free(i->v);
	set_done(&i->jobs);
}

static bool read_inside(struct store *s, const struct claim_pause *p, struct inside *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_INSIDE, e);

	query_int(&q, p->at);
	query_int(&q, p->until);
	query_int(&q, p->uid);
	query_text(&q, text_equal(p->scope, "queue") ? p->key : "");
	while (query_row(&q)) {
		ret->v = xrealloc(ret->v, (ret->n + 2) * sizeof(*ret->v));
		ret->v[ret->n++] = query_get_int(&q);
		ret->v[ret->n++] = query_get_int(&q);
		set_id(&ret->jobs, ret->v[ret->n - 1]);
	}
	return !q.failed;
}

static bool skip_runs_of_scope(struct claim *c, const struct claim_pause *p, struct err *e)
{
	AUTO_DONE(inside) found = {};
	AUTO_DONE(map) tagged = {};

	if (!read_inside(c->s, p, &found, e))
		return false;
	if (found.n > 0 && !claim_pause_tagged(c->s, p, set_json(&found.jobs), &tagged, e))
		return false;
	for (size_t i = 0; i < found.n; i += 2)
		if (claim_pause_covers(p, &tagged, found.v[i + 1]))
			run_skip(c, found.v[i], text_equal(p->scope, "freeze") ? "frozen" : "paused");
	return true;
}

/* Writes runs of any job, so the batch must exclude all other writers. */
static bool past_pauses_need_exclusive(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PAUSES_PAST_READY, e);
	bool ready = query_row(&q);

	return !q.failed && (!ready || batch_needs_exclusive(s, e));
}

bool claim_drop_past(struct claim *c, struct err *e)
{
	AUTO_DONE(past) past = {};

	if (c->s->writers_lock == WRITERS_SHARED)
		return past_pauses_need_exclusive(c->s, e);
	if (!past_pauses_take(c->s, &past, e) || !skip_runs_of_jobs(c, &past.jobs, e))
		return false;
	for (size_t i = 0; i < past.n; i++)
		if (!skip_runs_of_scope(c, &past.v[i], e))
			return false;
	return true;
}
