/* SPDX-License-Identifier: Apache-2.0 */
/* The runs this engine holds. */
#include "daemon/schedule/active_run.h"
#include "base/auto.h"
#include "base/text.h"
#include "core/job/job.h"
#include <stdlib.h>

static void policy_of_nothing(struct retry_policy *ret)
{
	AUTO_DONE(job_spec) spec;

	job_spec_init(&spec);
	retry_policy_of(&spec, ret);
}

bool flight_keeps(const struct job_spec *spec)
{
	struct start_policy p = {};

	start_policy_of(spec, &p);
	return p.overlap == OVERLAP_ALLOW;
}

struct flight *flight_new(struct run *run, enum flight_stage stage)
{
	struct flight *f = xcalloc(1, sizeof(*f));

	f->run = run;
	f->tree = -1;
	f->stage = stage;
	policy_of_nothing(&f->retry);
	if (run->state == RUN_CLAIMED)
		run->attempt++; /* the store counts an attempt when it hears that it started */
	f->start_recorded = run->state == RUN_RUNNING;
	f->end = (struct attempt){.run = run->id, .number = run->attempt, .fence = run->fence,
		.exit_code = -1, .started_at = run->started_at};
	return f;
}

void flight_free(struct flight *f)
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

void flights_done(struct flights *all)
{
	struct flight *f;

	for (size_t i = 0; (f = map_next(&all->by_run, &i));)
		flight_free(f);
	map_done(&all->by_run);
	*all = (struct flights){};
}

/* What a flight adds to the counts. */
static void count(struct flights *all, const struct flight *f, bool in)
{
	size_t active = f->stage != FLIGHT_ENDED && f->stage != FLIGHT_HELD, starting = f->stage == FLIGHT_STARTING;

	all->active = in ? all->active + active : all->active - active;
	all->starting = in ? all->starting + starting : all->starting - starting;
}

void flights_stage(struct flights *all, struct flight *f, enum flight_stage stage)
{
	count(all, f, false);
	f->stage = stage;
	count(all, f, true);
}

struct flight *flights_get(const struct flights *all, int64_t run, int64_t fence)
{
	struct flight *f = map_get(&all->by_run, run);

	return f && f->run->fence == fence ? f : NULL;
}

void flights_add(struct flights *all, struct flight *f)
{
	struct flight *old = map_get(&all->by_run, f->run->id);

	if (old)
		flights_remove(all, old);
	count(all, f, true);
	map_put(&all->by_run, f->run->id, f);
}

void flights_remove(struct flights *all, struct flight *f)
{
	if (f->stage == FLIGHT_HELD)
		flights_release(all, f);
	count(all, f, false);
	map_take(&all->by_run, f->run->id);
	if (all->on_remove)
		all->on_remove(f, all->arg);
	flight_free(f);
}

void flights_hold(struct flights *all, struct flight *f)
{
	flights_stage(all, f, FLIGHT_HELD);
	f->next_held = NULL;
	if (all->last_held)
		all->last_held->next_held = f;
	else
		all->first_held = f;
	all->last_held = f;
	all->held++;
}

struct flight *flights_release(struct flights *all, struct flight *f)
{
	struct flight *before = NULL;

	if (!f)
		f = all->first_held;
	if (!f)
		return NULL;
	for (struct flight *h = all->first_held; h != f; h = h->next_held)
		before = h;
	if (before)
		before->next_held = f->next_held;
	else
		all->first_held = f->next_held;
	if (all->last_held == f)
		all->last_held = before;
	all->held--;
	flights_stage(all, f, FLIGHT_STARTING);
	return f;
}

void flights_end(struct flights *all, struct flight *f)
{
	if (f->stage == FLIGHT_HELD)
		flights_release(all, f);
	flights_stage(all, f, FLIGHT_ENDED);
}

usec_t flights_overlong(struct flights *all, usec_t now, void (*tell)(struct flight *f, void *arg), void *arg)
{
	usec_t next = USEC_NEVER;
	struct flight *f;

	for (size_t i = 0; (f = map_next(&all->by_run, &i));) {
		if (f->stage != FLIGHT_RUNNING || !f->long_at)
			continue;
		if (f->long_at <= now) {
			f->long_at = 0;
			tell(f, arg);
		} else if (f->long_at < next) {
			next = f->long_at;
		}
	}
	return next;
}
