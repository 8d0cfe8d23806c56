/* SPDX-License-Identifier: Apache-2.0 */
/* The planner: asks the store for due slots and advances each job by its compiled schedule. */
#include "daemon/planner.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/job.h"
#include "core/schedule_set.h"
#include "core/slots.h"
#include "core/zone_cache.h"
#include "daemon/store_thread.h"
#include "store/op.h"
#include "wire/codec.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PLAN_LIMIT 2000      /* due rows in one transaction */
#define CACHE_MAX 4096       /* compiled schedules kept */
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define RETRY_DELAY USEC_SEC /* after the store refused */

/* A job's schedule, ready to be asked. */
struct compiled {
	int64_t revision;
	usec_t jitter, until;
	struct start_policy policy;
	struct schedule_set *set;
};

struct planner {
	const struct clock *clock;
	struct store_thread *store;
	usec_t next_slot, not_before;
	bool planning, stopped;
	char boot_id[64];
	atomic_bool forget; /* asked for on the loop, done on the store thread */
	/* touched on the store thread only */
	struct map cache; /* job → struct compiled */
	struct zone_cache *zones;
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

static struct compiled *compile(struct planner *p, const struct due_job *due, struct err *e)
{
	AUTO_TEXT number = xprintf("%" PRId64, due->job);
	AUTO_DONE(job_spec) spec;
	struct schedule_context context;
	struct schedule_set *set;
	struct compiled *c;

	job_spec_init(&spec);
	if (!spec_from_text(due->spec, &spec, e))
		return NULL;
	context = (struct schedule_context){
		.anchor = due->created_at,
		.id = due->name ? due->name : number,
		.gap = (enum dst_gap)spec.dst_gap,
		.fold = (enum dst_fold)spec.dst_fold,
		.from = spec.from,
		.until = spec.until,
		.accepted = true,
	};
	if (!zone_cache_get(p->zones, spec.tz, &context.zone, e) ||
		!schedule_set_parse(&spec.schedule, &context, &set, e))
		return NULL;
	c = xcalloc(1, sizeof(*c));
	*c = (struct compiled){.revision = due->revision, .jitter = spec.jitter, .until = spec.until, .set = set};
	start_policy_of(&spec, &c->policy);
	return c;
}

static void forget_all(struct planner *p)
{
	cache_clear(&p->cache);
	zone_cache_clear(p->zones); /* nobody is left who holds one */
}

static struct compiled *compiled_of(struct planner *p, const struct due_job *due, struct err *e)
{
	struct compiled *c;

	if (atomic_exchange(&p->forget, false))
		forget_all(p);
	c = map_get(&p->cache, due->job);
	if (c && c->revision == due->revision)
		return c;
	compiled_free(map_take(&p->cache, due->job));
	if (p->cache.used >= CACHE_MAX)
		forget_all(p);
	c = compile(p, due, e);
	if (c)
		map_put(&p->cache, due->job, c);
	return c;
}

static bool next_slot(void *arg, usec_t after, usec_t *ret)
{
	const struct compiled *c = arg;

	return schedule_set_next(c->set, after, ret);
}

static bool first_slot(const struct compiled *c, usec_t slot, usec_t *ret)
{
	if (slot_known(slot)) {
		*ret = slot;
		return true;
	}
	return schedule_set_next_after_finish(c->set, slot, slot, ret);
}

/* Without a known slot some jobs still wait for something: the end of their run, or a boot up to a moment. */
static usec_t wait_for(const struct compiled *c, usec_t now, bool planned)
{
	if (planned && schedule_set_follows(c->set))
		return USEC_NEVER;
	if (schedule_set_boots(c->set))
		return slot_boot_wait(c->until, now);
	return schedule_set_kind(c->set) == SCHEDULE_MANUAL ? USEC_NEVER : 0;
}

/* On the store thread, inside the transaction. */
static void advance(const struct due_job *due, usec_t now, usec_t horizon, struct planned *ret, void *arg)
{
	struct planner *p = arg;
	struct slot_plan plan;
	struct err e = {};
	struct compiled *c = compiled_of(p, due, &e);
	usec_t first;

	*ret = (struct planned){};
	if (!c) {
		log_line(LOG_LEVEL_ERROR, &(struct log_about){.job = due->job},
			"suspended job %" PRId64 ", it has no next slot: %s", due->job, e.msg);
		ret->suspend = text_equal(e.field, "tz") ? "bad_zone" : "bad_schedule";
		return;
	}
	if (!first_slot(c, due->slot, &first)) {
		ret->next_slot = wait_for(c, now, false);
		return;
	}
	ret->policy = c->policy;
	slots_plan(next_slot, c, first, now, horizon, &plan);
	_Static_assert(ELEMENTS(ret->runs) >= SLOTS_MAX, "a plan must fit");
	for (size_t i = 0; i < plan.n; i++)
		ret->runs[ret->n++] = (struct planned_run){
			.state = plan.v[i].missed ? RUN_SKIPPED : RUN_QUEUED,
			.slot = plan.v[i].first,
			.slot_last = plan.v[i].last,
			.slot_count = plan.v[i].count,
			.due_at = plan.v[i].first + (plan.v[i].missed ? 0 : io_random_upto(c->jitter)),
			.reason = plan.v[i].missed ? "missed" : NULL,
		};
	ret->next_slot = plan.next ? plan.next : wait_for(c, now, true);
}

struct planner *planner_new(const struct clock *clock, struct store_thread *store)
{
	struct planner *p = xcalloc(1, sizeof(*p));

	*p = (struct planner){.clock = clock, .store = store, .next_slot = USEC_NEVER,
		.zones = zone_cache_new(tzfile_read)};
	return p;
}

void planner_free(struct planner *p)
{
	if (!p)
		return;
	cache_clear(&p->cache);
	zone_cache_free(p->zones);
	free(p);
}

void planner_slot_is(struct planner *p, usec_t next_slot)
{
	p->next_slot = next_slot;
}

static void on_booted(struct op *op, void *arg)
{
	struct planner *p = arg;

	if (!op->ok && op->err.kind != ERR_UNCERTAIN && !p->stopped)
		log_error("could not queue the jobs for boots, they wait for a restart: %s", op->err.msg);
	else if (op->boot.runs)
		log_info("the machine was booted; %zu jobs wait for that", op->boot.runs);
	op_free(op);
}

/* On the store thread, inside the transaction. A spec that cannot be read is the dispatcher's to complain about. */
static bool boot_due(int64_t job, const char *text, usec_t now, usec_t *ret, struct start_policy *ret_policy, void *arg)
{
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	(void)arg;
	*ret = now;
	job_spec_init(&spec);
	if (!spec_from_text(text, &spec, &e))
		return true;
	if (now < spec.from || (spec.until && now > spec.until)) {
		log_line(LOG_LEVEL_INFO, &(struct log_about){.job = job},
			"job %" PRId64 " does not run after this boot, which is outside its bounds", job);
		return false;
	}
	start_policy_of(&spec, ret_policy);
	*ret = now + io_random_upto(spec.jitter);
	return true;
}

void planner_boot(struct planner *p, const char *node_name)
{
	AUTO_DONE(buf) id = {};
	struct op *op;
	int r = io_read_file(BOOT_ID_FILE, &id, 64);

	if (r < 0) {
		log_warning("jobs for boots are not started, '%s' tells nothing: %s", BOOT_ID_FILE, strerror(-r));
		return;
	}
	snprintf(p->boot_id, sizeof(p->boot_id), "%.*s", (int)strcspn(id.data, "\n"), id.data);
	op = op_new(OP_BOOT, on_booted, p);
	op->boot = (struct op_boot){.name = node_name, .boot = p->boot_id, .now = clock_now(p->clock),
		.fn = boot_due};
	store_thread_submit(p->store, op);
}

void planner_forget(struct planner *p)
{
	atomic_store(&p->forget, true);
}

usec_t planner_next_slot(const struct planner *p)
{
	return p->next_slot;
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
	at = p->next_slot - SLOTS_LOOKAHEAD;
	if (p->not_before > now + RETRY_DELAY)
		p->not_before = 0; /* the clock was set back meanwhile */
	if (at < p->not_before)
		at = p->not_before;
	if (at > now)
		return at;
	op = op_new(OP_PLAN, on_planned, p);
	op->plan = (struct op_plan){.now = now, .horizon = now + SLOTS_LOOKAHEAD, .limit = PLAN_LIMIT,
		.fn = advance, .fn_arg = p};
	p->planning = true;
	store_thread_submit(p->store, op);
	return USEC_NEVER;
}
