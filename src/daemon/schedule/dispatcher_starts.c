/* SPDX-License-Identifier: Apache-2.0 */
/* Starts claimed runs through the spawner. */
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/decide/judge.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/store_thread.h"
#include "daemon/loop/warrants.h"
#include "daemon/metrics/metrics.h"
#include "daemon/schedule/chain_start.h"
#include "daemon/schedule/dispatcher_private.h"
#include "daemon/schedule/long_runs.h"
#include "daemon/schedule/spec_cache.h"
#include "daemon/schedule/state_transfer.h"
#include "store/ops/op.h"
#include "store/ops/run/runs.h"
#include "store/store.h"
#include "wire/params_json.h"
#include <inttypes.h>

/* A run that ends within this time is written once, at its end. */
#define STARTED_DELAY (20 * USEC_MSEC)
#define CALL_STARTED_DELAY (250 * USEC_MSEC) /* most targets answer a call earlier */
#define STARTED_PAUSE (10 * USEC_MSEC)       /* between two scans of all runs */
#define SPAWN_RETRY_MIN (100 * USEC_MSEC)
#define SPAWN_RETRY_MAX (30 * USEC_SEC)
/* After the spawner refused because the lease has expired. */
#define LEASE_RETRY_DELAY (100 * USEC_MSEC)
/* After the directory of a run could not be filled. */
#define STATE_RETRY_DELAY (5 * USEC_SEC)

/*
 * Doubles with every failure in a row, with jitter, so that a machine without free memory or
 * processes recovers.
 */
static usec_t start_backoff(struct dispatcher *d)
{
	uint32_t random;
	usec_t delay = SPAWN_RETRY_MIN << (d->start_failures < 9 ? d->start_failures : 9);

	d->start_failures++;
	io_random(&random, sizeof(random));
	if (delay > SPAWN_RETRY_MAX)
		delay = SPAWN_RETRY_MAX;
	return delay / 2 + random % (delay / 2);
}

void dispatcher_state_filled(struct dispatcher *d, struct active_run *a, const struct err *why)
{
	if (a->stage != ACTIVE_RUN_FETCHING)
		return;
	active_runs_set_stage(&d->active_runs, a, ACTIVE_RUN_STARTING);
	a->state_ready = !why;
	if (why && why->kind != ERR_BUSY)
		dispatcher_end_unstarted(d, a, ATTEMPT_NOT_STARTED, why->msg);
	else if (why)
		dispatcher_give_back(d, a, STATE_RETRY_DELAY);
	else if (spawner_link_ready(d->o.spawner) && !d->stopped && d->o.trusted(d->o.arg))
		dispatcher_start_run(d, a);
	else
		dispatcher_give_back(d, a, 0);
}

void dispatcher_end_unstarted(struct dispatcher *d, struct active_run *a,
	enum attempt_outcome outcome, const char *why)
{
	a->end.outcome = outcome;
	a->end.error = xstrdup(why);
	a->end.started_at = a->end.ended_at = clock_now(d->o.clock);
	dispatcher_end_run(d, a);
}

void dispatcher_start_run(struct dispatcher *d, struct active_run *a)
{
	AUTO_TEXT spec_text = STEAL(a->spec);
	const struct job_spec *spec = NULL;
	struct job_spec approved;
	AUTO_DONE(strv) params = {};
	AUTO_TEXT warrant = NULL;
	AUTO_TEXT trigger = NULL;
	AUTO_DONE(strv) trace = {};
	AUTO_DONE(start_plan) plan = {};
	usec_t now = clock_now(d->o.clock), timeout;
	AUTO_FD tree = -1;
	struct err e = {};

	if (!(spec = spec_cache_get(d->specs, spec_text, &e)) ||
		!params_json_run_from_text(a->run->params, &params, &warrant, &trigger, &e)) {
		err_wrap(&e, "the stored definition cannot be read");
		goto not_started;
	}
	policy_retry_of(spec, &a->retry);
	a->deadline = spec->deadline ? a->run->slot + spec->deadline : 0;
	a->expires = spec->expires ? a->run->slot + spec->expires : 0;
	dispatcher_trace_run(d, a, spec, trigger);
	a->outlives_lease = active_run_outlives_lease(spec);
	a->checkpoint = spec->checkpoint;
	a->state_size = spec->state_size;
	if (!judge_time_left(&a->retry, a->run->first_start, spec->timeout, now, &timeout)) {
		dispatcher_end_unstarted(d, a, ATTEMPT_TIMED_OUT,
			"the time of the run was over before it could start");
		return;
	}
	if (call_kind_of(spec) != CALL_NONE) {
		if (dispatcher_call_start(d, a, &(struct dispatcher_call){spec, &params, trigger, timeout}, &e))
			return;
		goto not_started;
	}
	if (a->state_size && a->run->attempt > 1 && !a->state_ready) {
		a->spec = STEAL(spec_text);
		active_runs_set_stage(&d->active_runs, a, ACTIVE_RUN_FETCHING);
		state_transfer_fill(d->states, a);
		return;
	}
	if (spec->artifact && a->tree < 0) {
		if (!dispatcher_artifact_get(d, a, spec, &e))
			goto not_started;
		a->spec = STEAL(spec_text);
		return;
	}
	if (warrant) { /* a triggered run with parameters has its own warrant */
		approved = *spec;
		approved.warrant = warrant;
		spec = &approved;
	}
	tree = STEAL_FD(a->tree);
	dispatcher_trace_vars(d, a, spec, trigger, &trace);
	start_plan_build(&plan, &(struct start_plan_source){.run = a->run,
					.spec = spec,
					.node = d->o.node_name,
					.store_id = store_thread_store_id(d->o.store),
					.trace = &trace,
					.params = &params});
	strv_done(&a->params);
	strv_copy(&a->params, &plan.spec.params);
	chain_start_vars(a->run->params, &plan);
	plan.timeout = timeout;
	warrants_put(&plan, spec->warrant);
	plan.ends_with_lease = !a->outlives_lease;
	plan.tree = tree;
	if (plan.output_limit > d->output_max)
		plan.output_limit = d->output_max;
	if (failpoint_ok(FP_GRANT_SEND, &e) && spawner_link_start(d->o.spawner, &plan, &e))
		return;
	if (e.kind == ERR_BUSY) {
		dispatcher_give_back(d, a, start_backoff(d));
		return;
	}
not_started:
	dispatcher_end_unstarted(d, a, ATTEMPT_NOT_STARTED, e.msg);
}

/* ---- failed starts ---- */

/*
 * The run keeps its due time, and any node may claim it. This node claims again after the next
 * renewal.
 */
static void give_back_for_lease(struct dispatcher *d, struct active_run *a)
{
	dispatcher_give_back(d, a, 0);
	dispatcher_retry_in(d, LEASE_RETRY_DELAY);
	d->o.on_fenced(d->o.arg);
}

void dispatcher_report_not_started(struct dispatcher *d, const struct spawn_report *r)
{
	struct active_run *a = active_runs_get(&d->active_runs, r->run, r->fence);

	if (!a || a->stage == ACTIVE_RUN_ENDED)
		return;
	if (r->reason == START_LEASE && !a->run->cancel_asked) {
		give_back_for_lease(d, a);
		return;
	}
	if (r->reason == START_STOPPING && !a->run->cancel_asked) {
		/* a start that it does not read before it ends would be lost */
		d->spawner_stopping = true;
		dispatcher_give_back(d, a, 0);
		return;
	}
	if (r->transient && !a->run->cancel_asked) {
		usec_t delay = start_backoff(d);

		log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = a->run->job, .run = r->run, .trace = a->trace.id},
			"could not start run %" PRId64 ", trying again in %" PRId64 "ms: %s",
			r->run, delay / USEC_MSEC, r->error ? r->error : "no reason given");
		dispatcher_give_back(d, a, delay);
		return;
	}
	if (start_failure_denies(r->reason))
		a->refused = r->reason;
	dispatcher_end_unstarted(d, a,
		a->run->cancel_asked ? ATTEMPT_CANCELLED
		: a->refused	     ? ATTEMPT_DENIED
				     : ATTEMPT_NOT_STARTED,
		r->error);
}

/* ---- successful starts, recorded after STARTED_DELAY if the run is still running ---- */

static void record_starts_in(struct dispatcher *d, usec_t delay)
{
	uint64_t at = (uint64_t)(clock_boot(&clock_system) + delay), armed = 0;
	int enabled = SD_EVENT_OFF;

	sd_event_source_get_enabled(d->started_timer, &enabled);
	if (enabled != SD_EVENT_OFF && sd_event_source_get_time(d->started_timer, &armed) >= 0 && armed <= at)
		return;
	sd_event_source_set_time(d->started_timer, at);
	sd_event_source_set_enabled(d->started_timer, SD_EVENT_ONESHOT);
}

static void on_start_recorded(struct op *op, void *arg)
{
	struct dispatcher *d = arg;
	struct active_run *a = active_runs_get(
		&d->active_runs, run_started_op(op)->run, run_started_op(op)->fence);

	if (!op->ok && a) {
		a->start_recorded = false;
		if (dispatcher_may_retry(op->err.kind))
			record_starts_in(d, DISPATCHER_RETRY_DELAY);
	}
	if (op->ok && a && a->stage == ACTIVE_RUN_RUNNING)
		run_watch_notify(d->o.run_watch_set, a->run->job, a->run->id, RUN_RUNNING);
	op_free(op);
}

int dispatcher_on_started_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct dispatcher *d = arg;
	struct active_run *a;
	usec_t now = clock_boot(d->o.clock), next = USEC_NEVER;

	(void)source;
	(void)usec;
	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));) {
		struct op *op;

		if (a->stage != ACTIVE_RUN_RUNNING || a->start_recorded)
			continue;
		if (a->record_at > now) {
			next = a->record_at < next ? a->record_at : next;
			continue;
		}
		a->start_recorded = true;
		op = op_new(OP_STARTED, on_start_recorded, d);
		op_fill(run_started_op(op), .node = d->o.node_id,
			.spawner = d->spawners.v[d->spawners.n - 1], .run = a->run->id,
			.fence = a->run->fence, .attempt = a->run->attempt, .pid = a->end.pid,
			.started_at = a->end.started_at, .queue = xstrdup(a->run->queue));
		op->patient = true;
		store_thread_submit(d->o.store, op);
	}
	if (next != USEC_NEVER)
		record_starts_in(d, next - now > STARTED_PAUSE ? next - now : STARTED_PAUSE);
	return 0;
}

void dispatcher_run_started(struct dispatcher *d, struct active_run *a, int64_t pid,
	usec_t started_at)
{
	active_runs_set_stage(&d->active_runs, a, ACTIVE_RUN_RUNNING);
	a->end.pid = pid;
	a->end.started_at = started_at;
	metrics_observe(d->o.metrics, METRIC_LATENESS, 0, started_at - a->run->due_at);
	long_runs_watch(d->long_runs, a);
	a->record_at = clock_boot(d->o.clock) + (a->call ? CALL_STARTED_DELAY : STARTED_DELAY);
	if (!a->start_recorded)
		record_starts_in(d, a->call ? CALL_STARTED_DELAY : STARTED_DELAY);
}
