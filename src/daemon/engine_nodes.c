/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the engine to the other nodes of its store. */
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/audit.h"
#include "daemon/api/run_feed.h"
#include "daemon/api/server.h"
#include "daemon/cluster/cluster.h"
#include "daemon/cluster/highest_term.h"
#include "daemon/cluster/output_relay.h"
#include "daemon/cluster/peer_wakeup.h"
#include "daemon/engine_private.h"
#include "daemon/loop/config.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/run_watch.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_risk.h"
#include "daemon/loop/store_thread.h"
#include "daemon/loop/store_watcher.h"
#include "daemon/schedule/dispatcher.h"
#include "store/backend/file_lock.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/runs.h"

/* A stopped node may hold the file for the lease plus this fraction of it. */
#define HOLD_MARGIN 5
#define ALONE_LEASES 8   /* the lease of the only node of a SQLite file is longer by this factor */

usec_t engine_offset(void *arg)
{
	const struct engine *g = arg;

	return g->cluster ? cluster_offset(g->cluster) : 0;
}

usec_t engine_realtime(void *arg)
{
	return clock_now(((struct engine *)arg)->o.clock) + engine_offset(arg);
}

usec_t engine_boottime(void *arg)
{
	return clock_boot(((struct engine *)arg)->o.clock);
}

bool engine_trusted(void *arg)
{
	return cluster_trusted(((struct engine *)arg)->cluster);
}

bool engine_has_peers(void *arg)
{
	return cluster_peers(((struct engine *)arg)->cluster) > 0;
}

bool engine_leads(void *arg)
{
	return cluster_leads(((struct engine *)arg)->cluster);
}

void engine_on_opened(int64_t others, void *arg)
{
	struct engine *g = arg;

	cluster_opened(g->cluster, others);
	if (g->peer_wakeup)
		peer_wakeup_send(g->peer_wakeup);
}

/*
 * Called before the node is registered. A later daemon that gets the lock then knows that the
 * daemon of this spawner has ended.
 */
void engine_on_spawner(const char *spawner, void *arg)
{
	const struct engine *g = arg;

	if (g->file_lock)
		file_lock_note_spawner(g->file_lock, spawner);
}

static void on_peer_wakeup(void *arg)
{
	cluster_renew_now(((struct engine *)arg)->cluster);
}

void engine_on_fenced(void *arg)
{
	cluster_renew_now(((struct engine *)arg)->cluster);
}

static void on_news(void *arg)
{
	cluster_look(((struct engine *)arg)->cluster);
}

bool engine_start_relays(struct engine *g, struct err *e)
{
	return output_relays_new(g->ev,
		&(struct output_relays_options){.store = g->store,
			.node_id = g->node_id,
			.output_dir = g->output_dir,
			.has_peers = engine_has_peers,
			.look = on_news,
			.arg = g},
		&g->relays, e);
}

static void on_store_changed(void *arg)
{
	struct engine *g = arg;

	run_watch_recheck(g->run_watch_set);
	run_feed_recheck(g->run_feed);
	audit_wake_followers(g->audit);
	if (g->relays)
		output_relays_recheck(g->relays);
	g->looked = true;
	if (g->taken_over && !g->server && !g->stopping)
		engine_serve(g);
}

static void on_lost(struct claimed *c, void *arg)
{
	dispatcher_record_lost(((struct engine *)arg)->dispatcher, c);
}

static void on_to_end(const struct run_change *r, void *arg)
{
	dispatcher_cancel(((struct engine *)arg)->dispatcher, r->run, r->fence);
}

static void on_given_up(void *arg)
{
	dispatcher_rejoin(((struct engine *)arg)->dispatcher);
}

/* While this node is the only one, no other process changes the store, and it is not watched. */
static void on_peers(void *arg)
{
	struct engine *g = arg;
	struct err e = {};

	if (!g->store_watcher && !store_watcher_new(g->ev, &g->clock, g->store_where, g->node_id,
					 on_news, g, &g->store_watcher, &e))
		log_warning("changes by other nodes are noticed late: %s", e.msg);
}

static void on_lease_deadline(usec_t end_at, usec_t kill_at, void *arg)
{
	const struct engine *g = arg;

	spawner_link_set_deadline(g->spawner, end_at, kill_at);
	net_client_set_deadline(g->net, end_at ? end_at : USEC_NEVER);
}

/* Waiting clients are told the reason. The work of the daemon itself is retried. */
static void on_away(const struct err *why, bool unknown, void *arg)
{
	struct engine *g = arg;

	store_thread_refuse_waiting(g->store, why);
	if (g->server)
		server_refuse_waiting(g->server, why, unknown);
}

static bool watch_store(struct engine *g, struct err *e)
{
	usec_t lease = g->o.config->lease * USEC_SEC;

	return store_outage_new(g->ev,
		&(struct store_outage_options){.threads = {g->store, g->leases},
			.clock = g->o.clock,
			.where = g->store_where,
			.hold_max = lease + lease / HOLD_MARGIN,
			.on_away = on_away,
			.arg = g},
		&g->store_outage, e);
}

bool engine_join(struct engine *g, struct err *e)
{
	bool server = config_store_is_server(g->store_where);

	if (server && !store_thread_start(g->ev,
			      &(struct store_thread_options){.where = g->store_where,
				      .clock = &g->clock,
				      .writer_only = true,
				      .lease = g->o.config->lease * USEC_SEC,
				      .on_fatal = engine_on_fatal,
				      .on_busy = engine_on_busy,
				      .arg = g},
			      &g->leases, e))
		return false;
	g->term_file = server ? xprintf("%s/term", g->o.paths->state_dir) : NULL;
	if (server)
		store_thread_expect_term(
			g->store, highest_term_read(g->term_file, store_thread_store_id(g->store)));
	if (!watch_store(g, e) || (server && !store_risk_watch(g->ev, g->store, g->store_outage, &g->clock, &g->store_risk, e)))
		return false;
	if (!server &&
		!peer_wakeup_new(g->ev, g->store_where, on_peer_wakeup, g, &g->peer_wakeup, e))
		return false;
	return cluster_new(g->ev,
		&(struct cluster_options){.store = g->store,
			.leases = server ? g->leases : g->store,
			.alone_ttl = server ? 0 : ALONE_LEASES * g->o.config->lease * USEC_SEC,
			.node_id = g->node_id,
			.node_name = g->o.node_name,
			.ttl = g->o.config->lease * USEC_SEC,
			.run_ttl = config_run_lease(g->o.config) * USEC_SEC,
			.barred = !g->o.config->may_lead,
			.term_file = g->term_file,
			.on_change = engine_on_change,
			.on_lost = on_lost,
			.on_to_end = on_to_end,
			.on_looked = on_store_changed,
			.on_given_up = on_given_up,
			.on_peers = on_peers,
			.on_deadline = on_lease_deadline,
			.on_exit = engine_on_exit,
			.arg = g},
		&g->cluster, e);
}
