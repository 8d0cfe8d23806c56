/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the engine's loop: one alarm for all parts, signals, shutdown. */
#include "daemon/engine.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/audit.h"
#include "daemon/api/listener.h"
#include "daemon/api/server.h"
#include "daemon/cluster/cluster.h"
#include "daemon/crontab/crontabs.h"
#include "daemon/engine_private.h"
#include "daemon/loop/alarm.h"
#include "daemon/loop/exit_status.h"
#include "daemon/loop/program_paths.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_thread.h"
#include "daemon/notify/notifier.h"
#include "daemon/schedule/clock_guard.h"
#include "daemon/schedule/concurrency.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/expiry.h"
#include "daemon/schedule/pause_timer.h"
#include "daemon/schedule/planner.h"
#include "store/ops/batch.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#define STOP_LIMIT (10 * USEC_SEC) /* for operations under way when the daemon is told to stop */
/* Ends of runs within this time are still recorded; other nodes would wait for the next daemon. */
#define LAST_ENDS (2 * USEC_SEC)

static void exit_loop(struct engine *g, int status)
{
	sd_event_exit(g->ev, status);
}

/* ---- closing the node ---- */

static void on_node_closed(struct op *op, void *arg)
{
	struct engine *g = arg;

	if (op->ok)
		cluster_left(g->cluster);
	op_free(op);
	exit_loop(g, 0);
}

/* The last operation. Its callback ends the loop. */
static void submit_node_close(struct engine *g)
{
	struct op *op = op_new(OP_NODE_CLOSE, on_node_closed, g);

	g->closing = true;
	op_fill(node_close_op(op), .node = g->node_id, .now = clock_now(&g->clock));
	node_close_op(op)->guarded = cluster_leave(g->cluster, &node_close_op(op)->run_ttl);
	node_close_op(op)->held = dispatcher_held(g->dispatcher, &node_close_op(op)->n_held);
	store_thread_submit(g->store, op);
}

static void close_if_quiet(struct engine *g)
{
	struct dispatcher_counts counts;

	dispatcher_counts(g->dispatcher, &counts);
	if (g->stopping && !g->closing &&
		(counts.in_flight == 0 || !counts.spawner_up || !engine_has_peers(g)))
		submit_node_close(g);
}

static int on_last_ends(sd_event_source *source, uint64_t usec, void *arg)
{
	struct engine *g = arg;

	(void)source;
	(void)usec;
	if (!g->closing)
		submit_node_close(g);
	return 0;
}

/* ---- one alarm for the earliest event of all parts ---- */

static usec_t earlier_of(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

static usec_t claim_pump(struct engine *g)
{
	usec_t wait = concurrency_pump(g->concurrency), claim = dispatcher_pump(g->dispatcher),
	       look = USEC_NEVER;

	if (wait != USEC_NEVER)
		look = clock_now(&g->clock) + wait;
	return earlier_of(claim, look);
}

/* The alarm uses the clock of this host; 'at' is on the clock of the store. */
static void set_alarm(struct engine *g, usec_t at)
{
	alarm_set(g->alarm, at == USEC_NEVER ? at : at - cluster_offset(g->cluster));
}

/* Without a lease nothing is planned or started, because another node may have taken over. */
static void engine_pump(struct engine *g)
{
	bool trusted = cluster_trusted(g->cluster);
	struct clock_guard_verdict verdict =
		trusted ? clock_guard_pump(g->clock_guard)
			: (struct clock_guard_verdict){.again = USEC_NEVER};
	usec_t at = verdict.claim ? pause_timer_pump(g->pause_timer) : USEC_NEVER;
	usec_t notice = notifier_pump(g->notifier);

	if (verdict.claim)
		at = earlier_of(at, expiry_pump(g->expiry));
	if (verdict.plan)
		at = earlier_of(at, planner_pump(g->planner));
	dispatcher_set_made_since(g->dispatcher, verdict.made_since);
	if (verdict.claim || verdict.made_since)
		at = earlier_of(at, claim_pump(g));
	if (trusted)
		clock_guard_set_alarm(g->clock_guard, at);
	set_alarm(g, earlier_of(earlier_of(at, notice), verdict.again));
}

void engine_on_wake(const struct batch_wake *w, void *arg)
{
	struct engine *g = arg;

	planner_set_next_slot(g->planner, w->next_slot);
	dispatcher_set_next_due(g->dispatcher, w->next_due);
	pause_timer_set_end(g->pause_timer, w->pause_end);
	expiry_set_time(g->expiry, w->expiry);
	notifier_set_next_due(g->notifier, w->next_notice);
	if (w->notify_pending && g->cluster)
		cluster_look_soon(g->cluster);
	engine_pump(g);
	close_if_quiet(g);
}

void engine_on_events(const struct event_list *l, void *arg)
{
	audit_committed(((struct engine *)arg)->audit, l);
}

void engine_on_op(const struct op *op, void *arg)
{
	audit_refused_op(((struct engine *)arg)->audit, op);
}

void engine_on_change(void *arg)
{
	engine_pump(arg);
}

/* Before the first wake-up nothing can be due. */
void engine_on_tables(void *arg)
{
	struct engine *g = arg;

	if (g->server)
		engine_pump(g);
}

void engine_on_alarm(bool clock_set, void *arg)
{
	if (clock_set)
		log_info("the clock was set; computing again what is due");
	engine_pump(arg);
}

void engine_on_fatal(const struct err *e, void *arg)
{
	const struct engine *g = arg;

	if (e->kind == ERR_REFUSED)
		log_error("%s; if the store was restored on purpose, remove '%s'", e->msg,
			g->term_file);
	else
		log_error("the store must not be written to any more, exiting: %s", e->msg);
	exit_loop(arg, e->kind == ERR_REFUSED ? EXIT_CONFIG : EXIT_TRY_AGAIN);
}

/* Responses are sent before the planner and the dispatcher work. */
void engine_on_delivered(void *arg)
{
	const struct engine *g = arg;

	if (g->server)
		server_send_answers(g->server);
}

void engine_on_busy(void *arg)
{
	struct engine *g = arg;

	if (g->store_outage)
		store_outage_watch(g->store_outage);
}

void engine_on_exit(int status, void *arg)
{
	exit_loop(arg, status);
}

/* ---- signals ---- */

static int on_stop_limit(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	log_warning("the store takes too long, exiting without its answer");
	exit_loop(arg, 0);
	return 0;
}

/* Starts nothing new and gives back claimed runs. */
static int on_stop_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct engine *g = arg;

	(void)source;
	if (g->stopping) {
		exit_loop(g, 0);
		return 0;
	}
	g->stopping = true;
	log_info("stopping on signal %u; running jobs continue", si->ssi_signo);
	sd_notify(0, "STOPPING=1\nSTATUS=stopping; running jobs continue");
	if (!g->store) { /* the store is not open yet */
		exit_loop(g, 0);
		return 0;
	}
	planner_stop(g->planner);
	pause_timer_stop(g->pause_timer);
	expiry_stop(g->expiry);
	spawner_link_stop(g->spawner);
	dispatcher_stop(g->dispatcher);
	notifier_stop(g->notifier);
	if (g->crontabs)
		crontabs_stop(g->crontabs);
	if (g->server)
		server_stop(g->server);
	close_if_quiet(g);
	sd_event_add_time_relative(
		g->ev, NULL, CLOCK_MONOTONIC, (uint64_t)LAST_ENDS, 1, on_last_ends, g);
	sd_event_add_time_relative(
		g->ev, NULL, CLOCK_MONOTONIC, (uint64_t)STOP_LIMIT, 1, on_stop_limit, g);
	return 0;
}

static int on_reload_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct engine *g = arg;
	AUTO_DONE(config) fresh;
	struct err e = {};

	(void)source;
	(void)si;
	if (!g->store) {
		log_warning("the store is unavailable: restart instead of reloading");
		return 0;
	}
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_boot(g->o.clock));
	config_init(&fresh);
	if (g->o.read_config(&fresh, g->o.arg, &e))
		engine_apply_config(g, &fresh);
	else
		log_error("kept the old configuration: %s", e.msg);
	sd_notify(0, "READY=1");
	engine_pump(g);
	return 0;
}

bool engine_watch_signals(struct engine *g, struct err *e)
{
	static const struct {
		int number;
		sd_event_signal_handler_t fn;
	} signals[] = {
		{SIGTERM, on_stop_signal}, {SIGINT, on_stop_signal}, {SIGHUP, on_reload_signal}};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTS(signals); i++)
		sigaddset(&set, signals[i].number);
	sigprocmask(SIG_BLOCK, &set, NULL); /* before any thread is started */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ELEMENTS(signals); i++) {
		int r = sd_event_add_signal(g->ev, NULL, signals[i].number, signals[i].fn, g);

		if (r < 0)
			return err_errno(e, -r, "could not watch signal %d", signals[i].number);
	}
	return true;
}

/* Descriptors for clients. The spawner has its own for the workers. */
static void raise_descriptor_limit(const struct config *c)
{
	rlim_t want = (rlim_t)(2 * c->connections + 256);
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_cur >= want)
		return;
	now.rlim_cur = want < now.rlim_max ? want : now.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &now) < 0)
		log_warning("could not raise the limit of open files: %m");
}

static int engine_exit_status(enum err_kind kind)
{
	switch (kind) {
	case ERR_REFUSED:
	case ERR_INVALID:
		return EXIT_CONFIG;
	case ERR_CONFLICT:
		return EXIT_OTHER_RUNS;
	case ERR_BUSY:
	case ERR_FULL:
	case ERR_UNCERTAIN:
	case ERR_UNREACHABLE:
		return EXIT_TRY_AGAIN;
	default:
		return 1;
	}
}

int engine_run(const struct engine_options *o)
{
	struct engine g = {.o = *o, .output_dir = -1};
	struct err e = {};
	int status;

	io_random_id(g.node_id);
	g.store_where = engine_store_where(o->config, o->paths);
	g.store_shown = config_store_shown(g.store_where);
	g.machine = engine_machine(o->config);
	g.boot_id = engine_boot_id();
	g.clock = (struct clock){engine_realtime, engine_boottime, &g};
	g.spawner_program = o->user_mode ? program_paths_spawner() : NULL;
	raise_descriptor_limit(o->config);
	status = sd_event_default(&g.ev);
	if (status < 0) {
		log_error("could not make an event loop");
		return 1;
	}
	sd_event_set_watchdog(g.ev, true);
	if (engine_labels(g.o.config->labels, &g.labels, &e) && engine_start(&g, &e)) {
		status = sd_event_loop(g.ev);
	} else if (g.stopping) {
		status = 0;
	} else {
		log_error("%s", e.msg);
		status = engine_exit_status(e.kind);
	}
	engine_end(&g);
	return status < 0 ? 1 : status;
}
