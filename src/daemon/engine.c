/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the parts of the daemon together and keeps them going. */
#include "daemon/engine.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/policy.h"
#include "daemon/alarm.h"
#include "daemon/anteroom.h"
#include "daemon/artifact.h"
#include "daemon/allow.h"
#include "daemon/audit.h"
#include "daemon/bell.h"
#include "daemon/cluster.h"
#include "daemon/dispatcher.h"
#include "daemon/engine_parts.h"
#include "daemon/governor.h"
#include "daemon/hub.h"
#include "daemon/listener.h"
#include "daemon/notifier.h"
#include "daemon/outage.h"
#include "daemon/pauses.h"
#include "daemon/planner.h"
#include "daemon/relay.h"
#include "daemon/retention.h"
#include "daemon/server.h"
#include "daemon/store_thread.h"
#include "daemon/timekeeper.h"
#include "daemon/watcher.h"
#include "daemon/zones.h"
#include "store/op.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define STORE_RETRY USEC_SEC /* between two tries to reach it at the start */
#define OWNER_PERCENT 75 /* of the node, for one owner, where several are served */
#define STOP_LIMIT (10 * USEC_SEC) /* for what is on its way to the store when we are asked to end */
#define LAST_ENDS (2 * USEC_SEC) /* runs that end this soon are told to other nodes, which would wait for us to come back */

static void leave(struct engine *g, int status)
{
	sd_event_exit(g->ev, status);
}

/* ---- leaving ---- */

static void on_node_closed(struct op *op, void *arg)
{
	struct engine *g = arg;

	if (op->ok)
		cluster_left(g->cluster);
	op_free(op);
	leave(g, 0);
}

/* The last operation in the queue ends the loop. */
static void close_node(struct engine *g)
{
	struct op *op = op_new(OP_NODE_CLOSE, on_node_closed, g);

	g->closing = true;
	op->node_close = (struct op_node_close){.node = g->node_id, .now = clock_now(&g->clock)};
	store_thread_submit(g->store, op);
}

static void close_if_quiet(struct engine *g)
{
	struct dispatcher_counts counts;

	dispatcher_counts(g->dispatcher, &counts);
	if (g->stopping && !g->closing && (counts.in_flight == 0 || !counts.spawner_up || !engine_in_company(g)))
		close_node(g);
}

static int on_last_ends(sd_event_source *source, uint64_t usec, void *arg)
{
	struct engine *g = arg;

	(void)source;
	(void)usec;
	if (!g->closing)
		close_node(g);
	return 0;
}

/* ---- pacing: one alarm for whatever comes first ---- */

static usec_t earlier(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

static usec_t claim_pump(struct engine *g)
{
	usec_t wait = governor_pump(g->governor), claim = dispatcher_pump(g->dispatcher), look = USEC_NEVER;

	if (wait != USEC_NEVER)
		look = clock_now(&g->clock) + wait;
	return earlier(claim, look);
}

/* The alarm is of this machine's clock. */
static void set_alarm(struct engine *g, usec_t at)
{
	alarm_set(g->alarm, at == USEC_NEVER ? at : at - cluster_offset(g->cluster));
}

/* Without a lease nothing is planned or started: somebody else may be doing it. */
static void pump(struct engine *g)
{
	bool trusted = cluster_trusted(g->cluster);
	struct timekeeper_word word = trusted ? timekeeper_pump(g->timekeeper) : (struct timekeeper_word){.again = USEC_NEVER};
	usec_t at = word.claim ? pauses_pump(g->pauses) : USEC_NEVER;
	usec_t notice = notifier_pump(g->notifier);

	if (word.plan)
		at = earlier(at, planner_pump(g->planner));
	if (word.claim)
		at = earlier(at, claim_pump(g));
	if (trusted)
		timekeeper_armed(g->timekeeper, at);
	set_alarm(g, earlier(earlier(at, notice), word.again));
}

static void on_wake(const struct store_wake *w, void *arg)
{
	struct engine *g = arg;

	planner_slot_is(g->planner, w->next_slot);
	dispatcher_due_is(g->dispatcher, w->next_due);
	pauses_end_is(g->pauses, w->pause_end);
	notifier_due_is(g->notifier, w->next_notice);
	if (w->owes_news && g->cluster)
		cluster_look_soon(g->cluster);
	pump(g);
	close_if_quiet(g);
}

static void on_events(const struct event_list *l, void *arg)
{
	audit_committed(((struct engine *)arg)->audit, l);
}

static void on_op(const struct op *op, void *arg)
{
	audit_op(((struct engine *)arg)->audit, op);
}

void engine_on_change(void *arg)
{
	pump(arg);
}

static void on_alarm(bool clock_set, void *arg)
{
	if (clock_set)
		log_info("the clock was set; looking again at what is due");
	pump(arg);
}

void engine_on_fatal(const struct err *e, void *arg)
{
	const struct engine *g = arg;

	if (e->kind == ERR_REFUSED)
		log_error("%s; or, if it was restored on purpose, remove '%s'", e->msg, g->term_file);
	else
		log_error("the store must not be written any more, leaving: %s", e->msg);
	leave(arg, e->kind == ERR_REFUSED ? EXIT_CONFIG : EXIT_TRY_AGAIN);
}

void engine_on_busy(void *arg)
{
	struct engine *g = arg;

	if (g->outage)
		outage_watch(g->outage);
}

void engine_on_exit(int status, void *arg)
{
	leave(arg, status);
}

/* ---- signals ---- */

static int on_stop_limit(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	log_warning("the store takes too long, leaving without it");
	leave(arg, 0);
	return 0;
}

/* No new work; what was claimed goes back. */
static int on_stop_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct engine *g = arg;

	(void)source;
	if (g->stopping) {
		leave(g, 0);
		return 0;
	}
	g->stopping = true;
	log_info("ending on signal %u; running jobs go on", si->ssi_signo);
	sd_notify(0, "STOPPING=1\nSTATUS=ending; running jobs go on");
	if (!g->store) { /* it could not be opened yet */
		leave(g, 0);
		return 0;
	}
	cluster_stop(g->cluster);
	planner_stop(g->planner);
	pauses_stop(g->pauses);
	dispatcher_stop(g->dispatcher);
	notifier_stop(g->notifier);
	if (g->server)
		server_stop(g->server);
	close_if_quiet(g);
	sd_event_add_time_relative(g->ev, NULL, CLOCK_MONOTONIC, (uint64_t)LAST_ENDS, 1, on_last_ends, g);
	sd_event_add_time_relative(g->ev, NULL, CLOCK_MONOTONIC, (uint64_t)STOP_LIMIT, 1, on_stop_limit, g);
	return 0;
}

static struct server_limits limits_of(const struct config *c)
{
	return (struct server_limits){
		.connections = (size_t)c->connections,
		.connections_per_uid = (size_t)c->connections_per_uid,
		.body = (size_t)c->body_limit,
		.bulk_body = (size_t)c->bulk_body_limit,
		.bulk_jobs = (size_t)c->bulk_jobs,
		.jobs_per_uid = (size_t)c->jobs_per_uid,
		.submissions_per_second = (size_t)c->submissions_per_second,
		.submissions_burst = (size_t)c->submissions_burst,
		.head_timeout = (int)c->head_timeout,
		.body_timeout = (int)c->body_timeout,
	};
}

/* One owner leaves room for the others where there are others. */
static struct governor_rules rules_of(const struct engine *g)
{
	const struct config *c = g->o.config;
	int64_t share = g->o.user_mode ? 0 : -OWNER_PERCENT;

	return (struct governor_rules){.max_running = c->max_running,
		.owner_max_running = c->owner_max_running == CONFIG_SHARE_AUTO ? share : c->owner_max_running};
}

static struct retention_limits retention_of(const struct config *c)
{
	return (struct retention_limits){
		.keep = {.age = c->keep_days * USEC_DAY, .runs = c->keep_runs, .dead_age = c->keep_dead_days * USEC_DAY},
		.store_budget = c->store_budget,
		.output_budget = c->output_budget,
	};
}

static void take_over_config(struct engine *g, const struct config *fresh)
{
	AUTO_DONE(strv) need_restart = {};
	struct retention_limits keep;
	struct server_limits limits;
	struct governor_rules rules;

	config_reload(g->o.config, fresh, &need_restart);
	for (size_t i = 0; i < need_restart.n; i++)
		log_warning("the new value of '%s' needs a restart", need_restart.v[i]);
	log_set_level((enum log_level)g->o.config->log_level);
	planner_forget(g->planner); /* tzdata may be new, too */
	zones_forget(g->zones, g->store);
	timekeeper_set_wait(g->timekeeper, g->o.config->time_sync_wait * USEC_SEC);
	rules = rules_of(g);
	governor_set(g->governor, &rules);
	dispatcher_set_output_max(g->dispatcher, g->o.config->output_limit);
	artifacts_set_limits(g->artifacts, g->o.config->artifact_limit, g->o.config->artifact_budget,
		g->o.config->artifact_timeout * USEC_SEC);
	keep = retention_of(g->o.config);
	if (g->retention)
		retention_set_limits(g->retention, &keep);
	limits = limits_of(g->o.config);
	if (g->server) {
		server_set_limits(g->server, &limits);
		server_find_admins(g->server);
	}
	log_info("configuration read again");
}

static int on_reload_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	struct engine *g = arg;
	AUTO_DONE(config) fresh;
	struct err e = {};

	(void)source;
	(void)si;
	if (!g->store) {
		log_warning("the store is away: restart rather than reload");
		return 0;
	}
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_boot(&clock_system));
	config_init(&fresh);
	if (g->o.read_config(&fresh, g->o.arg, &e))
		take_over_config(g, &fresh);
	else
		log_error("kept the old configuration: %s", e.msg);
	sd_notify(0, "READY=1");
	pump(g);
	return 0;
}

static bool watch_signals(struct engine *g, struct err *e)
{
	static const struct {
		int number;
		sd_event_signal_handler_t fn;
	} signals[] = {{SIGTERM, on_stop_signal}, {SIGINT, on_stop_signal}, {SIGHUP, on_reload_signal}};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTS(signals); i++)
		sigaddset(&set, signals[i].number);
	sigprocmask(SIG_BLOCK, &set, NULL); /* before any thread is made */
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ELEMENTS(signals); i++) {
		int r = sd_event_add_signal(g->ev, NULL, signals[i].number, signals[i].fn, g);

		if (r < 0)
			return err_errno(e, -r, "could not watch signal %d", signals[i].number);
	}
	return true;
}

/* ---- starting ---- */

void engine_serve(struct engine *g)
{
	struct server_limits limits = limits_of(g->o.config);
	struct server_context context = {
		.clock = &g->clock,
		.store = g->store,
		.audit = g->audit,
		.allow = g->allow,
		.admin_group = g->o.config->admin_group ? g->o.config->admin_group : ADMIN_GROUP_DEFAULT,
		.cluster = g->cluster,
		.outage = g->outage,
		.dispatcher = g->dispatcher,
		.governor = g->governor,
		.hub = g->hub,
		.planner = g->planner,
		.relays = g->relays,
		.retention = g->retention,
		.state_dir = g->o.places->state_dir,
		.timekeeper = g->timekeeper,
		.zones = g->zones,
		.node_name = g->o.node_name,
		.node_id = g->node_id,
		.store_where = g->store_shown,
		.output_dir = g->output_dir,
		.user_mode = g->o.user_mode,
	};
	struct err e = {};

	if (g->stopping)
		return;
	if (!server_start(g->ev, listener_take_fd(g->listener), &context, &limits, &g->server, &e)) {
		log_error("%s", e.msg);
		leave(g, 1);
		return;
	}
	timekeeper_start(g->timekeeper, dispatcher_last_seen(g->dispatcher));
	planner_boot(g->planner, g->o.node_name);
	log_info("ready: %s, store %s", g->o.places->socket, g->store_shown);
	sd_notify(0, "READY=1\nSTATUS=ready");
}

/* Who submits something right after we are ready finds it planned at once. */
static void on_ready(void *arg)
{
	struct engine *g = arg;

	g->taken_over = true;
	if (g->looked && !g->server)
		engine_serve(g);
}

/* Descriptors for the clients; the spawner has its own for the workers. */
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

/* ---- notices: the dispatcher has the tie to the spawner ---- */

static bool start_notice(const struct plan *p, void *arg, struct err *e)
{
	return dispatcher_start_notice(((struct engine *)arg)->dispatcher, p, e);
}

static enum warrant_policy warrants(void *arg)
{
	return dispatcher_warrants(((struct engine *)arg)->dispatcher);
}

static void notice_settled(int64_t run, int64_t fence, void *arg)
{
	dispatcher_notice_settled(((struct engine *)arg)->dispatcher, run, fence);
}

static void on_notice(const struct spawn_report *r, void *arg)
{
	notifier_report(((struct engine *)arg)->notifier, r);
}

static bool start_notifier(struct engine *g, struct err *e)
{
	return notifier_new(g->ev, &(struct notifier_options){.clock = &g->clock, .store = g->store,
		.config = g->o.config, .node_id = g->node_id, .node_name = g->o.node_name, .output_dir = -1,
		.start = start_notice, .warrants = warrants, .settled = notice_settled, .arg = g}, &g->notifier, e);
}

/* ---- artifacts: the dispatcher knows which runs want and use them ---- */

static bool artifact_used(const char *key, void *arg)
{
	return dispatcher_artifact_used(((struct engine *)arg)->dispatcher, key);
}

static void on_artifact(const char *key, const struct err *why, void *arg)
{
	struct engine *g = arg;

	dispatcher_artifact_done(g->dispatcher, key, why);
	pump(g);
}

static bool start_artifacts(struct engine *g, struct err *e)
{
	const struct config *c = g->o.config;

	return artifacts_new(g->ev, &(struct artifacts_options){.state_dir = g->o.places->state_dir, .limit = c->artifact_limit,
		.budget = c->artifact_budget, .timeout = c->artifact_timeout * USEC_SEC, .public_only = !g->o.user_mode,
		.in_use = artifact_used, .on_done = on_artifact, .arg = g}, &g->artifacts, e);
}

static bool forget_output(int64_t run, int64_t attempt, void *arg)
{
	struct engine *g = arg;

	return dispatcher_forget_output(g->dispatcher, run, attempt);
}

static bool start_retention(struct engine *g, struct err *e)
{
	return retention_new(g->ev, &(struct retention_options){
		.clock = &g->clock,
		.store = g->store,
		.limits = retention_of(g->o.config),
		.archive = g->o.config->archive,
		.may = engine_leads,
		.output_dir = g->output_dir,
		.forget = forget_output,
		.arg = g,
	}, &g->retention, e);
}

/*
 * A store that cannot be reached is waited for. To the service manager we are ready then: those who ask hear the reason,
 * and a machine that boots before its server does not have a unit that failed. False without an error: told to stop.
 */
static bool open_store(struct engine *g, const struct store_thread_options *o, struct err *e)
{
	AUTO(anteroom) *room = NULL;

	while (!store_thread_start(g->ev, o, &g->store, e)) {
		usec_t until = clock_boot(&clock_system) + STORE_RETRY, now;
		struct err why = *e;

		if (e->kind != ERR_UNREACHABLE || (!room && !anteroom_new(g->ev, listener_fd(g->listener), &room, e)))
			return false;
		if (anteroom_say(room, &why)) {
			log_error("%s; trying again until it answers", why.msg);
			sd_notifyf(0, "READY=1\nSTATUS=%s", why.msg);
		}
		while ((now = clock_boot(&clock_system)) < until && !g->stopping)
			sd_event_run(g->ev, (uint64_t)(until - now));
		*e = (struct err){};
		if (g->stopping)
			return false;
	}
	return true;
}

static bool start_parts(struct engine *g, struct err *e)
{
	const struct places *p = g->o.places;
	struct store_thread_options store = {.where = g->store_where, .clock = &g->clock,
		.machine = g->machine, .takeover = g->o.takeover, .no_checkpoint = true, .on_wake = on_wake, .on_fatal = engine_on_fatal, .on_events = on_events, .on_op = on_op, .on_busy = engine_on_busy, .arg = g};
	struct governor_rules rules;
	struct dispatcher_options dispatcher = {
		.clock = &g->clock,
		.node_id = g->node_id,
		.node_name = g->o.node_name,
		.spawner_socket = p->spawner_socket,
		.spawner_program = g->spawner_program,
		.runtime_dir = p->runtime_dir,
		.output_dir = p->output_dir,
		.lease = g->o.config->lease * USEC_SEC,
		.labels = g->labels,
		.barred = !g->o.config->may_lead,
		.offset = engine_offset,
		.boot_id = g->boot_id,
		.others = engine_in_company,
		.trusted = engine_trusted,
		.on_opened = engine_on_opened,
		.on_fenced = engine_on_fenced,
		.on_notice = on_notice,
		.on_ready = on_ready,
		.on_change = engine_on_change,
		.on_exit = engine_on_exit,
		.arg = g,
	};

	g->audit = audit_new(g->ev, &g->clock);
	if (!g->o.user_mode)
		g->allow = allow_new(g->o.config->allow_file ? g->o.config->allow_file : JOBSCHED_SYSCONFDIR "/allow",
			g->o.config->deny_file ? g->o.config->deny_file : JOBSCHED_SYSCONFDIR "/deny");
	if (!watch_signals(g, e) ||
		!listener_open(p->runtime_dir, p->socket, g->o.user_mode ? 0600 : 0666, &g->listener, e) ||
		!listener_watch(g->listener, g->ev, e) ||
		!alarm_new(g->ev, on_alarm, g, &g->alarm, e) ||
		!open_store(g, &store, e))
		return false;
	audit_set_store(g->audit, g->store);
	if (!engine_join(g, e))
		return false;
	g->planner = planner_new(&g->clock, g->store, g->node_id);
	g->timekeeper = timekeeper_new(&(struct timekeeper_options){.clock = &g->clock, .store = g->store,
		.timetable = planner_timetable(g->planner),
		.wait = g->o.config->time_sync_wait * USEC_SEC, .others = engine_in_company, .on_change = engine_on_change, .arg = g});
	g->pauses = pauses_new(&g->clock, g->store);
	g->zones = zones_new();
	g->hub = hub_new();
	dispatcher.store = g->store;
	dispatcher.hub = g->hub;
	if (!start_artifacts(g, e))
		return false;
	dispatcher.artifacts = g->artifacts;
	if (!dispatcher_new(g->ev, &dispatcher, &g->dispatcher, e))
		return false;
	dispatcher_set_output_max(g->dispatcher, g->o.config->output_limit);
	rules = rules_of(g);
	g->governor = governor_new(&g->clock, g->dispatcher, &rules);
	if (!start_notifier(g, e) || !dispatcher_start(g->dispatcher, e))
		return false;
	g->output_dir = open(p->output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->output_dir < 0)
		return err_errno(e, errno, "could not open the output directory '%s'", p->output_dir);
	notifier_set_output_dir(g->notifier, g->output_dir);
	return engine_start_relays(g, e) && start_retention(g, e);
}

static void stop_parts(struct engine *g)
{
	server_free(g->server);
	if (g->relays)
		relays_stop(g->relays);
	if (g->dispatcher)
		dispatcher_stop(g->dispatcher);
	if (g->notifier)
		notifier_stop(g->notifier);
	if (g->audit)
		audit_set_store(g->audit, NULL);
	if (g->retention)
		retention_stop(g->retention);
	bell_free(g->bell);
	watcher_free(g->watcher);
	outage_free(STEAL(g->outage));
	store_thread_leave(g->leases); /* both at a time */
	store_thread_leave(g->store);
	store_thread_free(g->leases);
	store_thread_free(g->store); /* finishes what is queued, so before those who own it */
	cluster_free(g->cluster);
	relays_free(g->relays);
	governor_free(g->governor);
	retention_free(g->retention);
	notifier_free(g->notifier);
	artifacts_free(g->artifacts);
	dispatcher_free(g->dispatcher);
	hub_free(g->hub);
	timekeeper_free(g->timekeeper);
	audit_free(g->audit);
	planner_free(g->planner);
	pauses_free(g->pauses);
	zones_free(g->zones);
	alarm_free(g->alarm);
	listener_free(g->listener);
	allow_free(g->allow);
	if (g->output_dir >= 0)
		close(g->output_dir);
	sd_event_unref(g->ev);
	free(g->spawner_program);
	free(g->machine);
	free(g->boot_id);
	free(g->labels);
	free(g->term_file);
	free(g->store_where);
	free(g->store_shown);
}

/* Which exit status tells a supervisor what to do about it. */
static int status_of(enum err_kind kind)
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
	g.store_where = o->config->store ? xstrdup(o->config->store)
					 : xprintf("%s/jobs.db", o->places->state_dir);
	g.store_shown = config_store_shown(g.store_where);
	g.machine = engine_machine(o->config);
	g.boot_id = engine_boot();
	g.clock = (struct clock){engine_realtime, engine_boottime, &g};
	g.spawner_program = o->user_mode ? places_spawner_program() : NULL;
	raise_descriptor_limit(o->config);
	status = sd_event_default(&g.ev);
	if (status < 0) {
		log_error("could not make an event loop");
		return 1;
	}
	sd_event_set_watchdog(g.ev, true);
	if (engine_labels(g.o.config->labels, &g.labels, &e) && start_parts(&g, &e)) {
		status = sd_event_loop(g.ev);
	} else if (g.stopping) {
		status = 0;
	} else {
		log_error("%s", e.msg);
		status = status_of(e.kind);
	}
	stop_parts(&g);
	return status < 0 ? 1 : status;
}
