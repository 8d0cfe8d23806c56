/* SPDX-License-Identifier: Apache-2.0 */
/* Disturbances of a simulation: crashes, suspend, changed limits, pauses, triggers, cancellations. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/pause.h"
#include "daemon/schedule/schedule_cache.h"
#include "sim/life.h"
#include "store/limit.h"
#include "store/lists.h"
#include "store/ops/job/job_cancel.h"
#include "store/ops/job/pauses.h"
#include "store/ops/job/resume.h"
#include "store/ops/limits.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/run_cancel.h"
#include "store/ops/run/triggers.h"
#include "store/read/list/list_runs.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdlib.h>

static struct life_job *any_job(struct life *l)
{
	return &l->jobs[life_between(l, 0, (int64_t)l->n_jobs - 1)];
}

/* ---- the machine ---- */

static usec_t time_away(struct life *l)
{
	const usec_t most[] = {USEC_MIN, USEC_HOUR, 6 * USEC_HOUR, l->o.span / 8};

	return life_duration(l, 10 * USEC_MSEC, most[life_between(l, 0, 3)]);
}

static void crash(struct life *l)
{
	life_say(l, "down", "\"how\":\"crash\"");
	life_engine_gone(l);
	l->up_at = l->now + time_away(l);
}

static void reboot(struct life *l)
{
	life_say(l, "down", "\"how\":\"reboot\"");
	life_engine_gone(l);
	life_spawner_new(l);
	l->up_at = l->now + time_away(l);
}

static void stop(struct life *l)
{
	AUTO(op) *op = op_new(OP_NODE_CLOSE, NULL, NULL);

	op_fill(node_close_op(op), .node = l->node, .now = l->now);
	life_apply_one(l, op);
	life_say(l, "down", "\"how\":\"stop\"");
	life_engine_gone(l);
	l->up_at = l->now + time_away(l);
}

static void fall_asleep(struct life *l)
{
	l->asleep_until = l->now + time_away(l);
	life_say(l, "sleep", "\"until\":%" PRId64, l->asleep_until);
}

/* ---- limits ---- */

static void say_limit(struct life *l, const struct op_limit *o)
{
	life_say(l, "limit", "\"scope\":\"%s\",\"key\":\"%s\",\"running\":%" PRId64 ",\"n\":%" PRId64 ",\"per\":%" PRId64
		",\"burst\":%" PRId64 ",\"weight\":%" PRId64, o->scope == LIMIT_QUEUE ? "queue" : "owner", o->key, o->running, o->rate.n, o->rate.per,
		o->rate.burst, o->weight);
}

static void set_limit(struct life *l, enum limit_scope scope, const char *key, int64_t running, struct rate rate)
{
	AUTO(op) *op = op_new(OP_LIMIT_SET, NULL, NULL);

	op_fill(limit_op(op), .scope = scope, .key = key, .running_given = true, .running = running,
		.weight_given = true, .weight = life_between(l, 1, 300), .rate_given = true, .rate = rate);
	if (!life_apply_one(l, op)) {
		fprintf(stderr, "limit: %s\n", op->err.msg);
		abort();
	}
	say_limit(l, limit_op(op));
}

static const char *const queue_names[QUEUES] = {"default", "bulk", "slow", "night"};

/* Scales limits with the number of jobs. Limits should delay runs, but not block all of them for months. */
static int64_t limit_scale(const struct life *l)
{
	return 1 + l->o.jobs / 200;
}

static struct rate any_rate(struct life *l)
{
	struct rate r = {};

	if (life_chance(l, 70))
		return r;
	r.n = life_between(l, 1, 30) * limit_scale(l);
	r.per = life_between(l, 1, 60) * USEC_MIN;
	r.burst = life_between(l, 1, 40);
	return r;
}

static void limit_queue(struct life *l)
{
	set_limit(l, LIMIT_QUEUE, queue_names[life_between(l, 0, QUEUES - 1)],
		life_chance(l, 30) ? 0 : life_between(l, 1, 20 * limit_scale(l)), any_rate(l));
}

static void limit_owner(struct life *l)
{
	AUTO_TEXT uid = xprintf("%" PRId64, 1000 + life_between(l, 0, OWNERS - 1));

	set_limit(l, LIMIT_OWNER, uid, life_chance(l, 30) ? 0 : life_between(l, 1, 20 * limit_scale(l)), any_rate(l));
}

static void limit_node(struct life *l)
{
	l->room_max = (size_t)life_between(l, 2, 60 * limit_scale(l));
	l->owner_max = life_chance(l, 70) ? 0 : (size_t)life_between(l, 1, 30 * limit_scale(l));
	life_say(l, "node", "\"room\":%zu,\"owner_max\":%zu", l->room_max, l->owner_max);
}

/* Sets the load of the machine. Jobs with a load condition wait while it is high. */
static void load(struct life *l)
{
	l->machine.thousandths[MACHINE_LOAD] = life_between(l, 0, 8) * 1000;
	life_say(l, "load", "\"load\":%" PRId64, l->machine.thousandths[MACHINE_LOAD]);
}

/* ---- user actions ---- */

static void cancel_run(struct life *l)
{
	struct run_filter f = {.uid = -1, .states = 1 << RUN_QUEUED | 1 << RUN_CLAIMED | 1 << RUN_RUNNING, .limit = 20};
	struct run_list open = {};
	AUTO(op) *op = op_new(OP_RUN_CANCEL, NULL, NULL);
	struct err e = {};

	if (!list_runs_page(l->store, &f, &open, &e))
		abort();
	if (open.n) {
		op_fill(run_cancel_op(op), .uid = -1,
			.id = open.v[life_between(l, 0, (int64_t)open.n - 1)]->id, .now = l->now);
		life_say(l, "cancel", "\"run\":%" PRId64, run_cancel_op(op)->id);
		if (life_apply_one(l, op))
			life_cancel_worker(l, run_cancel_op(op)->id, run_cancel_op(op)->run->fence);
	}
	run_list_done(&open);
}

static void cancel_job(struct life *l)
{
	struct life_job *j = any_job(l);
	AUTO(op) *op = op_new(OP_JOB_CANCEL, NULL, NULL);

	if (j->over || !life_chance(l, 20))
		return;
	op_fill(job_cancel_op(op), .uid = -1, .id = j->id, .running = life_chance(l, 50), .now = l->now);
	if (!life_apply_one(l, op))
		return;
	j->over = true;
	life_say(l, "jobcancel", "\"job\":%" PRId64 ",\"running\":%d", j->id, job_cancel_op(op)->running);
	for (size_t i = 0; job_cancel_op(op)->running && i < job_cancel_op(op)->open.n; i++)
		life_cancel_worker(l, job_cancel_op(op)->open.v[i]->id, job_cancel_op(op)->open.v[i]->fence);
}

/* ---- pauses ---- */

static const char *const tags[] = {"team=t0", "team=t1", "team=t2"};

/* Returns a random key of a scope. The caller frees it. */
static char *any_key(struct life *l, enum pause_scope scope)
{
	switch (scope) {
	case PAUSE_QUEUE:
		return xstrdup(queue_names[life_between(l, 0, QUEUES - 1)]);
	case PAUSE_OWNER:
		return xprintf("%" PRId64, 1000 + life_between(l, 0, OWNERS - 1));
	case PAUSE_TAG:
		return xstrdup(tags[life_between(l, 0, 2)]);
	default:
		return xstrdup("");
	}
}

/* A pause of an owner applies to the jobs of that uid. */
static int64_t uid_of(enum pause_scope scope, const char *key)
{
	return scope == PAUSE_OWNER ? atoll(key) : -1;
}

static void pause_what(struct life *l, enum pause_scope scope, int64_t job)
{
	AUTO_TEXT key = any_key(l, scope);
	AUTO(op) *op = op_new(OP_PAUSE, NULL, NULL);
	struct pause_order *p = &pause_op(op)->pause;

	pause_op(op)->uid = -1;
	pause_op(op)->job = job;
	*p = (struct pause_order){.scope = scope, .key = key, .uid = uid_of(scope, key), .by_uid = 0, .by_name = (char *)"root", .at = l->now,
		.spared = (char *)(scope == PAUSE_FREEZE && life_chance(l, 50) ? tags[life_between(l, 0, 2)] : "")};
	if (life_chance(l, 85))
		p->until = l->now + life_duration(l, USEC_SEC, 6 * USEC_HOUR);
	if (life_apply_one(l, op))
		life_say(l, "pause", "\"scope\":\"%s\",\"key\":\"%s\",\"uid\":%" PRId64 ",\"spared\":\"%s\",\"until\":%" PRId64
			",\"job\":%" PRId64, pause_scope_name(scope), key, p->uid, p->spared, p->until, job);
}

static void pause_job(struct life *l)
{
	pause_what(l, PAUSE_JOB, any_job(l)->id);
}

static void pause_some(struct life *l)
{
	pause_what(l, (enum pause_scope)life_between(l, PAUSE_ALL, PAUSE_FREEZE), 0);
}

static void resume_what(struct life *l, enum pause_scope scope, const char *key, int64_t job)
{
	AUTO(op) *op = op_new(OP_RESUME, NULL, NULL);

	op_fill(resume_op(op), .uid = -1, .job = job, .scope = scope, .key = key, .of_uid = uid_of(scope, key), .now = l->now,
		.fn = schedule_cache_plan, .fn_arg = l->schedule_cache);
	if (life_apply_one(l, op))
		life_say(l, "resume", "\"scope\":\"%s\",\"key\":\"%s\",\"uid\":%" PRId64 ",\"job\":%" PRId64,
			pause_scope_name(scope), key, resume_op(op)->of_uid, job);
}

/* A cancelled job is not resumed, because judge_life.py does not model reactivation. */
static void resume_job(struct life *l, const struct life_job *j)
{
	if (!j->over)
		resume_what(l, PAUSE_JOB, "", j->id);
}

static void resume_some(struct life *l)
{
	for (int i = PAUSE_ALL; i <= PAUSE_FREEZE; i++) {
		AUTO_TEXT key = any_key(l, (enum pause_scope)i);

		if (life_chance(l, 50))
			resume_what(l, (enum pause_scope)i, key, 0);
	}
	for (size_t i = 0; i < (l->n_jobs < 40 ? l->n_jobs : 40); i++)
		if (life_chance(l, 30))
			resume_job(l, any_job(l));
}

static void resume_all(struct life *l)
{
	resume_what(l, PAUSE_ALL, "", 0);
	resume_what(l, PAUSE_FREEZE, "", 0);
	for (size_t i = 0; i < QUEUES; i++)
		resume_what(l, PAUSE_QUEUE, queue_names[i], 0);
	for (int i = 0; i < OWNERS; i++) {
		AUTO_TEXT uid = xprintf("%d", 1000 + i);

		resume_what(l, PAUSE_OWNER, uid, 0);
	}
	for (size_t i = 0; i < ELEMENTS(tags); i++)
		resume_what(l, PAUSE_TAG, tags[i], 0);
	for (size_t i = 0; i < l->n_jobs; i++)
		resume_job(l, &l->jobs[i]);
}

/* ---- triggers ---- */

static void trigger(struct life *l)
{
	struct life_job *j = any_job(l);
	AUTO(op) *op = op_new(OP_TRIGGER, NULL, NULL);
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	job_spec_init(&spec);
	if (j->over || !spec_json_from_text(j->spec, &spec, &e))
		return;
	op_fill(trigger_op(op), .uid = -1, .job = j->id, .revision = j->revision, .tags = &spec.tags,
		.forced = life_chance(l, 30), .now = l->now);
	policy_start_of(&spec, &trigger_op(op)->policy);
	if (life_apply_one(l, op))
		life_say(l, "trigger", "\"job\":%" PRId64 ",\"run\":%" PRId64 ",\"forced\":%d", j->id,
			trigger_op(op)->run->id, trigger_op(op)->forced);
}

static void change_job(struct life *l)
{
	struct life_job *j = any_job(l);

	if (!j->over && l->now < l->end - USEC_DAY / 4)
		life_change_job(l, j);
}

/* The change happens between the planning of a slot and the slot. */
void life_change_planned(struct life *l)
{
	struct run_filter f = {.uid = -1, .states = 1 << RUN_QUEUED, .limit = 20};
	struct run_list planned = {};
	struct life_job *j = NULL;
	struct err e = {};

	if (!list_runs_page(l->store, &f, &planned, &e))
		abort();
	for (size_t i = 0; i < planned.n; i++)
		if (planned.v[i]->slot > l->now)
			j = life_job_of(l, planned.v[i]->job);
	run_list_done(&planned);
	if (!j || j->over || l->now > l->end - USEC_DAY / 4)
		return;
	if (life_chance(l, 70))
		life_change_job(l, j);
	else
		pause_what(l, PAUSE_JOB, j->id);
}

static void add_some(struct life *l)
{
	if (l->now < l->end - USEC_DAY)
		life_add_jobs(l, 1);
}

static const struct accident {
	void (*happen)(struct life *l);
	int weight;
} accidents[] = {
	{crash, 14},
	{reboot, 6},
	{stop, 8},
	{fall_asleep, 8},
	{limit_queue, 10},
	{limit_owner, 8},
	{limit_node, 4},
	{load, 10},
	{pause_job, 10},
	{pause_some, 6},
	{resume_some, 10},
	{trigger, 12},
	{cancel_run, 8},
	{cancel_job, 5},
	{change_job, 14},
	{add_some, 4},
};

void life_accident(struct life *l)
{
	int64_t all = 0, at;

	for (size_t i = 0; i < ELEMENTS(accidents); i++)
		all += accidents[i].weight;
	at = life_between(l, 0, all - 1);
	for (size_t i = 0; i < ELEMENTS(accidents); i++) {
		at -= accidents[i].weight;
		if (at < 0) {
			accidents[i].happen(l);
			return;
		}
	}
}

void life_clear_limits(struct life *l)
{
	l->machine.thousandths[MACHINE_LOAD] = 0;
	life_say(l, "load", "\"load\":0");
	resume_all(l);
	for (size_t i = 0; i < QUEUES; i++)
		set_limit(l, LIMIT_QUEUE, queue_names[i], 0, (struct rate){});
	for (int i = 0; i < OWNERS; i++) {
		AUTO_TEXT uid = xprintf("%d", 1000 + i);

		set_limit(l, LIMIT_OWNER, uid, 0, (struct rate){});
	}
}
