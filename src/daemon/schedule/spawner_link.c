/* SPDX-License-Identifier: Apache-2.0 */
/* The tie to the spawner: connecting, taking over what earlier lives left, and connecting again. */
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/job/job.h"
#include "daemon/schedule/dispatcher_private.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/store_thread.h"
#include "store/ops/op.h"
#include "wire/spec_json.h"
#include <errno.h>
#include <inttypes.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECONNECT_MIN (100 * USEC_MSEC)
#define RECONNECT_MAX (5 * USEC_SEC)

static void on_report(const struct spawn_report *r, void *arg);
static void register_node(struct dispatcher *d);

/* ---- connecting ---- */

static bool open_client(struct dispatcher *d, struct err *e)
{
	if (!spawn_client_open(d->ev, d->o.spawner_socket, d->o.node_id, on_report, d, &d->spawner, e))
		return false;
	d->warrants = spawn_client_warrants(d->spawner);
	return true;
}

/* Waits for the spawner. Only dispatcher_start() may call it: later the loop has other work. */
static bool connect_spawner(struct dispatcher *d, struct err *e)
{
	if (open_client(d, e))
		return true;
	if (!d->o.spawner_program || e->kind != ERR_UNREACHABLE)
		return false;
	return spawner_launch(d->o.spawner_program, d->o.runtime_dir, d->o.output_dir, e) && open_client(d, e);
}

/* ---- taking over: the store says what is ours, the spawner what became of it ---- */

static struct active_run *adopt_run(struct dispatcher *d, struct claimed *c)
{
	struct active_run *f = active_run_new(STEAL(c->run), ACTIVE_RUN_ADOPTED);
	AUTO_DONE(job_spec) spec;
	struct err e = {};

	f->typical = c->typical;
	job_spec_init(&spec);
	if (spec_json_from_text(c->spec, &spec, &e)) {
		policy_retry_of(&spec, &f->retry);
		dispatcher_artifact_note(f, &spec);
		f->outlives_lease = active_run_outlives_lease(&spec);
	}
	active_runs_add(&d->active_runs, f);
	return f;
}

static void record_lost_run(struct dispatcher *d, struct active_run *f, const char *with_what)
{
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.job = f->run->job, .run = f->run->id},
		"run %" PRId64 " was lost with its %s", f->run->id, with_what);
	f->end.outcome = ATTEMPT_LOST;
	f->end.ended_at = clock_now(d->o.clock);
	f->end.error = xprintf("the %s that held it is gone", with_what);
	dispatcher_end_run(d, f);
}

void dispatcher_record_lost(struct dispatcher *d, struct claimed *c)
{
	record_lost_run(d, adopt_run(d, c), "node");
}

/* Jobs that may overlap go on, and what comes of them is recorded as stale; the spawner ends the others. */
static void disown_runs(struct dispatcher *d)
{
	struct active_run *f;

	for (size_t i = 0; (f = map_next(&d->active_runs.by_run, &i));) {
		if (f->stage == ACTIVE_RUN_ENDED)
			continue;
		if (f->stage == ACTIVE_RUN_STARTING && d->spawner)
			spawn_client_cancel(d->spawner, f->run->id, f->run->fence); /* not under the lease that we get next */
		else if (f->outlives_lease)
			map_put(&d->disowned, f->run->id, (void *)(intptr_t)f->run->fence);
		active_runs_remove(&d->active_runs, f);
		i = 0;
	}
}

void dispatcher_rejoin(struct dispatcher *d)
{
	d->spawner_ready = false;
	disown_runs(d);
	if (d->spawner)
		register_node(d);
	else
		dispatcher_reconnect(d);
}

/*
 * What we held ourselves when the connection ended: the old spawner still has it; a new one has ended it all, and knows
 * how, if the old one was stopped in peace.
 */
static void adopt_own_runs(struct dispatcher *d)
{
	bool same = text_equal(d->last_spawner, spawn_client_spawner(d->spawner));
	struct active_run *f;

	for (size_t i = 0; (f = map_next(&d->active_runs.by_run, &i));) {
		if (f->stage == ACTIVE_RUN_ENDED || f->stage == ACTIVE_RUN_HELD)
			continue;
		active_runs_set_stage(&d->active_runs, f, ACTIVE_RUN_ADOPTED);
		if (!same && !f->orphan) {
			f->orphan = true;
			f->end.spawner = xstrdup(d->last_spawner);
		}
	}
	if (!same) {
		free(d->last_spawner);
		d->last_spawner = xstrdup(spawn_client_spawner(d->spawner));
	}
}

/* The store has made them ours and does not say so again, whatever has become of the spawner since we asked. */
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
	bool same = d->spawner && text_equal(op->node_open.spawner, spawn_client_spawner(d->spawner));

	if (!op->ok) {
		log_error("could not register with the store, %s: %s", op->node_open.rival ? "leaving" : "trying again", op->err.msg);
		if (op->node_open.rival)
			d->o.on_exit(75, d->o.arg);
		spawn_client_free(STEAL(d->spawner));
		dispatcher_retry_in(d, RECONNECT_MAX);
		op_free(op);
		return;
	}
	if (!d->was_open)
		d->last_seen = op->node_open.last_seen;
	d->was_open = true;
	if (op->node_open.given_up)
		disown_runs(d); /* before we knew */
	if (same)
		adopt_own_runs(d);
	adopt_runs(d, &op->node_open, same);
	if (same) { /* else another opening follows, with whoever is there then */
		d->o.on_opened(op->node_open.others, d->o.arg);
		spawn_client_list(d->spawner);
	}
	op_free(op);
}

static void register_node(struct dispatcher *d)
{
	struct op *op = op_new(OP_NODE_OPEN, on_node_opened, d);

	if (d->spawners.n == 0 || !text_equal(d->spawners.v[d->spawners.n - 1], spawn_client_spawner(d->spawner)))
		strv_add(&d->spawners, spawn_client_spawner(d->spawner));
	op->node_open = (struct op_node_open){.node = d->o.node_id, .name = d->o.node_name,
		.spawner = d->spawners.v[d->spawners.n - 1], .host = d->host, .now = clock_now(d->o.clock),
		.labels = d->o.labels, .barred = d->o.barred, .ttl = d->o.lease,
		.run_ttl = d->o.run_lease, .boot = d->o.boot_id, .machine = d->o.machine, .uptime = clock_boot(&clock_system),
		.past_spawners = d->o.past_spawners, .in_use = d->o.in_use};
	if (d->o.on_spawner)
		d->o.on_spawner(op->node_open.spawner, d->o.arg);
	store_thread_submit(d->o.store, op);
}

/* The list is complete: what was claimed and the spawner never heard of has not started, or was lost. */
static void reconcile(struct dispatcher *d)
{
	struct active_run *f;
	size_t running = 0;

	for (size_t i = 0; (f = map_next(&d->active_runs.by_run, &i));) {
		if (f->stage == ACTIVE_RUN_ADOPTED) {
			if (f->orphan || f->start_recorded) {
				record_lost_run(d, f, f->orphan ? "spawner" : "worker");
			} else if (f->run->cancel_asked) {
				f->end.outcome = ATTEMPT_CANCELLED;
				f->end.ended_at = clock_now(d->o.clock);
				dispatcher_end_run(d, f);
			} else {
				dispatcher_give_back(d, f, 0);
			}
		} else if (f->stage == ACTIVE_RUN_RUNNING) {
			running++;
			if (f->run->cancel_asked)
				spawn_client_cancel(d->spawner, f->run->id, f->run->fence);
		}
	}
	if (running)
		log_info("took over %zu running jobs", running);
	d->spawner_ready = true;
	d->spawner_leaves = false;
	d->connect_failures = 0;
	if (!d->was_ready) {
		d->was_ready = true;
		d->o.on_ready(d->o.arg);
	}
	d->o.on_change(d->o.arg);
}

/* ---- reports ---- */

static void report_running(struct dispatcher *d, const struct spawn_report *r)
{
	struct active_run *f = active_runs_get(&d->active_runs, r->run, r->fence);

	if (f && f->stage != ACTIVE_RUN_ENDED) {
		dispatcher_run_started(d, f, r->pid, r->started_at);
	} else if (!f && (int64_t)(intptr_t)map_get(&d->disowned, r->run) != r->fence) {
		log_warning("ending run %" PRId64 ": the store does not count it as ours", r->run);
		spawn_client_cancel(d->spawner, r->run, r->fence);
	}
}

static void connect_failed(struct dispatcher *d, const char *why)
{
	usec_t delay = RECONNECT_MIN << (d->connect_failures < 6 ? d->connect_failures : 6);

	d->connect_failures++;
	if (delay > RECONNECT_MAX)
		delay = RECONNECT_MAX;
	log_error("no spawner, trying again in %" PRId64 "ms: %s", delay / USEC_MSEC, why);
	dispatcher_retry_in(d, delay);
}

static void spawner_connected(struct dispatcher *d)
{
	d->spawner = STEAL(d->connecting);
	d->warrants = spawn_client_warrants(d->spawner);
	register_node(d);
}

static void spawner_gone(struct dispatcher *d, const char *why)
{
	if (d->connecting) {
		spawn_client_free(STEAL(d->connecting));
		connect_failed(d, why);
		return;
	}
	log_error("the spawner is gone; connecting again");
	d->spawner_ready = false;
	spawn_client_free(STEAL(d->spawner));
	dispatcher_reconnect(d);
}

/* The spawner has the clock of its host, history has the store's. */
static void to_store_time(const struct dispatcher *d, struct spawn_report *r)
{
	usec_t offset = d->o.offset ? d->o.offset(d->o.arg) : 0;

	if (r->started_at)
		r->started_at += offset;
	if (r->ended_at)
		r->ended_at += offset;
}

static void on_report(const struct spawn_report *as_seen_there, void *arg)
{
	struct spawn_report here = *as_seen_there, *r = &here;
	struct dispatcher *d = arg;

	to_store_time(d, r);
	if (dispatcher_notice_report(d, r)) {
		d->o.on_change(d->o.arg);
		return;
	}
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
	case SPAWN_LIST_DONE:
		reconcile(d);
		break;
	case SPAWN_GONE:
		spawner_gone(d, r->error);
		return;
	case SPAWN_CONNECTED:
		spawner_connected(d);
		return;
	case SPAWN_SUPERSEDED:
		log_error("a newer jobschedd has taken over the spawner");
		d->spawner_ready = false;
		d->o.on_exit(75, d->o.arg);
		return;
	case SPAWN_REPORT_MAX:
		break;
	}
	d->o.on_change(d->o.arg);
}

static bool begin_connect(struct dispatcher *d, struct err *e)
{
	return spawn_client_connect(d->ev, d->o.spawner_socket, d->o.node_id, on_report, d, &d->connecting, e);
}

static int on_launched(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct dispatcher *d = arg;
	struct err e = {};
	int status;
	bool other;

	(void)source;
	(void)fd;
	(void)events;
	d->launching = sd_event_source_disable_unref(d->launching);
	if (waitpid(d->launching_pid, &status, WNOHANG) != d->launching_pid)
		connect_failed(d, "the process that starts the spawner has no exit status");
	else if (!spawner_launch_end(status, d->o.spawner_program, d->o.runtime_dir, &other, &e) || !begin_connect(d, &e))
		connect_failed(d, e.msg);
	return 0;
}

static bool launch_spawner(struct dispatcher *d, struct err *e)
{
	int pidfd, r;

	if (!spawner_launch_begin(d->o.spawner_program, d->o.runtime_dir, d->o.output_dir, &d->launching_pid, e))
		return false;
	pidfd = (int)syscall(SYS_pidfd_open, d->launching_pid, 0);
	r = pidfd < 0 ? -errno : sd_event_add_io(d->ev, &d->launching, pidfd, EPOLLIN, on_launched, d);
	if (r < 0) {
		auto_fd_close(&pidfd);
		return err_errno(e, -r, "could not watch '%s'", d->o.spawner_program);
	}
	sd_event_source_set_io_fd_own(d->launching, true);
	return true;
}

/* Returns at once: the loop serves the API while the spawner is started, is stopped, or does not answer. */
void dispatcher_reconnect(struct dispatcher *d)
{
	struct err e = {};

	if (d->spawner || d->connecting || d->launching)
		return; /* connecting or taking over is under way */
	if (begin_connect(d, &e))
		return;
	if (!d->o.spawner_program || e.kind != ERR_UNREACHABLE || !launch_spawner(d, &e))
		connect_failed(d, e.msg);
}

bool dispatcher_start(struct dispatcher *d, struct err *e)
{
	struct utsname host;

	if (uname(&host) == 0)
		d->host = xstrdup(host.nodename);
	if (!connect_spawner(d, e))
		return false;
	register_node(d);
	return true;
}
