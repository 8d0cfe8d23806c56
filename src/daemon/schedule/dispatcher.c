/* SPDX-License-Identifier: Apache-2.0 */
/* Claims due runs for this node. */
#include "daemon/schedule/dispatcher.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/crontab/table_job.h"
#include "core/job/job.h"
#include "core/job/result.h"
#include "daemon/artifact/artifact_requests.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/dispatcher_private.h"
#include "daemon/schedule/long_runs.h"
#include "daemon/schedule/progress_recorder.h"
#include "daemon/schedule/spec_cache.h"
#include "daemon/schedule/state_transfer.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-event.h>

/* Runs in one claim. */
#define CLAIM_MAX 512
/* Runs claimed before there is room; more than end during a commit. */
#define HOLD_MAX 32
/* Starts that the spawner has not answered yet; later requests queue behind them. */
#define STARTING_MAX 64
/* Between two claims while the clock is unsure: runs that wait for it stay due. */
#define UNSURE_INTERVAL (100 * USEC_MSEC)
/* Held runs are given back when no run has ended for this long. */
#define HOLD_TIME (200 * USEC_MSEC)

/* ---- giving back runs that did not start ---- */

void dispatcher_submit_later(struct dispatcher *d, struct op *op)
{
	op->next = d->refused;
	d->refused = op;
	dispatcher_retry_in(d, DISPATCHER_RETRY_DELAY);
}

static void on_given_back(struct op *op, void *arg)
{
	struct dispatcher *d = arg;

	if (op->ok || !dispatcher_may_retry(op->err.kind)) {
		d->not_given_back = (struct log_repeat){};
		op_free(op);
		return;
	}
	log_line(log_repeat(&d->not_given_back, clock_boot(d->o.clock)), NULL,
		"could not give back run %" PRId64 ", trying again every second: %s",
		run_give_back_op(op)->run, op->err.msg);
	dispatcher_submit_later(d, op);
}

static void retry_refused(struct dispatcher *d)
{
	struct op *op = STEAL(d->refused), *next;

	for (; op; op = next) {
		next = op->next;
		store_thread_submit(d->o.store, op);
	}
}

/* Without a delay the run keeps its due time, and so its place in the start order. */
void dispatcher_give_back(struct dispatcher *d, struct active_run *a, usec_t delay)
{
	struct op *op = op_new(OP_GIVE_BACK, on_given_back, d);
	usec_t now = clock_now(d->o.clock);

	op_fill(run_give_back_op(op), .node = d->o.node_id, .run = a->run->id,
		.fence = a->run->fence,
		.due_at = delay || !a->run->due_at ? now + delay : a->run->due_at, .now = now);
	active_runs_remove(&d->active_runs, a);
	store_thread_submit(d->o.store, op);
}

static void end_cancelled(struct dispatcher *d, struct active_run *a)
{
	a->run->cancel_asked = true;
	a->end.outcome = ATTEMPT_CANCELLED;
	a->end.ended_at = clock_now(d->o.clock);
	dispatcher_end_run(d, a);
}

/*
 * ---- holding ----
 * A few runs are claimed before there is room. When a run ends, a held run starts at once, without
 * waiting for the commit of another claim.
 */

/*
 * As many as have ended recently. With long jobs that is none, so no due run is withheld from other
 * nodes.
 */
static size_t hold_wanted(const struct dispatcher *d)
{
	size_t n = rate_meter_recent(&d->ends, clock_boot(d->o.clock));

	return n < HOLD_MAX ? n : HOLD_MAX;
}

static bool spawner_accepts_starts(const struct dispatcher *d)
{
	return spawner_link_ready(d->o.spawner) && !d->spawner_stopping;
}

static void start_held(struct dispatcher *d)
{
	while (spawner_accepts_starts(d) && d->o.trusted(d->o.arg) &&
		d->active_runs.active < d->max_running && d->active_runs.starting < STARTING_MAX &&
		d->active_runs.held)
		dispatcher_start_run(d, active_runs_release(&d->active_runs, NULL));
}

static int on_hold_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct dispatcher *d = arg;

	(void)source;
	(void)usec;
	while (d->active_runs.held)
		dispatcher_give_back(d, d->active_runs.first_held, 0);
	return 0;
}

static void hold_run(struct dispatcher *d, struct active_run *a)
{
	active_runs_hold(&d->active_runs, a);
	sd_event_source_set_time_relative(d->hold_timer, (uint64_t)HOLD_TIME);
	sd_event_source_set_enabled(d->hold_timer, SD_EVENT_ONESHOT);
}

static void receive_claimed(struct dispatcher *d, struct claimed *c)
{
	struct active_run *a = active_run_new(STEAL(c->run), ACTIVE_RUN_STARTING);
	int64_t early = (int64_t)(intptr_t)map_take(&d->early_cancels, a->run->id);

	a->spec = STEAL(c->spec);
	a->typical = c->typical;
	active_runs_add(&d->active_runs, a);
	/*
	 * the lease may have expired since the claim, for example while the machine was suspended
	 */
	if (!spawner_accepts_starts(d) || d->stopped || !d->o.trusted(d->o.arg)) {
		dispatcher_give_back(d, a, 0);
		return;
	}
	if (early == a->run->fence)
		end_cancelled(d, a);
	else if (d->active_runs.active > d->max_running || d->active_runs.starting > STARTING_MAX)
		hold_run(d, a);
	else
		dispatcher_start_run(d, a);
}

static void on_claimed(struct op *op, void *arg)
{
	struct dispatcher *d = arg;

	d->claiming = false;
	if (!op->ok && op->err.kind == ERR_FENCED) {
		log_warning("could not claim due runs: %s", op->err.msg);
		dispatcher_retry_in(d, DISPATCHER_RETRY_DELAY);
		d->o.on_fenced(d->o.arg);
	} else if (!op->ok) {
		log_line(log_repeat(&d->not_claimed, clock_boot(d->o.clock)), NULL,
			"could not claim due runs, trying again every second: %s", op->err.msg);
		if (!d->claim_refused.kind)
			d->claim_refused_since = clock_now(d->o.clock);
		d->claim_refused = op->err;
		dispatcher_retry_in(d, DISPATCHER_RETRY_DELAY);
	} else {
		d->claim_refused = (struct err){};
		d->not_claimed = (struct log_repeat){};
		if (claim_op(op)->made_since)
			dispatcher_retry_in(d, UNSURE_INTERVAL);
	}
	for (size_t i = 0; op->ok && i < claim_op(op)->claimed.n; i++)
		receive_claimed(d, &claim_op(op)->claimed.v[i]);
	for (size_t i = 0; op->ok && i < claim_op(op)->settled.n; i++)
		run_watch_notify(d->o.run_watch_set, claim_op(op)->settled.v[i].job,
			claim_op(op)->settled.v[i].run, claim_op(op)->settled.v[i].state);
	for (size_t i = 0; op->ok && i < claim_op(op)->replaced.n; i++)
		dispatcher_cancel(
			d, claim_op(op)->replaced.v[i].run, claim_op(op)->replaced.v[i].fence);
	map_done(&d->early_cancels);
	op_free(op);
}

static size_t room(const struct dispatcher *d)
{
	return d->active_runs.active < d->max_running ? d->max_running - d->active_runs.active : 0;
}

/* How many runs can be handed to the spawner now. */
static size_t startable(const struct dispatcher *d)
{
	size_t n =
		d->active_runs.starting < STARTING_MAX ? STARTING_MAX - d->active_runs.starting : 0;

	return n < room(d) ? n : room(d);
}

/* The job of a crontab, whose slots may belong to another cron daemon. */
static void gate_of_table(const struct job_spec *spec, const struct table_gate *t, struct gate_says *ret)
{
	ret->withheld = t->cron;
	for (size_t i = 0; i < spec->tags.n; i++)
		if (text_starts(spec->tags.v[i], TABLE_TAG_ANACRON "="))
			ret->withheld = t->anacron;
	ret->met &= !t->unknown;
}

/*
 * On the store thread. A spec that cannot be read passes; the start then fails and reports the
 * error.
 */
static void gate_of_spec(const char *text, const struct machine_figures *machine,
	struct gate_says *ret)
{
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	*ret = (struct gate_says){.met = true};
	job_spec_init(&spec);
	if (!spec_json_from_text(text, &spec, &e))
		return;
	ret->met = machine_conditions_hold(machine, &spec.when);
	ret->unknown = !machine_conditions_known(machine, &spec.when);
	if (spec.origin)
		gate_of_table(&spec, &machine->tables, ret);
	if (spec.rate)
		policy_rate_parse(spec.rate, &ret->rate, &e);
}

usec_t dispatcher_pump(struct dispatcher *d)
{
	size_t held = d->active_runs.held, wanted = hold_wanted(d);
	size_t n = startable(d) + (wanted > held ? wanted - held : 0);
	struct op *op;
	usec_t now;

	start_held(d);
	if (d->claiming || d->stopped || !spawner_accepts_starts(d) || n == 0 ||
		d->next_due == USEC_NEVER)
		return USEC_NEVER;
	now = clock_now(d->o.clock);
	if (d->next_due > now || d->not_before > now)
		return d->next_due > d->not_before ? d->next_due : d->not_before;
	op = op_new(OP_CLAIM, on_claimed, d);
	op_fill(claim_op(op), .node = d->o.node_id, .now = now, .made_since = d->made_since,
		.room = n < CLAIM_MAX ? n : CLAIM_MAX, .owner_max = d->owner_max,
		.labels = d->o.labels, .gate = gate_of_spec, .machine = d->machine);
	claim_op(op)->machine.tables = d->tables;
	op->patient = room(d) == 0;
	d->claiming = true;
	store_thread_submit(d->o.store, op);
	return USEC_NEVER;
}

usec_t dispatcher_last_seen(const struct dispatcher *d)
{
	return d->last_seen;
}

void dispatcher_set_next_due(struct dispatcher *d, usec_t next_due)
{
	d->next_due = next_due;
}

void dispatcher_set_made_since(struct dispatcher *d, usec_t made_since)
{
	d->made_since = made_since;
}

void dispatcher_set_max_running(struct dispatcher *d, size_t max_running)
{
	d->max_running = max_running;
}

void dispatcher_set_owner_store(struct dispatcher *d, int64_t bytes)
{
	state_transfers_set_limit(d->states, bytes);
}

void dispatcher_set_output_max(struct dispatcher *d, int64_t bytes)
{
	d->output_max = bytes;
}

void dispatcher_set_owner_max(struct dispatcher *d, size_t owner_max)
{
	d->owner_max = owner_max;
}

void dispatcher_machine(const struct dispatcher *d, struct machine_figures *ret)
{
	*ret = d->machine;
}

void dispatcher_set_tables(struct dispatcher *d, const struct table_gate *t)
{
	d->tables = *t;
}

void dispatcher_set_machine(struct dispatcher *d, const struct machine_figures *m)
{
	d->machine = *m;
}

void dispatcher_retry_in(struct dispatcher *d, usec_t delay)
{
	d->not_before = clock_now(d->o.clock) + delay;
	sd_event_source_set_time_relative(d->retry_timer, (uint64_t)delay);
	sd_event_source_set_enabled(d->retry_timer, SD_EVENT_ONESHOT);
}

static int on_dispatcher_retry(sd_event_source *source, uint64_t usec, void *arg)
{
	struct dispatcher *d = arg;

	(void)source;
	(void)usec;
	dispatcher_retry_ends(d);
	retry_refused(d);
	d->not_before = 0;
	d->o.on_change(d->o.arg);
	return 0;
}

/* ---- the end of a run, as reported by the spawner ---- */

static void copy_report(struct active_run *a, const struct spawn_report *r)
{
	struct attempt *end = &a->end;
	AUTO_TEXT note = NULL;

	end->outcome = r->outcome;
	end->pid = r->pid;
	end->started_at = r->started_at;
	end->ended_at = r->ended_at;
	end->exit_code = r->exit_code;
	end->term_signal = r->term_signal;
	end->cpu_user = r->cpu_user;
	end->cpu_system = r->cpu_system;
	end->max_rss = r->max_rss;
	end->io_read = r->io_read;
	end->io_written = r->io_written;
	end->output_bytes = r->output_bytes;
	end->output_dropped = r->output_dropped;
	end->error = xstrdup(r->error);
	/* the spawner ends runs without end request only when it stops */
	a->stopped = r->outcome == ATTEMPT_LOST;
	strv_done(&a->results);
	if (r->results) /* the spawner has left out lines that are not valid */
		results_parse(r->results, strlen(r->results), &a->results, &note);
}

void dispatcher_count_end(struct dispatcher *d)
{
	rate_meter_count(&d->ends, clock_boot(d->o.clock));
	d->ended++;
	start_held(d);
}

void dispatcher_report_ended(struct dispatcher *d, const struct spawn_report *r)
{
	struct active_run *a = active_runs_get(&d->active_runs, r->run, r->fence);

	if (a && a->stage != ACTIVE_RUN_ENDED) {
		d->start_failures = 0;
		copy_report(a, r);
		progress_recorder_flush(d->progress, a);
		dispatcher_end_run(d, a);
		dispatcher_count_end(d);
	} else if (!a) {
		/*
		 * The end may be recorded already, or the run may belong to another node now, even
		 * if a later attempt is active here. The store decides by run and fence.
		 */
		struct run *run = xcalloc(1, sizeof(*run));

		*run = (struct run){.id = r->run, .fence = r->fence, .attempt = r->attempt};
		a = active_run_new(run, ACTIVE_RUN_ENDED);
		copy_report(a, r);
		dispatcher_end_unknown_run(d, a);
	}
}

/* ---- creation and shutdown ---- */

static bool dispatcher_timer_new(struct sd_event *ev, sd_event_source **ret,
	sd_event_time_handler_t fn, struct dispatcher *d, struct err *e)
{
	int r = sd_event_add_time(ev, ret, CLOCK_BOOTTIME, 0, 1, fn, d);

	if (r < 0 || (r = sd_event_source_set_enabled(*ret, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	return true;
}

bool dispatcher_new(struct sd_event *ev, const struct dispatcher_options *o,
	struct dispatcher **ret, struct err *e)
{
	AUTO(dispatcher) *d = xcalloc(1, sizeof(*d));

	d->o = *o;
	d->machine = MACHINE_UNKNOWN;
	d->next_due = USEC_NEVER;
	d->specs = spec_cache_new();
	dispatcher_artifacts_watch(d);
	dispatcher_calls_watch(d);
	spawner_link_set_client(o->spawner, SPAWNER_LINK_RUNS, dispatcher_on_report, d);
	if (!dispatcher_timer_new(ev, &d->started_timer, dispatcher_on_started_timer, d, e) ||
		!dispatcher_timer_new(ev, &d->hold_timer, on_hold_timer, d, e) ||
		!dispatcher_timer_new(ev, &d->retry_timer, on_dispatcher_retry, d, e) ||
		!long_runs_new(ev, o->clock, o->store, &d->active_runs, &d->long_runs, e) ||
		!progress_recorder_new(ev, o->store, &d->active_runs, &d->progress, e))
		return false;
	d->states = state_transfers_new(ev, d);
	*ret = STEAL(d);
	return true;
}

void dispatcher_free(struct dispatcher *d)
{
	if (!d)
		return;
	while (d->refused) {
		struct op *op = d->refused;

		d->refused = op->next;
		op_free(op);
	}
	sd_event_source_disable_unref(d->started_timer);
	sd_event_source_disable_unref(d->hold_timer);
	sd_event_source_disable_unref(d->retry_timer);
	long_runs_free(d->long_runs);
	progress_recorder_free(d->progress);
	spec_cache_free(d->specs);
	state_transfers_free(d->states);
	active_runs_done(&d->active_runs);
	map_done(&d->early_cancels);
	map_done(&d->disowned);
	free(d->last_spawner);
	strv_done(&d->spawners);
	free(d->host);
	free(d);
}

void dispatcher_stop(struct dispatcher *d)
{
	d->stopped = true;
	dispatcher_artifacts_stop(d);
	while (d->active_runs.held)
		dispatcher_give_back(d, d->active_runs.first_held, 0);
}

void dispatcher_counts(const struct dispatcher *d, struct dispatcher_counts *ret)
{
	*ret = (struct dispatcher_counts){
		.in_flight = d->active_runs.active + d->active_runs.held,
		.room = room(d),
		.owner_max = d->owner_max,
		.spawner_up = spawner_link_ready(d->o.spawner),
		.stopping = d->stopped,
		.due = d->next_due != USEC_NEVER && d->next_due <= clock_now(d->o.clock),
		.unrecorded = d->active_runs.by_run.used - d->active_runs.active - d->active_runs.held,
		.ended = d->ended,
		.refused = d->claim_refused.kind ? d->claim_refused.msg : NULL,
		.refused_since = d->claim_refused_since,
		.calls = dispatcher_calls_refused(d),
		.artifacts = d->o.artifacts ? artifact_requests_busy(d->o.artifacts) : NULL,
	};
}

/*
 * Includes runs whose end is not committed yet: it is committed before the node closes, or the
 * spawner keeps it.
 */
int64_t *dispatcher_held(const struct dispatcher *d, size_t *ret_n)
{
	int64_t *v = xcalloc(d->active_runs.by_run.used + 1, sizeof(*v));
	struct active_run *a;

	*ret_n = 0;
	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));)
		if (a->stage != ACTIVE_RUN_HELD && a->stage != ACTIVE_RUN_FETCHING)
			v[(*ret_n)++] = a->run->id;
	return v;
}

void dispatcher_cancel(struct dispatcher *d, int64_t run, int64_t fence)
{
	struct active_run *a = active_runs_get(&d->active_runs, run, fence);
	bool call = a && a->call && a->stage != ACTIVE_RUN_HELD && a->stage != ACTIVE_RUN_ENDED;

	if (call)
		dispatcher_call_cancel(d, a);
	if (call || (a && (a->stage == ACTIVE_RUN_HELD || a->stage == ACTIVE_RUN_FETCHING))) {
		end_cancelled(d, a);
	} else if (a) {
		a->run->cancel_asked = true;
		if (a->stage != ACTIVE_RUN_ENDED)
			spawner_link_cancel(d->o.spawner, run, fence);
	} else if (d->claiming && fence) {
		/* the claim of this run is in the same batch and is delivered after this call */
		map_put(&d->early_cancels, run, (void *)(intptr_t)fence);
	}
}
