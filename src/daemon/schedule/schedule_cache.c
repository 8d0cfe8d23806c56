/* SPDX-License-Identifier: Apache-2.0 */
/* Computes slots from compiled schedules. */
#include "daemon/schedule/schedule_cache.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/job/job.h"
#include "core/time/schedule_set.h"
#include "core/time/slots.h"
#include "core/time/zone_cache.h"
#include "store/ops/run/late_runs.h"
#include "store/ops/run/plans.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#define CACHE_MAX 4096 /* compiled schedules kept */

/* The compiled schedule of a job. */
struct compiled {
	int64_t revision;
	usec_t jitter, until, created_at;
	struct start_policy start;
	struct slot_policy policy;
	struct schedule_set *set;
};

struct schedule_cache {
	atomic_bool forget;
	struct map cache;        /* job → struct compiled */
	struct zone_cache *zones;
	struct slot_walk walk;   /* scratch memory of the current job, too large for the stack */
	struct slot_plan plan;   /* the same */
	struct {
		int64_t job, revision;
		struct slot_walk walk;
	} long_walk;             /* a walk that used up its steps and continues in the next transaction */
};

static void compiled_free(struct compiled *c)
{
	if (!c)
		return;
	schedule_set_free(c->set);
	free(c);
}

static void cache_clear(struct map *cache)
{
	struct compiled *c;

	for (size_t i = 0; (c = map_next(cache, &i));)
		compiled_free(c);
	map_done(cache);
}

struct schedule_cache *schedule_cache_new(void)
{
	struct schedule_cache *t = xcalloc(1, sizeof(*t));

	t->zones = zone_cache_new(tzfile_read);
	return t;
}

void schedule_cache_free(struct schedule_cache *t)
{
	if (!t)
		return;
	cache_clear(&t->cache);
	zone_cache_free(t->zones);
	free(t);
}

void schedule_cache_invalidate(struct schedule_cache *t)
{
	atomic_store(&t->forget, true);
}

/*
 * A one-time slot, or one that follows the end of a run, has no later slot that would replace it.
 */
static bool runs_always(const struct schedule_set *set)
{
	enum schedule_kind kind = schedule_set_kind(set);

	return kind == SCHEDULE_NOW || kind == SCHEDULE_ONCE || schedule_set_follows(set);
}

/* 'name': the seed of H; NULL: the number of the job is. */
static bool schedule_compile(struct schedule_cache *t, const struct job_spec *spec, const char *name, int64_t job,
	usec_t created_at, struct schedule_set **ret, struct err *e)
{
	char number[32];
	struct schedule_context context = {
		.anchor = created_at,
		.id = name ? name : number,
		.gap = (enum dst_gap)spec->dst_gap,
		.fold = (enum dst_fold)spec->dst_fold,
		.from = spec->from,
		.until = spec->until,
		.accepted = true,
	};

	snprintf(number, sizeof(number), "%" PRId64, job);
	return zone_cache_get(t->zones, spec->tz, &context.zone, e) &&
	       schedule_set_parse(&spec->schedule, &context, ret, e);
}

static struct compiled *compile(struct schedule_cache *t, const struct due_job *due, struct err *e)
{
	AUTO_DONE(job_spec) spec;
	struct schedule_set *set;
	struct compiled *c;

	job_spec_init(&spec);
	if (!spec_json_from_text(due->spec, &spec, e))
		return NULL;
	if (!schedule_compile(t, &spec, due->name, due->job, due->created_at, &set, e))
		return NULL;
	c = xcalloc(1, sizeof(*c));
	*c = (struct compiled){.revision = due->revision, .jitter = spec.jitter, .until = spec.until,
		.created_at = due->created_at, .set = set};
	policy_start_of(&spec, &c->start);
	policy_catchup_of(&spec, &c->policy.catchup);
	c->policy.always = runs_always(set);
	return c;
}

static void cache_drop_all(struct schedule_cache *t)
{
	cache_clear(&t->cache);
	zone_cache_clear(t->zones); /* no compiled schedule refers to a zone any more */
}

static void cache_renew(struct schedule_cache *t)
{
	if (!atomic_exchange(&t->forget, false))
		return;
	cache_drop_all(t);
	t->long_walk.job = 0;
}

bool schedule_cache_first_slot(struct schedule_cache *t, const struct job_spec *spec, const struct schedule_seed *seed, usec_t from,
	usec_t *ret)
{
	AUTO(schedule_set) *set = NULL;
	struct err e = {};

	cache_renew(t);
	return schedule_compile(t, spec, NULL, seed->job, seed->created_at, &set, &e) &&
	       schedule_set_next_after_finish(set, from, from, ret);
}

static struct compiled *compiled_of(struct schedule_cache *t, const struct due_job *due,
	struct err *e)
{
	struct compiled *c;

	cache_renew(t);
	c = map_get(&t->cache, due->job);
	if (c && c->revision == due->revision)
		return c;
	compiled_free(map_take(&t->cache, due->job));
	if (t->cache.used >= CACHE_MAX)
		cache_drop_all(t);
	c = compile(t, due, e);
	if (c)
		map_put(&t->cache, due->job, c);
	return c;
}

static bool next_slot(void *arg, usec_t after, usec_t *ret)
{
	const struct compiled *c = arg;

	return schedule_set_next(c->set, after, ret);
}

/*
 * The rules of the zone may have changed since the slot was stored. Then the slot that replaces it
 * is used.
 */
static bool slot_revalidate(struct compiled *c, usec_t slot, usec_t *ret)
{
	if (schedule_set_follows(c->set) ||
		(schedule_set_next(c->set, slot - 1, ret) && *ret == slot)) {
		*ret = slot;
		return true;
	}
	if (slot_before(next_slot, c, slot,
		    slot - USEC_DAY > c->created_at ? slot - USEC_DAY : c->created_at, ret))
		return true; /* earlier than before; if it was planned already, its row exists */
	return schedule_set_next(c->set, slot, ret);
}

static bool first_slot_resolve(struct compiled *c, usec_t slot, usec_t *ret)
{
	if (slot_known(slot))
		return slot_revalidate(c, slot, ret);
	return schedule_set_next_after_finish(c->set, slot, slot, ret);
}

/*
 * The next_slot of a job whose next slot is unknown: it waits for the end of its run, a boot or a
 * trigger. 0: none follows.
 */
static usec_t slot_after_last(const struct compiled *c, usec_t now, bool planned)
{
	if (planned && schedule_set_follows(c->set))
		return USEC_NEVER;
	if (schedule_set_boots(c->set))
		return slot_boot_wait(c->until, now);
	return schedule_set_kind(c->set) == SCHEDULE_MANUAL ? USEC_NEVER : 0;
}

static bool walk_slots(struct schedule_cache *t, const struct due_job *due, struct compiled *c,
	usec_t first, usec_t now, usec_t horizon, int64_t *steps, struct slot_plan *ret)
{
	bool goes_on = t->long_walk.job == due->job && t->long_walk.revision == due->revision;
	struct slot_walk *walk = goes_on ? &t->long_walk.walk : &t->walk;

	if (slots_plan(next_slot, c, &c->policy, first, now, horizon, walk, steps, ret)) {
		if (goes_on)
			t->long_walk.job = 0;
		return true;
	}
	if (!goes_on) {
		t->long_walk.job = due->job;
		t->long_walk.revision = due->revision;
		t->long_walk.walk = t->walk;
		t->walk.from = 0;
	}
	return false;
}

static void add_planned_runs(const struct compiled *c, const struct slot_plan *plan,
	struct planned *ret)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct slot_range *r = &plan->v[i];

		plan_run_add(ret,
			&(struct planned_run){
				.state = r->missed ? RUN_SKIPPED : RUN_QUEUED,
				.slot = r->first,
				.slot_last = r->last,
				.slot_count = r->count,
				.due_at = r->first + (r->missed ? 0 : io_random_upto(c->jitter)),
				.reason = r->missed ? "missed" : NULL,
				.caught_up = r->passed && !r->missed &&
					     c->policy.catchup.word == CATCHUP_ALL,
			});
	}
}

void schedule_cache_plan(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret,
	void *arg)
{
	struct schedule_cache *t = arg;
	struct err e = {};
	struct compiled *c = compiled_of(t, due, &e);
	usec_t first;

	if (!c) {
		log_line(LOG_LEVEL_ERROR, &(struct log_about){.job = due->job},
			"suspended job %" PRId64 ", its next slot cannot be computed: %s", due->job,
			e.msg);
		ret->suspend = text_equal(e.field, "tz") ? "bad_zone" : "bad_schedule";
		return;
	}
	if (!first_slot_resolve(c, due->slot, &first)) {
		ret->next_slot = slot_after_last(c, now, false);
		return;
	}
	ret->policy = c->start;
	if (!walk_slots(t, due, c, first, now, horizon, &ret->steps, &t->plan)) {
		ret->later = true;
		return;
	}
	add_planned_runs(c, &t->plan, ret);
	ret->next_slot = t->plan.next ? t->plan.next : slot_after_last(c, now, true);
}

size_t schedule_cache_missed(const struct late_job *late, usec_t now, bool *ret_caught_up,
	void *arg)
{
	struct err e = {};
	struct compiled *c = compiled_of(arg, &late->job, &e);

	*ret_caught_up = c && c->policy.catchup.word == CATCHUP_ALL;
	if (!c)
		return 0;
	return slots_missed(next_slot, c, &c->policy, late->slots, late->n, late->job.slot, now);
}
