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
	struct active_run *f = xcalloc(1, sizeof(*f));

	f->run = run;
	f->tree = -1;
	f->stage = stage;
	default_retry_policy(&f->retry);
	if (run->state == RUN_CLAIMED)
		run->attempt++; /* the store increments the attempt when the start is recorded */
	f->start_recorded = run->state == RUN_RUNNING;
	f->end = (struct attempt){.run = run->id, .number = run->attempt, .fence = run->fence,
		.exit_code = -1, .started_at = run->started_at};
	return f;
}

void active_run_free(struct active_run *f)
{
	if (!f)
		return;
	free(f->end.node);
	free(f->end.spawner);
	free(f->end.error);
	run_free(f->run);
	free(f->spec);
	free(f->artifact);
	free(f->artifact_sum);
	auto_fd_close(&f->tree);
	free(f);
}

void active_runs_done(struct active_runs *all)
{
	struct active_run *f;

	for (size_t i = 0; (f = map_next(&all->by_run, &i));)
		active_run_free(f);
	map_done(&all->by_run);
	*all = (struct active_runs){};
}

/* Adds a run to the counts of its stage, or subtracts it. */
static void update_counts(struct active_runs *all, const struct active_run *f, bool in)
{
	size_t active = f->stage != ACTIVE_RUN_ENDED && f->stage != ACTIVE_RUN_HELD,
	       starting = f->stage == ACTIVE_RUN_STARTING;

	all->active = in ? all->active + active : all->active - active;
	all->starting = in ? all->starting + starting : all->starting - starting;
}

void active_runs_set_stage(struct active_runs *all, struct active_run *f,
	enum active_run_stage stage)
{
	update_counts(all, f, false);
	f->stage = stage;
	update_counts(all, f, true);
}

struct active_run *active_runs_get(const struct active_runs *all, int64_t run, int64_t fence)
{
	struct active_run *f = map_get(&all->by_run, run);

	return f && f->run->fence == fence ? f : NULL;
}

void active_runs_add(struct active_runs *all, struct active_run *f)
{
	struct active_run *old = map_get(&all->by_run, f->run->id);

	if (old)
		active_runs_remove(all, old);
	update_counts(all, f, true);
	map_put(&all->by_run, f->run->id, f);
}

void active_runs_remove(struct active_runs *all, struct active_run *f)
{
	if (f->stage == ACTIVE_RUN_HELD)
		active_runs_release(all, f);
	update_counts(all, f, false);
	map_take(&all->by_run, f->run->id);
	if (all->on_remove)
		all->on_remove(f, all->arg);
	active_run_free(f);
}

void active_runs_hold(struct active_runs *all, struct active_run *f)
{
	active_runs_set_stage(all, f, ACTIVE_RUN_HELD);
	f->next_held = NULL;
	if (all->last_held)
		all->last_held->next_held = f;
	else
		all->first_held = f;
	all->last_held = f;
	all->held++;
}

struct active_run *active_runs_release(struct active_runs *all, struct active_run *f)
{
	struct active_run *before = NULL;

	if (!f)
		f = all->first_held;
	if (!f)
		return NULL;
	for (struct active_run *h = all->first_held; h != f; h = h->next_held)
		before = h;
	if (before)
		before->next_held = f->next_held;
	else
		all->first_held = f->next_held;
	if (all->last_held == f)
		all->last_held = before;
	all->held--;
	active_runs_set_stage(all, f, ACTIVE_RUN_STARTING);
	return f;
}

void active_runs_end(struct active_runs *all, struct active_run *f)
{
	if (f->stage == ACTIVE_RUN_HELD)
		active_runs_release(all, f);
	active_runs_set_stage(all, f, ACTIVE_RUN_ENDED);
}

usec_t active_runs_overlong(struct active_runs *all, usec_t now,
	void (*on_overlong)(struct active_run *f, void *arg), void *arg)
{
	usec_t next = USEC_NEVER;
	struct active_run *f;

	for (size_t i = 0; (f = map_next(&all->by_run, &i));) {
		if (f->stage != ACTIVE_RUN_RUNNING || !f->long_at)
			continue;
		if (f->long_at <= now) {
			f->long_at = 0;
			on_overlong(f, arg);
		} else if (f->long_at < next) {
			next = f->long_at;
		}
	}
	return next;
}
