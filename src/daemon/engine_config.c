/* SPDX-License-Identifier: Apache-2.0 */
/* Applies configuration values to the parts of the engine. */
#include "base/auto.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/artifact/artifact_requests.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/config.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/crontab/crontabs.h"
#include "daemon/engine_private.h"
#include "daemon/schedule/concurrency.h"
#include "daemon/schedule/planner.h"
#include "daemon/retention/retention.h"
#include "daemon/api/server.h"
#include "daemon/loop/store_thread.h"
#include "daemon/schedule/clock_guard.h"
#include "daemon/api/submit/zone_caches.h"

#define OWNER_PERCENT 75 /* of the node, for one owner, in a system service */

struct server_limits engine_server_limits(const struct config *c)
{
	return (struct server_limits){
		.connections = (size_t)c->connections,
		.connections_per_uid = (size_t)c->connections_per_uid,
		.connections_reserved = (size_t)c->connections_reserved,
		.bodies_per_uid = (size_t)c->bodies_per_uid,
		.bodies_total = (size_t)c->bodies_total,
		.body = (size_t)c->body_limit,
		.bulk_body = (size_t)c->bulk_body_limit,
		.bulk_jobs = (size_t)c->bulk_jobs,
		.jobs_per_uid = (size_t)c->jobs_per_uid,
		.owner_store = c->owner_store_limit,
		.submissions_per_second = (size_t)c->submissions_per_second,
		.submissions_burst = (size_t)c->submissions_burst,
		.head_timeout = (int)c->head_timeout,
		.body_timeout = (int)c->body_timeout,
	};
}

void engine_bound_results(struct engine *g)
{
	const struct config *c = g->o.config;

	store_thread_bound_results(
		g->store, c->answers_per_uid, g->o.user_mode ? 0 : c->answers_total);
}

struct concurrency_rules engine_concurrency_rules(const struct engine *g)
{
	const struct config *c = g->o.config;
	int64_t share = g->o.user_mode ? 0 : -OWNER_PERCENT;

	return (struct concurrency_rules){.max_running = c->max_running,
		.owner_max_running =
			c->owner_max_running == CONFIG_SHARE_AUTO ? share : c->owner_max_running};
}

struct retention_limits engine_retention_limits(const struct engine *g)
{
	const struct config *c = g->o.config;

	return (struct retention_limits){
		.keep = {.age = c->keep_days * USEC_DAY,
			.runs = c->keep_runs,
			.dead_age = c->keep_dead_days * USEC_DAY},
		.store_budget = c->store_budget,
		.owner_store_limit = g->o.user_mode ? 0 : c->owner_store_limit,
		.output_budget = c->output_budget,
	};
}

void engine_apply_config(struct engine *g, const struct config *fresh)
{
	AUTO_DONE(strv) need_restart = {};
	struct retention_limits keep;
	struct server_limits limits;
	struct concurrency_rules rules;

	config_reload(g->o.config, fresh, &need_restart);
	for (size_t i = 0; i < need_restart.n; i++)
		log_warning(
			"the new value of '%s' takes effect after a restart", need_restart.v[i]);
	log_set_level((enum log_level)g->o.config->log_level);
	log_set_format((enum log_format)g->o.config->log_format);
	planner_invalidate(g->planner); /* tzdata may have been updated */
	zone_caches_forget(g->zones, g->store);
	clock_guard_set_wait(g->clock_guard, g->o.config->time_sync_wait * USEC_SEC);
	rules = engine_concurrency_rules(g);
	concurrency_set_rules(g->concurrency, &rules);
	dispatcher_set_output_max(g->dispatcher, g->o.config->output_limit);
	dispatcher_set_owner_store(g->dispatcher, g->o.user_mode ? 0 : g->o.config->owner_store_limit);
	artifact_requests_set_limits(g->artifacts, g->o.config->artifact_limit,
		g->o.config->artifact_timeout * USEC_SEC);
	net_client_set_budget(g->net, g->o.config->artifact_budget);
	keep = engine_retention_limits(g);
	if (g->retention)
		retention_set_limits(g->retention, &keep);
	if (g->crontabs)
		crontabs_set_mode(g->crontabs, g->o.config->crontabs);
	engine_bound_results(g);
	limits = engine_server_limits(g->o.config);
	if (g->server) {
		server_set_limits(g->server, &limits);
		server_find_admins(g->server);
	}
	log_info("configuration reloaded");
}
