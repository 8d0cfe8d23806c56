/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the parts of the engine in order; frees them at the end. */
#include "base/err.h"
#include "base/log.h"
#include "daemon/api/allow_list.h"
#include "daemon/api/audit.h"
#include "daemon/api/listener.h"
#include "daemon/api/run_feed.h"
#include "daemon/api/server.h"
#include "daemon/api/startup_responder.h"
#include "daemon/api/submit/zone_caches.h"
#include "daemon/archive/s3_client.h"
#include "daemon/artifact/artifact_requests.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/output_relay.h"
#include "daemon/cluster/peer_wakeup.h"
#include "daemon/crontab/crontabs.h"
#include "daemon/engine_private.h"
#include "daemon/loop/alarm.h"
#include "daemon/loop/lock_guard_process.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/program_paths.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_risk.h"
#include "daemon/loop/store_thread.h"
#include "daemon/loop/store_watcher.h"
#include "daemon/metrics_textfile.h"
#include "daemon/notify/notifier.h"
#include "daemon/retention/retention.h"
#include "daemon/schedule/clock_guard.h"
#include "daemon/schedule/concurrency.h"
#include "daemon/schedule/callbacks.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/expiry.h"
#include "daemon/schedule/pause_timer.h"
#include "daemon/schedule/planner.h"
#include "daemon/trace/spans.h"
#include "store/backend/db.h"
#include "store/backend/file_lock.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define STORE_RETRY USEC_SEC /* between attempts to open the store at start */

/* A user's own daemon has no other users to restrict. */
static const char *lambda_functions(const struct engine *g)
{
	const char *list = g->o.config->lambda_functions;

	return list || !g->o.user_mode ? list : "*";
}

void engine_serve(struct engine *g)
{
	struct server_limits limits = engine_server_limits(g->o.config);
	struct server_context context = {
		.clock = &g->clock,
		.store = g->store,
		.audit = g->audit,
		.allow = g->allow,
		.admin_group =
			g->o.config->admin_group ? g->o.config->admin_group : ADMIN_GROUP_DEFAULT,
		.cluster = g->cluster,
		.store_outage = g->store_outage,
		.store_risk = g->store_risk,
		.dispatcher = g->dispatcher,
		.spawner = g->spawner,
		.concurrency = g->concurrency,
		.crontabs = g->crontabs,
		.run_watch_set = g->run_watch_set,
		.run_feed = g->run_feed,
		.metrics = g->metrics,
		.metrics_source = &g->metrics_source,
		.net = g->net,
		.planner = g->planner,
		.relays = g->relays,
		.retention = g->retention,
		.archive = g->o.config->archive,
		.s3 = g->s3,
		.state_dir = g->o.paths->state_dir,
		.sendmail = g->o.config->sendmail ? g->o.config->sendmail : SENDMAIL_DEFAULT,
		.clock_guard = g->clock_guard,
		.zones = g->zones,
		.node_name = g->o.node_name,
		.node_id = g->node_id,
		.store_where = g->store_shown,
		.http_allow = g->o.config->http_allow,
		.s3_artifacts = g->o.config->s3_artifacts,
		.http_proxy = g->o.config->http_proxy != NULL,
		.lambda_functions = lambda_functions(g),
		.callbacks = g->callbacks,
		.output_dir = g->output_dir,
		.user_mode = g->o.user_mode,
	};
	struct err e = {};

	if (g->stopping)
		return;
	if (!server_start(
		    g->ev, listener_take_fd(g->listener), &context, &limits, &g->server, &e) ||
		!engine_serve_tcp(g, &e)) {
		log_error("%s", e.msg);
		engine_on_exit(1, g);
		return;
	}
	if (g->o.config->metrics_textfile && !metrics_textfile_start(g->ev, g->store, g->store_outage, &g->metrics_source,
		    g->o.config->metrics_textfile, g->o.config->metrics_textfile_interval * USEC_SEC, &g->textfile, &e))
		log_error("%s", e.msg);
	clock_guard_start(g->clock_guard, dispatcher_last_seen(g->dispatcher));
	planner_boot(g->planner, g->o.node_name);
	if (g->crontabs)
		crontabs_start(g->crontabs);
	log_info("ready: %s, store %s", g->o.paths->socket, g->store_shown);
	sd_notify(0, "READY=1\nSTATUS=ready");
}

/*
 * The API starts when the runs are taken over and the segments are known, so that a job is planned
 * as soon as it is submitted.
 */
static void on_ready(void *arg)
{
	struct engine *g = arg;

	g->taken_over = true;
	net_client_connect(g->net); /* the artifacts in use are known now */
	if (g->looked && !g->server)
		engine_serve(g);
}

/* ---- notices ---- */

static bool start_notifier(struct engine *g, struct err *e)
{
	return notifier_new(g->ev,
		&(struct notifier_options){.clock = &g->clock,
			.store = g->store,
			.net = g->net,
			.config = g->o.config,
			.node_id = g->node_id,
			.node_name = g->o.node_name,
			.shared = !g->o.user_mode,
			.metrics = g->metrics,
			.output_dir = -1,
			.spawner = g->spawner},
		&g->notifier, e);
}

/* ---- jobsched-net ---- */

static void on_net_synced(void *arg)
{
	struct engine *g = arg;

	notifier_net_synced(g->notifier);
	if (g->dispatcher)
		dispatcher_net_synced(g->dispatcher);
}

static bool start_net(struct engine *g, struct err *e)
{
	const struct paths *p = g->o.paths;

	g->net_program = g->o.user_mode ? program_paths_net() : NULL;
	return net_client_new(g->ev,
		&(struct net_client_options){.clock = &g->clock,
			.node = g->node_id,
			.socket = p->net_socket,
			.program = g->net_program,
			.runtime_dir = p->net_dir,
			.state_dir = p->net_state,
			.budget = g->o.config->artifact_budget,
			.synced = on_net_synced,
			.arg = g},
		&g->net, e);
}

/* ---- spans ---- */

static bool start_spans(struct engine *g, struct err *e)
{
	const struct config *c = g->o.config;

	return !c->otlp || spans_new(g->ev,
		&(struct spans_options){.net = g->net,
			.metrics = g->metrics,
			.clock = &g->clock,
			.url = c->otlp,
			.node_name = g->o.node_name,
			.queue = (size_t)c->otlp_queue,
			.interval = c->otlp_interval * USEC_SEC},
		&g->spans, e);
}

/* ---- artifacts ---- */

static void on_artifact(int64_t run, int64_t fence, int tree, const struct err *why, void *arg)
{
	struct engine *g = arg;

	dispatcher_artifact_done(g->dispatcher, run, fence, tree, why);
	engine_on_change(g);
}

static void on_artifact_file(int64_t run, int64_t fence, int socket, void *arg)
{
	dispatcher_artifact_file(((struct engine *)arg)->dispatcher, run, fence, socket);
}

static void on_artifact_hold(void *arg)
{
	dispatcher_artifacts_hold(((struct engine *)arg)->dispatcher);
}

static struct s3_place storage_place(const struct config *c)
{
	return (struct s3_place){.endpoint = c->s3_endpoint,
		.region = c->s3_region ? c->s3_region : S3_REGION_DEFAULT,
		.addressing = (int)c->s3_addressing};
}

static void start_archive(struct engine *g)
{
	const struct config *c = g->o.config;

	if (c->archive && text_starts(c->archive, "s3://"))
		g->s3 = s3_client_new(g->ev, &(struct s3_client_options){.clock = &g->clock,
			.net = g->net,
			.metrics = g->metrics,
			.place = storage_place(c),
			.archive = c->archive});
}

static void start_artifacts(struct engine *g)
{
	const struct config *c = g->o.config;

	g->artifacts = artifact_requests_new(&(struct artifact_requests_options){.clock = &g->clock,
		.net = g->net,
		.limit = c->artifact_limit,
		.timeout = c->artifact_timeout * USEC_SEC,
		.s3 = storage_place(c),
		.s3_artifacts = c->s3_artifacts,
		.on_done = on_artifact,
		.on_file = on_artifact_file,
		.on_hold = on_artifact_hold,
		.arg = g});
}

/* ---- output ---- */

static bool on_forget_output(int64_t run, int64_t attempt, void *arg)
{
	return spawner_link_forget_output(((struct engine *)arg)->spawner, run, attempt);
}

static bool start_retention(struct engine *g, struct err *e)
{
	return retention_new(g->ev, &(struct retention_options){
		.clock = &g->clock,
		.store = g->store,
		.limits = engine_retention_limits(g),
		.archive = g->o.config->archive,
		.s3 = g->s3,
		.archive_outputs = g->o.config->output_archive,
		.node_name = g->o.node_name,
		.may = engine_leads,
		.output_dir = g->output_dir,
		.forget = on_forget_output,
		.arg = g,
	}, &g->retention, e);
}

/* ---- start and end ---- */

/*
 * Typical errors in a unit without network access. The messages themselves do not mention the unit.
 */
static bool lacks_network(const struct engine *g, const struct err *why)
{
	return !g->o.user_mode && (strstr(why->msg, "Address family not supported") ||
					  strstr(why->msg, "could not translate host name"));
}

/*
 * Waits for a store that cannot be reached. The daemon reports itself ready meanwhile and answers
 * clients with the reason, so that the unit does not fail when a machine boots before its database
 * server. False without an error: told to stop.
 */
static bool open_store(struct engine *g, const struct store_thread_options *o, struct err *e)
{
	AUTO(startup_responder) *room = NULL;

	while (!store_thread_start(g->ev, o, &g->store, e)) {
		usec_t until = clock_boot(g->o.clock) + STORE_RETRY, now;
		struct err why = *e;

		if (e->kind != ERR_UNREACHABLE ||
			(!room &&
				!startup_responder_new(g->ev, listener_fd(g->listener), &room, e)))
			return false;
		if (lacks_network(g, &why))
			err_set(&why, why.kind,
				"%s (the unit may lack network access: see network.conf in jobschedd(8))",
				e->msg);
		if (startup_responder_set_reason(room, &why)) {
			log_error("%s; retrying until the store answers", why.msg);
			sd_notifyf(0, "READY=1\nSTATUS=%s", why.msg);
		}
		while ((now = clock_boot(g->o.clock)) < until && !g->stopping)
			sd_event_run(g->ev, (uint64_t)(until - now));
		*e = (struct err){};
		if (g->stopping)
			return false;
	}
	return true;
}

static bool make_spawner_link(struct engine *g, struct err *e)
{
	const struct paths *p = g->o.paths;

	return spawner_link_new(g->ev,
		&(struct spawner_link_options){.node_id = g->node_id,
			.socket = p->spawner_socket,
			.program = g->spawner_program,
			.runtime_dir = p->runtime_dir,
			.output_dir = p->output_dir,
			.offset = engine_offset,
			.on_change = engine_on_change,
			.on_exit = engine_on_exit,
			.arg = g},
		&g->spawner, e);
}

static bool make_dispatcher(struct engine *g, struct err *e)
{
	const struct dispatcher_options o = {
		.clock = &g->clock,
		.store = g->store,
		.run_watch_set = g->run_watch_set,
		.artifacts = g->artifacts,
		.net = g->net,
		.http_allow = g->o.config->http_allow,
		.http_proxy = g->o.config->http_proxy,
		.lambda_functions = lambda_functions(g),
		.lambda_endpoint = g->o.config->lambda_endpoint,
		.callbacks = g->callbacks,
		.spawner = g->spawner,
		.metrics = g->metrics,
		.spans = g->spans,
		.node_id = g->node_id,
		.node_name = g->o.node_name,
		.output_dir = g->o.paths->output_dir,
		.lease = g->o.config->lease * USEC_SEC,
		.run_lease = config_run_lease(g->o.config) * USEC_SEC,
		.labels = g->labels,
		.barred = !g->o.config->may_lead,
		.boot_id = g->boot_id,
		.machine = g->machine,
		.others = engine_has_peers,
		.trusted = engine_trusted,
		.past_spawners = g->file_lock ? file_lock_past_spawners(g->file_lock) : NULL,
		.in_use = g->file_lock && file_lock_in_use(g->file_lock),
		.on_spawner = engine_on_spawner,
		.on_opened = engine_on_opened,
		.on_fenced = engine_on_fenced,
		.on_ready = on_ready,
		.on_change = engine_on_change,
		.on_exit = engine_on_exit,
		.arg = g,
	};

	if (!dispatcher_new(g->ev, &o, &g->dispatcher, e))
		return false;
	dispatcher_set_output_max(g->dispatcher, g->o.config->output_limit);
	dispatcher_set_owner_store(g->dispatcher, g->o.user_mode ? 0 : g->o.config->owner_store_limit);
	return true;
}

/*
 * Opens the store. Signals are blocked before the first thread starts, and the socket accepts
 * clients meanwhile.
 */
static bool start_store(struct engine *g, struct err *e)
{
	const struct paths *p = g->o.paths;
	const struct store_thread_options o = {.where = g->store_where,
		.clock = &g->clock,
		.machine = g->machine,
		.takeover = g->o.takeover,
		.no_checkpoint = true,
		.note_all = g->o.config->metrics_jobs == METRIC_JOBS_ALL,
		.metrics = g->metrics,
		.on_wake = engine_on_wake,
		.on_fatal = engine_on_fatal,
		.on_events = engine_on_events,
		.on_op = engine_on_op,
		.on_delivered = engine_on_delivered,
		.on_busy = engine_on_busy,
		.arg = g};

	g->audit = audit_new(g->ev, &g->clock);
	if (!g->o.user_mode)
		g->allow = allow_list_new(g->o.config->allow_file ? g->o.config->allow_file
								  : JOBSCHED_SYSCONFDIR "/allow",
			g->o.config->deny_file ? g->o.config->deny_file
					       : JOBSCHED_SYSCONFDIR "/deny");
	if (!engine_watch_signals(g, e) || !engine_lock_store(g, e) ||
		!listener_open(
			p->runtime_dir, p->socket, g->o.user_mode ? 0600 : 0666, &g->listener, e) ||
		!listener_watch(g->listener, g->ev, e) || !engine_open_tcp(g, e) ||
		!alarm_new(g->ev, engine_on_alarm, g, &g->alarm, e) || !open_store(g, &o, e) ||
		!engine_publish_socket(g, e))
		return false;
	audit_set_store(g->audit, g->store);
	engine_bound_results(g);
	return true;
}

bool engine_start(struct engine *g, struct err *e)
{
	const char *output = g->o.paths->output_dir;
	struct concurrency_rules rules;

	db_process_init();
	engine_metrics_new(g);
	if (!start_store(g, e) || !engine_join(g, e))
		return false;
	g->planner = planner_new(&g->clock, g->store, g->node_id);
	g->clock_guard = clock_guard_new(&(struct clock_guard_options){.clock = &g->clock,
		.store = g->store,
		.schedule_cache = planner_schedule_cache(g->planner),
		.wait = g->o.config->time_sync_wait * USEC_SEC,
		.others = engine_has_peers,
		.on_change = engine_on_change,
		.arg = g});
	g->pause_timer = pause_timer_new(&g->clock, g->store);
	g->zones = zone_caches_new();
	g->run_watch_set = run_watch_set_new();
	g->run_feed = run_feed_new(&(struct run_feed_options){.ev = g->ev,
		.clock = &g->clock,
		.store = g->store,
		.watches = g->run_watch_set,
		.node_name = g->o.node_name});
	g->expiry = expiry_new(&g->clock, g->store, g->run_watch_set);
	if (!start_net(g, e) || !start_spans(g, e))
		return false;
	start_artifacts(g);
	start_archive(g);
	if (g->o.config->http_callback_url &&
		!callbacks_new(g->o.config->http_callback_url, g->o.paths->state_dir, &g->callbacks, e))
		return false;
	if (!make_spawner_link(g, e) || !make_dispatcher(g, e))
		return false;
	if (g->o.user_mode && g->o.config->crontabs != CRONTABS_OFF)
		log_warning("'crontabs' is for the system service and has no effect in a daemon of one user");
	if (!g->o.user_mode)
		g->crontabs = crontabs_new(&(struct crontabs_options){.clock = &g->clock,
			.store = g->store,
			.spawner = g->spawner,
			.dispatcher = g->dispatcher,
			.on_change = engine_on_tables,
			.arg = g,
			.mode = g->o.config->crontabs,
			.shared = config_store_is_server(g->store_where)});
	rules = engine_concurrency_rules(g);
	g->concurrency = concurrency_new(&g->clock, g->dispatcher, &rules);
	if (!start_notifier(g, e) || !dispatcher_start(g->dispatcher, e))
		return false;
	g->output_dir = open(output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->output_dir < 0)
		return err_errno(e, errno, "could not open the output directory '%s'", output);
	notifier_set_output_dir(g->notifier, g->output_dir);
	return engine_start_relays(g, e) && start_retention(g, e);
}

void engine_end(struct engine *g)
{
	server_free(g->server);
	run_feed_stop(g->run_feed);
	metrics_textfile_stop(g->textfile);
	store_risk_stop(g->store_risk);
	if (g->relays)
		output_relays_stop(g->relays);
	if (g->spawner)
		spawner_link_stop(g->spawner);
	if (g->dispatcher)
		dispatcher_stop(g->dispatcher);
	if (g->notifier)
		notifier_stop(g->notifier);
	if (g->crontabs)
		crontabs_stop(g->crontabs);
	if (g->audit)
		audit_set_store(g->audit, NULL);
	if (g->retention)
		retention_stop(g->retention);
	peer_wakeup_free(g->peer_wakeup);
	store_watcher_free(g->store_watcher);
	store_outage_free(STEAL(g->store_outage));
	lock_guard_process_free(STEAL(g->guard));
	store_thread_leave(g->leases); /* both before the first is waited for */
	store_thread_leave(g->store);
	store_thread_free(g->leases);
	/* completes queued operations, so before the parts that submitted them are freed */
	store_thread_free(g->store);
	engine_unlock_store(g);
	metrics_textfile_free(g->textfile);
	store_risk_free(g->store_risk);
	cluster_free(g->cluster);
	output_relays_free(g->relays);
	concurrency_free(g->concurrency);
	retention_free(g->retention);
	s3_client_free(g->s3);
	notifier_free(g->notifier);
	crontabs_free(g->crontabs);
	artifact_requests_free(g->artifacts);
	callbacks_free(g->callbacks);
	spans_free(g->spans);
	net_client_free(g->net);
	free(g->net_program);
	dispatcher_free(g->dispatcher);
	spawner_link_free(g->spawner);
	run_feed_free(g->run_feed);
	run_watch_set_free(g->run_watch_set);
	clock_guard_free(g->clock_guard);
	audit_free(g->audit);
	planner_free(g->planner);
	pause_timer_free(g->pause_timer);
	expiry_free(g->expiry);
	zone_caches_free(g->zones);
	alarm_free(g->alarm);
	engine_end_tcp(g);
	listener_free(g->listener);
	allow_list_free(g->allow);
	if (g->output_dir >= 0)
		close(g->output_dir);
	engine_metrics_free(g);
	sd_event_unref(g->ev);
	free(g->spawner_program);
	free(g->machine);
	free(g->boot_id);
	free(g->labels);
	free(g->term_file);
	free(g->store_where);
	free(g->store_shown);
}
