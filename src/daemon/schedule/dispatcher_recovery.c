/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over the runs of earlier daemons when the spawner is connected. */
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/params.h"
#include "daemon/loop/exit_status.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/dispatcher_private.h"
#include "daemon/schedule/progress_recorder.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "wire/params_json.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <sys/utsname.h>

#define REGISTER_DELAY (5 * USEC_SEC) /* after the store refused to register the node */

static void register_node(struct dispatcher *d);

/* ---- runs of this node in the store are compared with the workers of the spawner ---- */

static struct active_run *adopt_run(struct dispatcher *d, struct claimed *c)
{
	struct active_run *a = active_run_new(STEAL(c->run), ACTIVE_RUN_ADOPTED);
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	a->typical = c->typical;
	job_spec_init(&spec);
	if (spec_json_from_text(c->spec, &spec, &e)) {
		policy_retry_of(&spec, &a->retry);
		AUTO_DONE(strv) params = {};
		AUTO_TEXT warrant = NULL;
		AUTO_TEXT trigger = NULL;

		params_json_run_from_text(a->run->params, &params, &warrant, &trigger, &e);
		params_merge(&spec.params, &params, &a->params);
		dispatcher_trace_run(d, a, &spec, trigger);
		dispatcher_artifact_note(a, &spec);
		dispatcher_call_note(a, &spec);
		a->outlives_lease = active_run_outlives_lease(&spec);
		a->checkpoint = spec.checkpoint;
		a->state_size = spec.state_size;
	}
	active_runs_add(&d->active_runs, a);
	return a;
}

static void record_lost_run(struct dispatcher *d, struct active_run *a, const char *with_what)
{
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = a->run->job, .run = a->run->id, .trace = a->trace.id},
		"run %" PRId64 " was lost with its %s", a->run->id, with_what);
	a->end.outcome = ATTEMPT_LOST;
	a->end.ended_at = clock_now(d->o.clock);
	a->end.error = xprintf("the %s that held it is gone", with_what);
	dispatcher_end_run(d, a);
}

void dispatcher_record_lost(struct dispatcher *d, struct claimed *c)
{
	record_lost_run(d, adopt_run(d, c), "node");
}

/*
 * Forgets all runs that have not ended. Runs of jobs that may overlap continue, and their ends are
 * recorded as stale; the spawner ends the others.
 */
static void disown_runs(struct dispatcher *d)
{
	struct active_run *a;

	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));) {
		if (a->stage == ACTIVE_RUN_ENDED)
			continue;
		if (a->call && !a->outlives_lease)
			dispatcher_call_cancel(d, a);
		else if (a->stage == ACTIVE_RUN_STARTING && spawner_link_id(d->o.spawner))
			spawner_link_cancel(d->o.spawner, a->run->id, a->run->fence); /* must not start under the next lease */
		else if (a->outlives_lease)
			map_put(&d->disowned, a->run->id, (void *)(intptr_t)a->run->fence);
		active_runs_remove(&d->active_runs, a);
		i = 0;
	}
}

void dispatcher_rejoin(struct dispatcher *d)
{
	spawner_link_suspend(d->o.spawner);
	disown_runs(d);
	if (spawner_link_id(d->o.spawner))
		register_node(d);
	else
		spawner_link_connect(d->o.spawner);
}

/*
 * The runs of this daemon after a new connection. The same spawner still has them. A new spawner
 * does not: its predecessor has ended them, and reports how only if it was stopped in an orderly
 * way.
 */
static void adopt_own_runs(struct dispatcher *d)
{
	const char *id = spawner_link_id(d->o.spawner);
	bool same = text_equal(d->last_spawner, id);
	struct active_run *a;

	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));) {
		if (a->stage == ACTIVE_RUN_ENDED || a->stage == ACTIVE_RUN_HELD || a->call)
			continue;
		active_runs_set_stage(&d->active_runs, a, ACTIVE_RUN_ADOPTED);
		if (!same && !a->orphan) {
			a->orphan = true;
			a->end.spawner = xstrdup(d->last_spawner);
		}
	}
	if (!same) {
		free(d->last_spawner);
		d->last_spawner = xstrdup(id);
	}
}

/*
 * The store lists these runs once only, so they are adopted even if the spawner has changed since
 * the request.
 */
static void adopt_runs(struct dispatcher *d, struct op_node_open *n, bool same)
{
	for (size_t i = 0; i < n->same_spawner.n; i++)
		adopt_run(d, &n->same_spawner.v[i])->orphan = !same;
	for (size_t i = 0; i < n->other_spawner.n; i++)
		adopt_run(d, &n->other_spawner.v[i])->orphan = true;
}

static void on_node_opened(struct op *op, void *arg)
{
	struct dispatcher *d = arg;
	bool same = text_equal(node_open_op(op)->spawner, spawner_link_id(d->o.spawner));

	if (!op->ok) {
		log_error("could not register with the store, %s: %s",
			node_open_op(op)->rival ? "exiting" : "trying again", op->err.msg);
		if (node_open_op(op)->rival)
			d->o.on_exit(EXIT_TRY_AGAIN, d->o.arg);
		spawner_link_close(d->o.spawner, REGISTER_DELAY);
		op_free(op);
		return;
	}
	if (!d->was_open)
		d->last_seen = node_open_op(op)->last_seen;
	d->was_open = true;
	if (node_open_op(op)->given_up)
		disown_runs(d); /* the leader gave this node up meanwhile */
	if (same)
		adopt_own_runs(d);
	adopt_runs(d, node_open_op(op), same);
	if (same) { /* otherwise the new connection registers the node again */
		d->o.on_opened(node_open_op(op)->others, d->o.arg);
		spawner_link_list(d->o.spawner);
	}
	op_free(op);
}

static void register_node(struct dispatcher *d)
{
	struct op *op = op_new(OP_NODE_OPEN, on_node_opened, d);
	const char *id = spawner_link_id(d->o.spawner);

	if (d->spawners.n == 0 || !text_equal(d->spawners.v[d->spawners.n - 1], id))
		strv_add(&d->spawners, id);
	op_fill(node_open_op(op), .node = d->o.node_id, .name = d->o.node_name,
		.spawner = d->spawners.v[d->spawners.n - 1], .host = d->host,
		.now = clock_now(d->o.clock), .labels = d->o.labels, .barred = d->o.barred,
		.ttl = d->o.lease, .run_ttl = d->o.run_lease, .boot = d->o.boot_id,
		.machine = d->o.machine, .uptime = clock_boot(d->o.clock),
		.past_spawners = d->o.past_spawners, .in_use = d->o.in_use);
	if (d->o.on_spawner)
		d->o.on_spawner(node_open_op(op)->spawner, d->o.arg);
	store_thread_submit(d->o.store, op);
}

/* The list is complete. A run that the spawner did not list has not started, or was lost. */
static void reconcile(struct dispatcher *d)
{
	struct active_run *a;
	size_t running = 0;

	for (size_t i = 0; (a = map_next(&d->active_runs.by_run, &i));) {
		if (a->call) { /* dispatcher_net_synced() decides */
			running += a->stage == ACTIVE_RUN_RUNNING;
		} else if (a->stage == ACTIVE_RUN_ADOPTED) {
			if (a->orphan || a->start_recorded) {
				record_lost_run(d, a, a->orphan ? "spawner" : "worker");
			} else if (a->run->cancel_asked) {
				a->end.outcome = ATTEMPT_CANCELLED;
				a->end.ended_at = clock_now(d->o.clock);
				dispatcher_end_run(d, a);
			} else {
				dispatcher_give_back(d, a, 0);
			}
		} else if (a->stage == ACTIVE_RUN_RUNNING) {
			running++;
			if (a->run->cancel_asked)
				spawner_link_cancel(d->o.spawner, a->run->id, a->run->fence);
		}
	}
	if (running)
		log_info("took over %zu running jobs", running);
	d->spawner_stopping = false;
	if (!d->was_ready) {
		d->was_ready = true;
		d->o.on_ready(d->o.arg);
	}
}

/* ---- reports ---- */

static void report_running(struct dispatcher *d, const struct spawn_report *r)
{
	struct active_run *a = active_runs_get(&d->active_runs, r->run, r->fence);

	if (a && a->stage != ACTIVE_RUN_ENDED) {
		dispatcher_run_started(d, a, r->pid, r->started_at);
	} else if (!a && (int64_t)(intptr_t)map_get(&d->disowned, r->run) != r->fence) {
		log_warning("ending run %" PRId64 ": in the store it does not belong to this node",
			r->run);
		spawner_link_cancel(d->o.spawner, r->run, r->fence);
	}
}

void dispatcher_on_report(const struct spawn_report *r, void *arg)
{
	struct dispatcher *d = arg;

	switch (r->kind) {
	case SPAWN_STARTED:
	case SPAWN_HAS:
		report_running(d, r);
		break;
	case SPAWN_NOT_STARTED:
		dispatcher_report_not_started(d, r);
		break;
	case SPAWN_ENDED:
		dispatcher_report_ended(d, r);
		break;
	case SPAWN_PROGRESS:
		progress_recorder_note(d->progress, r);
		break;
	case SPAWN_LIST_DONE:
		reconcile(d);
		break;
	case SPAWN_CONNECTED:
		register_node(d);
		break;
	default:
		break;
	}
}

bool dispatcher_start(struct dispatcher *d, struct err *e)
{
	struct utsname host;

	if (uname(&host) == 0)
		d->host = xstrdup(host.nodename);
	if (!spawner_link_open(d->o.spawner, e))
		return false;
	register_node(d);
	return true;
}
