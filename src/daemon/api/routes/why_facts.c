/* SPDX-License-Identifier: Apache-2.0 */
/* Combines store rows with dispatcher state into reasons. */
#include "daemon/api/routes/why_facts.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/call.h"
#include "core/job/chain.h"
#include "core/job/event.h"
#include "core/job/policy.h"
#include "core/time/schedule_set.h"
#include "core/time/zone_cache.h"
#include "daemon/api/request.h"
#include "daemon/api/server.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/schedule/clock_guard.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/planner.h"
#include "store/lists.h"
#include "store/read/list/list_events.h"
#include "store/read/list/list_runs.h"
#include "store/read/single.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void why_facts_live(const struct request *r, struct why_live *ret)
{
	const struct cluster *c = r->context->cluster;
	struct dispatcher_counts d = {};
	struct spawner_link_health spawner;

	dispatcher_counts(r->context->dispatcher, &d);
	spawner_link_health(r->context->spawner, &spawner);
	*ret = (struct why_live){
		.now = request_now(r),
		.bound = !request_sees_all(r),
		.node_id = r->context->node_id,
		.node = {.stopping = d.stopping,
			.user_mode = r->context->user_mode,
			.spawner_stopped = spawner.stopped,
			.active = (int64_t)d.in_flight,
			.room = (int64_t)d.room,
			.clock = clock_guard_trust(r->context->clock_guard),
			.made_since = clock_guard_made_since(r->context->clock_guard),
			.clock_left = clock_guard_left(r->context->clock_guard)},
		/*
		 * the store counts the runs of an owner on all nodes, so the limit of this node is
		 * not used in a cluster
		 */
		.owner_max = c && cluster_peers(c) > 0 ? 0 : (int64_t)d.owner_max,
	};
	snprintf(ret->node.spawner, sizeof(ret->node.spawner), "%s", spawner.why);
	if (!d.refused)
		d.refused = planner_refused(r->context->planner, &d.refused_since);
	if (d.refused)
		snprintf(ret->node.refused, sizeof(ret->node.refused), "%s", d.refused);
	if (d.calls)
		snprintf(ret->node.calls, sizeof(ret->node.calls), "%s", d.calls);
	if (d.artifacts)
		snprintf(ret->node.artifacts, sizeof(ret->node.artifacts), "%s", d.artifacts);
	dispatcher_machine(r->context->dispatcher, &ret->machine);
}

/* Runs and limits of the queue and of the owner; for the owner also the limit of this node. */
static void fill_shares(const struct why_context *w, const struct why_live *live,
	const struct job *j, struct why_facts *f)
{
	why_context_shares(w, j, live->now, &f->queue, &f->owner);
	if (live->owner_max > 0 && (f->owner.running == 0 || live->owner_max < f->owner.running))
		f->owner.running = live->owner_max;
}

/* ---- lists ---- */

/* The name of an ended job may have been reused, so its number is used. */
static const char *why_job_ref(const struct job *j, char number[24])
{
	snprintf(number, 24, "%" PRId64, j->id);
	return j->name && j->state < JOB_FINISHED ? j->name : number;
}

static void mark(const struct why_reason *why, char **ret_code, char **ret_message)
{
	if (!why_is_wait(why->code))
		return;
	free(*ret_code);
	free(*ret_message);
	*ret_code = xstrdup(why_code_name(why->code));
	*ret_message = xstrdup(why->message);
}

/* The pause of the job itself, if it is in force at 'now'; its texts are borrowed. */
static bool own_pause(const struct job *j, usec_t now, struct pause_order *ret)
{
	bool later = j->state == JOB_ACTIVE && j->pause.later;

	if ((j->state != JOB_PAUSED && j->state != JOB_CANCELLED && !later) || !j->pause.by_name ||
		(j->pause.until && j->pause.until <= now))
		return false;
	*ret = (struct pause_order){.scope = PAUSE_JOB,
		.key = (char *)"",
		.uid = j->uid,
		.by_uid = j->pause.by_uid,
		.by_name = j->pause.by_name,
		.reason = j->state == JOB_PAUSED ? j->reason : j->pause.reason,
		.at = j->pause.at,
		.until = j->pause.until,
		.spared = (char *)"",
		.later = later};
	return pause_begun(ret, now);
}

/*
 * When the next run is due, or now if a run is active. A pause that begins before this time applies
 * to it.
 */
static usec_t next_start(const struct why_facts *f)
{
	usec_t at = !f->run ? f->next_slot : f->run->state == RUN_QUEUED ? f->run->due_at : 0;

	return at > f->now ? at : f->now;
}

/*
 * The pause that keeps the job from starting at 'now' for the longest time. 'own' gets the pause of the job itself. With the
 * same end a freeze is named first, because only administrators can end it, and then the pause of the job.
 */
static const struct pause_order *pause_in_force(const struct pause_list *scopes, const struct pause_target *target,
	const struct job *j, usec_t now, struct pause_order *own)
{
	const struct pause_order *p = pause_longest(scopes, target, now);

	if (!own_pause(j, now, own) || (p && pause_lasts_longer(p, own)) ||
		(p && p->scope == PAUSE_FREEZE && !pause_lasts_longer(own, p)))
		return p;
	return own;
}

/* A run of 'jobctl run --force' is held by a freeze only. */
static const struct pause_order *freeze_in_force(const struct pause_list *scopes, const struct pause_target *target, usec_t now)
{
	const struct pause_order *p = pause_find(scopes, target, now);

	return p && p->scope == PAUSE_FREEZE ? p : NULL;
}

static const struct pause_order *pause_of(const struct why_context *w, const struct job *j,
	usec_t now, struct pause_order *own)
{
	struct pause_target target = {.uid = j->uid, .queue = j->queue};
	const struct pause_order *p;
	struct job_spec spec;

	if (w->pauses.n == 0)
		return own_pause(j, now, own) ? own : NULL;
	job_spec_init(&spec);
	if (j->spec && spec_json_from_text(j->spec, &spec, NULL))
		target.tags = &spec.tags;
	p = pause_in_force(&w->pauses, &target, j, now, own);
	job_spec_done(&spec);
	return p;
}

/* The nodes that the job may run on, by its labels. */
static void fill_nodes(const struct why_context *w, const struct why_live *live,
	const struct job *j, struct why_nodes_text *ret)
{
	struct job_spec spec;

	job_spec_init(&spec);
	if (j->spec && strstr(j->spec, "node_labels") && !spec_json_from_text(j->spec, &spec, NULL))
		job_spec_init(&spec);
	why_context_nodes(w, &spec.node_labels, live->node_id, ret);
	job_spec_done(&spec);
}

void why_facts_mark_job(const struct why_context *w, const struct why_live *live, struct job *j)
{
	struct run run = {.id = j->waiting.id,
		.job = j->id,
		.state = RUN_QUEUED,
		.slot = j->waiting.slot,
		.due_at = j->waiting.due_at,
		.created_at = j->waiting.slot, /* the slot of a run that a user requests is the time of the request */
		.hold = (enum run_hold)j->waiting.hold,
		.attempt = j->waiting.attempt,
		.reason = j->waiting.reason};
	struct why_facts f = {.now = live->now,
		.state = j->state,
		.state_reason = j->reason,
		.next_slot = j->next_slot,
		.owner_number = j->uid,
		.bound = live->bound,
		.node = live->node,
		.run = run.id ? &run : NULL};
	AUTO_DONE(why_nodes_text) nodes = {};
	struct pause_order own;
	struct why_reason why;
	char number[24];

	if (j->state > JOB_PAUSED && !run.id)
		return;
	fill_nodes(w, live, j, &nodes);
	f.nodes = nodes.facts;
	f.ref = why_job_ref(j, number);
	f.rated = j->spec && (strstr(j->spec, "\"rate\"") || strstr(j->spec, "\"when\""));
	f.artifact = j->spec && strstr(j->spec, "\"artifact\"");
	f.call = j->spec && (strstr(j->spec, "\"http\"") || strstr(j->spec, "\"kafka\"") || strstr(j->spec, "\"lambda\""));
	f.pause = pause_of(w, j, live->now, &own);
	if (!f.pause)
		f.pause = pause_of(w, j, next_start(&f), &own);
	fill_shares(w, live, j, &f);
	why_now(&f, &why);
	mark(&why, &j->waiting_code, &j->waiting_message);
}

static void mark_run(const struct why_context *w, const struct why_live *live, struct run *r)
{
	struct job job = {.id = r->job,
		.uid = r->uid,
		.owner = r->owner,
		.queue = r->queue,
		.name = r->job_name};
	struct why_facts f = {.now = live->now,
		.owner_number = r->uid,
		.bound = live->bound,
		.node = live->node,
		.run = r};
	AUTO_DONE(why_nodes_text) nodes = {};
	struct pause_order own;
	struct why_reason why;
	char number[24];

	if (r->state != RUN_QUEUED || !r->owner)
		return;
	fill_nodes(w, live, &job, &nodes);
	f.nodes = nodes.facts;
	f.ref = why_job_ref(&job, number);
	f.pause = pause_of(w, &job, live->now, &own);
	fill_shares(w, live, &job, &f);
	why_now(&f, &why);
	mark(&why, &r->waiting_code, &r->waiting_message);
}

bool why_facts_mark_runs(struct store *s, const struct why_live *live, struct run *const *v,
	size_t n, struct err *e)
{
	AUTO_DONE(why_context) world = {};
	size_t queued = 0;

	for (size_t i = 0; i < n; i++)
		queued += v[i]->state == RUN_QUEUED;
	if (queued == 0)
		return true;
	if (!why_context_read(s, &world, e))
		return false;
	for (size_t i = 0; i < n; i++)
		mark_run(&world, live, v[i]);
	return true;
}

/* ---- one job ---- */

void why_facts_job_done(struct why_facts_job *l)
{
	why_context_done(&l->world);
	why_job_done(&l->job);
	run_free(l->open);
	free(l->error);
	event_list_done(&l->ended);
	job_spec_done(&l->spec);
	schedule_set_free(l->set);
}

static void read_job_schedule(const struct job *j, struct zone_cache *zones,
	struct why_facts_job *l)
{
	struct schedule_context c;
	char number[24];

	if (!spec_json_from_text(j->spec, &l->spec, NULL))
		return;
	c = (struct schedule_context){.anchor = j->created_at,
		.id = why_job_ref(j, number),
		.gap = (enum dst_gap)l->spec.dst_gap,
		.fold = (enum dst_fold)l->spec.dst_fold,
		.from = l->spec.from,
		.until = l->spec.until,
		.accepted = true};
	if (!zone_cache_get(zones, l->spec.tz, &c.zone, NULL) ||
		!schedule_set_parse(&l->spec.schedule, &c, &l->set, NULL))
		l->set = NULL;
}

/*
 * The run to explain: a waiting run that is due, held or retried has precedence over an active one.
 */
static bool read_open_run(struct store *s, const struct job *j, usec_t now, struct run **ret,
	struct err *e)
{
	struct run_filter f = {.uid = -1,
		.job = j->id,
		.states = 1u << RUN_CLAIMED | 1u << RUN_RUNNING,
		.limit = 1};
	AUTO_DONE(run_list) going = {};
	AUTO(run) *waiting = NULL;

	if ((j->waiting.id && !store_run_get(s, -1, j->waiting.id, &waiting, e)) ||
		!list_runs_page(s, &f, &going, e))
		return false;
	if (waiting && waiting->state != RUN_QUEUED)
		run_free(STEAL(waiting));
	if (going.n > 0 &&
		(!waiting || (waiting->due_at > now && waiting->attempt == 0 && !waiting->reason)))
		*ret = STEAL(going.v[0]);
	else
		*ret = STEAL(waiting);
	return true;
}

bool why_facts_last_error(struct store *s, const struct run *r, char **ret, struct err *e)
{
	AUTO_DONE(attempt_list) all = {};

	*ret = NULL;
	if (r->attempt == 0 || r->state == RUN_SUCCEEDED)
		return true;
	if (!store_attempts(s, r->id, &all, e))
		return false;
	if (all.n > 0)
		*ret = xstrdup(all.v[all.n - 1]->error);
	return true;
}

static bool read_end_event(struct store *s, const struct job *j, struct event_list *ret,
	struct err *e)
{
	struct event_filter f = {.uid = -1, .jobs = &j->id, .n_jobs = 1, .limit = 1};

	f.whats = UINT64_C(1) << (j->state == JOB_REMOVED ? EVENT_JOB_REMOVE : EVENT_JOB_CANCEL);
	return (j->state != JOB_CANCELLED && j->state != JOB_REMOVED) ||
	       list_events_page(s, &f, ret, e);
}

/* Describes the first condition that is not met. */
static void unmet_words(const struct strv *when, const struct machine_figures *m, struct buf *out)
{
	for (size_t i = 0; i < when->n && !out->len; i++) {
		struct gate g;

		if (!policy_condition_parse(when->v[i], &g, NULL))
			continue;
		if (m->thousandths[g.figure] < 0)
			buf_printf(out, "%s is not known, and must be below %g",
				policy_machine_figure_name(g.figure), (double)g.below / 1000);
		else if (m->thousandths[g.figure] >= g.below)
			buf_printf(out, "%s is %g, and must be below %g",
				policy_machine_figure_name(g.figure),
				(double)m->thousandths[g.figure] / 1000, (double)g.below / 1000);
	}
}

static usec_t last_start(const struct run *r, const struct start_policy *p)
{
	usec_t deadline = p->deadline && r->attempt == 0 ? r->slot + p->deadline : 0;
	usec_t expires = p->expires ? r->slot + p->expires : 0;

	if (!deadline || !expires)
		return deadline ? deadline : expires;
	return deadline < expires ? deadline : expires;
}

static usec_t rate_at(const struct job_spec *spec, usec_t bucket, usec_t now)
{
	struct rate rate;
	usec_t again = 0;

	if (!spec->rate || !policy_rate_parse(spec->rate, &rate, NULL) ||
		policy_rate_take(&rate, now, &bucket, &again))
		return 0;
	return again;
}

/* The beginning of the first future pause that applies to the job; USEC_NEVER: none. */
static usec_t pause_to_come(const struct job *j, const struct why_facts_job *l, usec_t now)
{
	struct pause_target target = {.uid = j->uid, .queue = j->queue, .tags = &l->spec.tags};
	usec_t first = j->state == JOB_ACTIVE && j->pause.later && j->pause.at > now ? j->pause.at
										     : USEC_NEVER;

	for (size_t i = 0; i < l->world.pauses.n; i++) {
		const struct pause_order *p = &l->world.pauses.v[i];

		if (p->later && p->at > now && p->at < first && pause_covers(p, &target, p->at))
			first = p->at;
	}
	return first;
}

static void decide_job_reasons(const struct why_live *live, const struct job *j,
	struct why_facts_job *l)
{
	struct pause_target target = {.uid = j->uid, .queue = j->queue, .tags = &l->spec.tags};
	struct why_facts f = {.now = live->now,
		.state = j->state,
		.state_reason = j->reason,
		.next_slot = j->next_slot,
		.owner_number = j->uid,
		.bound = live->bound,
		.node = live->node,
		.run = l->open,
		.holder = l->job.holder,
		.taken = l->job.taken,
		.ended = l->ended.n ? l->ended.v[0] : NULL,
		.error = l->error};
	AUTO_DONE(buf) unmet = {}, after = {};
	AUTO_DONE(why_nodes_text) nodes = {};
	struct start_policy policy;
	struct pause_order own;
	char number[24];

	policy_start_of(&l->spec, &policy);
	unmet_words(&l->spec.when, &live->machine, &unmet);
	chain_explain(&l->spec.after, l->spec.after_mode, &after);
	f.ref = why_job_ref(j, number);
	f.permits = policy.permits;
	f.unmet = unmet.len ? unmet.data : NULL;
	f.after = after.len ? after.data : NULL;
	f.artifact = l->spec.artifact != NULL;
	f.call = call_kind_of(&l->spec) != CALL_NONE;
	f.rated = l->spec.rate || l->spec.when.n > 0;
	f.rate_at = rate_at(&l->spec, l->job.bucket, live->now);
	f.last_start = l->open ? last_start(l->open, &policy) : 0;
	f.pause = pause_in_force(&l->world.pauses, &target, j, live->now, &own);
	if (!f.pause)
		f.pause = pause_in_force(&l->world.pauses, &target, j, next_start(&f), &own);
	l->pause_from = pause_to_come(j, l, live->now);
	if (l->open && l->open->forced)
		f.pause = freeze_in_force(&l->world.pauses, &target, live->now);
	l->pause_until = f.pause ? f.pause->until ? f.pause->until : USEC_NEVER : 0;
	if (l->set) {
		f.manual = schedule_set_kind(l->set) == SCHEDULE_MANUAL;
		f.boots = schedule_set_boots(l->set);
		f.follows = schedule_set_follows(l->set);
	}
	why_context_nodes(&l->world, &l->spec.node_labels, live->node_id, &nodes);
	f.nodes = nodes.facts;
	fill_shares(&l->world, live, j, &f);
	why_now(&f, &l->now);
	why_held(&f, &l->held);
}

bool why_facts_read(struct store *s, const struct why_live *live, struct zone_cache *zones,
	const struct job *j, struct why_facts_job *ret, struct err *e)
{
	AUTO_DONE(why_facts_job) l = {};

	job_spec_init(&l.spec);
	read_job_schedule(j, zones, &l);
	if (!why_context_read(s, &l.world, e) || !why_job_read(s, j, &l.job, e) ||
		!read_open_run(s, j, live->now, &l.open, e) || !read_end_event(s, j, &l.ended, e) ||
		(l.open && !why_facts_last_error(s, l.open, &l.error, e)))
		return false;
	decide_job_reasons(live, j, &l);
	*ret = l;
	l = (struct why_facts_job){};
	return true;
}
