/* SPDX-License-Identifier: Apache-2.0 */
/* The planner: asks the store for due slots and advances each job by its compiled schedule. */
#include "daemon/planner.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "core/job.h"
#include "core/schedule.h"
#include "core/slots.h"
#include "daemon/store_thread.h"
#include "store/op.h"
#include "wire/codec.h"
#include <inttypes.h>

#define PLAN_LIMIT 2000      /* due rows in one transaction */
#define CACHE_MAX 4096       /* compiled schedules kept */
#define RETRY_DELAY USEC_SEC /* after the store refused */

struct compiled {
	int64_t job, revision;
	struct schedule *parts[16];
	size_t n;
};

struct planner {
	const struct clock *clock;
	struct store_thread *store;
	usec_t next_slot, not_before;
	bool planning, stopped;
	struct map cache; /* job → struct compiled; touched on the store thread only */
};

static void compiled_free(struct compiled *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		schedule_free(c->parts[i]);
	free(c);
}

static void cache_clear(struct map *cache)
{
	struct compiled *c;

	for (size_t i = 0; (c = map_next(cache, &i));)
		compiled_free(c);
	map_done(cache);
}

static struct compiled *compile(const struct due_job *due, struct err *e)
{
	struct schedule_context context = {.anchor = due->created_at, .id = due->name,
		.accepted = true};
	struct compiled *c = xcalloc(1, sizeof(*c));
	AUTO_DONE(job_spec) spec;
	bool ok;

	job_spec_init(&spec);
	c->job = due->job;
	c->revision = due->revision;
	ok = spec_from_text(due->spec, &spec, e);
	for (size_t i = 0; ok && i < spec.schedule.n && c->n < ELEMENTS(c->parts); i++) {
		ok = schedule_parse(spec.schedule.v[i], &context, &c->parts[c->n], e);
		c->n += ok;
	}
	if (ok)
		return c;
	compiled_free(c);
	return NULL;
}

static struct compiled *compiled_of(struct planner *p, const struct due_job *due, struct err *e)
{
	struct compiled *c = map_get(&p->cache, due->job);

	if (c && c->revision == due->revision)
		return c;
	compiled_free(map_take(&p->cache, due->job));
	if (p->cache.used >= CACHE_MAX)
		cache_clear(&p->cache);
	c = compile(due, e);
	if (c)
		map_put(&p->cache, due->job, c);
	return c;
}

static bool next_of_all(void *arg, usec_t after, usec_t *ret)
{
	const struct compiled *c = arg;
	usec_t best = USEC_NEVER, t;

	for (size_t i = 0; i < c->n; i++)
		if (schedule_next(c->parts[i], after, &t) && t < best)
			best = t;
	*ret = best;
	return best != USEC_NEVER;
}

/* On the store thread, inside the transaction. */
static void advance(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	struct planner *p = arg;
	struct slot_plan plan;
	struct err e = {};
	struct compiled *c = compiled_of(p, due, &e);

	*ret = (struct planned){};
	if (!c) {
		log_line(LOG_LEVEL_ERROR, &(struct log_about){.job = due->job},
			"suspended job %" PRId64 ", its schedule cannot be read: %s", due->job, e.msg);
		ret->suspend = "bad_schedule";
		return;
	}
	slots_plan(next_of_all, c, due->slot, now, horizon, &plan);
	_Static_assert(ELEMENTS(ret->runs) >= SLOTS_MAX, "a plan must fit");
	for (size_t i = 0; i < plan.n; i++)
		ret->runs[ret->n++] = (struct planned_run){
			.state = plan.v[i].missed ? RUN_SKIPPED : RUN_QUEUED,
			.slot = plan.v[i].first,
			.slot_last = plan.v[i].last,
			.slot_count = plan.v[i].count,
			.due_at = plan.v[i].first,
			.reason = plan.v[i].missed ? "missed" : NULL,
		};
	ret->next_slot = plan.next;
}

struct planner *planner_new(const struct clock *clock, struct store_thread *store)
{
	struct planner *p = xcalloc(1, sizeof(*p));

	*p = (struct planner){.clock = clock, .store = store, .next_slot = USEC_NEVER};
	return p;
}

void planner_free(struct planner *p)
{
	if (!p)
		return;
	cache_clear(&p->cache);
	free(p);
}

void planner_slot_is(struct planner *p, usec_t next_slot)
{
	p->next_slot = next_slot;
}

void planner_stop(struct planner *p)
{
	p->stopped = true;
}

static void on_planned(struct op *op, void *arg)
{
	struct planner *p = arg;

	p->planning = false;
	if (!op->ok) {
		p->not_before = clock_now(p->clock) + RETRY_DELAY;
		log_warning("could not plan due jobs, trying again in 1s: %s", op->err.msg);
	}
	op_free(op);
}

usec_t planner_pump(struct planner *p)
{
	usec_t now = clock_now(p->clock), at;
	struct op *op;

	if (p->stopped || p->planning || p->next_slot == USEC_NEVER)
		return USEC_NEVER;
	at = p->next_slot - PLANNER_LOOKAHEAD;
	if (at < p->not_before)
		at = p->not_before;
	if (at > now)
		return at;
	op = op_new(OP_PLAN, on_planned, p);
	op->plan = (struct op_plan){.now = now, .horizon = now + PLANNER_LOOKAHEAD, .limit = PLAN_LIMIT,
		.fn = advance, .fn_arg = p};
	p->planning = true;
	store_thread_submit(p->store, op);
	return USEC_NEVER;
}
