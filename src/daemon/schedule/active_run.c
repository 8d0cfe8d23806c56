/* SPDX-License-Identifier: Apache-2.0 */
/* The table of active runs, with a queue of held runs. */
#include "daemon/schedule/active_run.h"
#include "base/auto.h"
#include "base/text.h"
#include "core/job/job.h"
#include <stdlib.h>

static void default_retry_policy(struct retry_policy *ret)
{
	AUTO_DONE(job_spec) spec;

	job_spec_init(&spec);
	policy_retry_of(&spec, ret);
}

bool active_run_outlives_lease(const struct job_spec *spec)
{
	struct start_policy p = {};

	policy_start_of(spec, &p);
	return p.overlap == OVERLAP_ALLOW;
}

struct active_run *active_run_new(struct run *run, enum active_run_stage stage)
{
	struct active_run *a = xcalloc(1, sizeof(*a));

	a->run = run;
	a->tree = -1;
	a->stage = stage;
	default_retry_policy(&a->retry);
	if (run->state == RUN_CLAIMED)
		run->attempt++; /* the store increments the attempt when the start is recorded */
	a->start_recorded = run->state == RUN_RUNNING;
	a->end = (struct attempt){.run = run->id, .number = run->attempt, .fence = run->fence,
		.exit_code = -1, .started_at = run->started_at};
	return a;
}

void active_run_free(struct active_run *a)
{
	if (!a)
		return;
	free(a->end.node);
	free(a->end.spawner);
	free(a->end.error);
	run_free(a->run);
	free(a->spec);
	strv_done(&a->params);
	strv_done(&a->results);
	free(a->artifact);
	free(a->artifact_sum);
	free(a->response);
	strv_done(&a->secrets);
	auto_fd_close(&a->tree);
	free(a);
}

void active_runs_done(struct active_runs *all)
{
	struct active_run *a;

	for (size_t i = 0; (a = map_next(&all->by_run, &i));)
		active_run_free(a);
	map_done(&all->by_run);
	*all = (struct active_runs){};
}

/* Adds a run to the counts of its stage, or subtracts it. */
static void update_counts(struct active_runs *all, const struct active_run *a, bool in)
{
	size_t active = a->stage != ACTIVE_RUN_ENDED && a->stage != ACTIVE_RUN_HELD,
	       starting = a->stage == ACTIVE_RUN_STARTING;

	all->active = in ? all->active + active : all->active - active;
	all->starting = in ? all->starting + starting : all->starting - starting;
}

void active_runs_set_stage(struct active_runs *all, struct active_run *a,
	enum active_run_stage stage)
{
	update_counts(all, a, false);
	a->stage = stage;
	update_counts(all, a, true);
}

struct active_run *active_runs_get(const struct active_runs *all, int64_t run, int64_t fence)
{
	struct active_run *a = map_get(&all->by_run, run);

	return a && a->run->fence == fence ? a : NULL;
}

void active_runs_add(struct active_runs *all, struct active_run *a)
{
	struct active_run *old = map_get(&all->by_run, a->run->id);

	if (old)
		active_runs_remove(all, old);
	update_counts(all, a, true);
	map_put(&all->by_run, a->run->id, a);
}

void active_runs_remove(struct active_runs *all, struct active_run *a)
{
	if (a->stage == ACTIVE_RUN_HELD)
		active_runs_release(all, a);
	update_counts(all, a, false);
	map_take(&all->by_run, a->run->id);
	if (all->on_remove)
		all->on_remove(a, all->arg);
	active_run_free(a);
}

void active_runs_hold(struct active_runs *all, struct active_run *a)
{
	active_runs_set_stage(all, a, ACTIVE_RUN_HELD);
	a->next_held = NULL;
	if (all->last_held)
		all->last_held->next_held = a;
	else
		all->first_held = a;
	all->last_held = a;
	all->held++;
}

struct active_run *active_runs_release(struct active_runs *all, struct active_run *a)
{
	struct active_run *before = NULL;

	if (!a)
		a = all->first_held;
	if (!a)
		return NULL;
	for (struct active_run *h = all->first_held; h != a; h = h->next_held)
		before = h;
	if (before)
		before->next_held = a->next_held;
	else
		all->first_held = a->next_held;
	if (all->last_held == a)
		all->last_held = before;
	all->held--;
	active_runs_set_stage(all, a, ACTIVE_RUN_STARTING);
	return a;
}

void active_runs_end(struct active_runs *all, struct active_run *a)
{
	if (a->stage == ACTIVE_RUN_HELD)
		active_runs_release(all, a);
	active_runs_set_stage(all, a, ACTIVE_RUN_ENDED);
}

usec_t active_runs_overlong(struct active_runs *all, usec_t now,
	void (*on_overlong)(struct active_run *a, void *arg), void *arg)
{
	usec_t next = USEC_NEVER;
	struct active_run *a;

	for (size_t i = 0; (a = map_next(&all->by_run, &i));) {
		if (a->stage != ACTIVE_RUN_RUNNING || !a->long_at)
			continue;
		if (a->long_at <= now) {
			a->long_at = 0;
			on_overlong(a, arg);
		} else if (a->long_at < next) {
			next = a->long_at;
		}
	}
	return next;
}
