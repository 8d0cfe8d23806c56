/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the state of this node for a scrape of its metrics. */
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "core/decide/machine_conditions.h"
#include "daemon/api/route.h"
#include "daemon/cluster/cluster.h"
#include "daemon/engine_private.h"
#include "daemon/loop/config.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_risk.h"
#include "daemon/loop/store_thread.h"
#include "daemon/metrics/metrics.h"
#include "daemon/schedule/clock_guard.h"
#include "daemon/schedule/concurrency.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/planner.h"
#include "daemon/trace/spans.h"
#include <string.h>
#include <unistd.h>

#define GROUP_ROOT "/sys/fs/cgroup"
#define SPAWNER_GROUP GROUP_ROOT "/system.slice/jobsched-spawner.service"
#define OWN_GROUP_MAX 4096

static void set_one(struct metrics_snapshot *s, enum metric id, int64_t value)
{
	metrics_snapshot_set(s, id, 0, 0, value);
}

static void collect_cluster(struct metrics_snapshot *s, const struct engine *g)
{
	set_one(s, METRIC_LEADER, cluster_leads(g->cluster));
	set_one(s, METRIC_LEASE, cluster_lease_remain(g->cluster));
	set_one(s, METRIC_RUN_LEASE, cluster_runs_remain(g->cluster));
	set_one(s, METRIC_PEERS, cluster_peers(g->cluster));
	set_one(s, METRIC_CLOCK_OFFSET, cluster_offset(g->cluster));
	set_one(s, METRIC_OVERDUE, cluster_overdue(g->cluster, planner_next_slot(g->planner)));
	set_one(s, METRIC_SEGMENTS, METRICS_UNKNOWN); /* replaced if the store answers */
	set_one(s, METRIC_DRAINING, METRICS_UNKNOWN);
}

static void collect_runs(struct metrics_snapshot *s, struct engine *g)
{
	const struct machine_figures *machine = concurrency_machine(g->concurrency);
	struct spawner_link_health spawner;
	struct dispatcher_counts d;
	struct concurrency_view v;

	dispatcher_counts(g->dispatcher, &d);
	spawner_link_health(g->spawner, &spawner);
	concurrency_get_view(g->concurrency, &v);
	set_one(s, METRIC_SPAWNER_UP, d.spawner_up && !spawner.why[0]);
	set_one(s, METRIC_WORKERS, (int64_t)d.in_flight);
	set_one(s, METRIC_WORKERS_MAX, (int64_t)v.max_running);
	set_one(s, METRIC_SPOOL, (int64_t)d.unrecorded);
	for (size_t i = 0; i < MACHINE_FIGURE_MAX; i++)
		metrics_snapshot_set(s, METRIC_MACHINE, i, 0,
			machine->thousandths[i] < 0 ? METRICS_UNKNOWN : machine->thousandths[i]);
}

/* Before the API starts, and so before the first scrape, all parts exist. */
static void on_collect(struct metrics_snapshot *s, void *arg)
{
	struct engine *g = arg;

	set_one(s, METRIC_BUILD, 1);
	set_one(s, METRIC_NODE, 1);
	set_one(s, METRIC_START_TIME, g->started_at);
	set_one(s, METRIC_CLOCK_TRUSTED, clock_guard_trust(g->clock_guard) == CLOCK_GOOD);
	set_one(s, METRIC_STORE_UP, store_outage_since(g->store_outage, NULL) == 0);
	set_one(s, METRIC_STORE_BACKLOG, (int64_t)store_thread_backlog(g->store));
	set_one(s, METRIC_STORE_FULL, store_thread_no_room(g->store));
	set_one(s, METRIC_STORE_RISK, store_risk_text(g->store_risk) != NULL);
	set_one(s, METRIC_NET_UP, net_client_connected(g->net));
	set_one(s, METRIC_SPANS_WAITING, (int64_t)spans_waiting(g->spans));
	collect_cluster(s, g);
	collect_runs(s, g);
}

/* In user mode the workers are in the control group of the daemon, or below it. */
static char *own_group(void)
{
	AUTO_DONE(buf) text = {};
	const char *path;

	if (io_read_file("/proc/self/cgroup", &text, OWN_GROUP_MAX) < 0 || text.len == 0)
		return NULL;
	path = strstr(text.data, "0::/");
	return path ? xprintf(GROUP_ROOT "%.*s", (int)strcspn(path + 3, "\n"), path + 3) : NULL;
}

void engine_metrics_new(struct engine *g)
{
	const struct config *c = g->o.config;
	struct strv names = {};

	for (size_t i = 0; i < routes_count; i++)
		strv_take(&names, xprintf("%s %s", routes[i].method, routes[i].path));
	strv_add(&names, "other");
	g->started_at = clock_now(g->o.clock);
	g->metrics = metrics_new((const char *const *)names.v, names.n);
	strv_done(&names);
	g->metrics_group = g->o.user_mode ? own_group() : xstrdup(SPAWNER_GROUP);
	g->metrics_source = (struct metrics_source){.metrics = g->metrics,
		.clock = &g->clock,
		.collect = on_collect,
		.arg = g,
		.ask = {.jobs = (enum metric_job_choice)c->metrics_jobs,
			.jobs_max = (size_t)c->metrics_jobs_max,
			.one_owner = g->o.user_mode},
		.labels = {.version = PACKAGE_VERSION,
			.node = g->o.node_name,
			.backend = config_store_is_server(g->store_where) ? "postgresql" : "sqlite"},
		.node_id = g->node_id,
		.group = g->metrics_group};
}

void engine_metrics_free(struct engine *g)
{
	metrics_free(g->metrics);
	free(g->metrics_group);
}
