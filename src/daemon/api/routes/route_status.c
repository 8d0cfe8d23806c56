/* SPDX-License-Identifier: Apache-2.0 */
/* Route that reports the status of the daemon. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/pause.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/crontab/crontabs.h"
#include "daemon/loop/config.h"
#include "daemon/api/store_read.h"
#include "daemon/archive/s3_client.h"
#include "daemon/cluster/cluster.h"
#include "daemon/loop/net_client.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_risk.h"
#include "daemon/schedule/clock_guard.h"
#include "daemon/schedule/concurrency.h"
#include "daemon/schedule/dispatcher.h"
#include "daemon/schedule/planner.h"
#include "store/ops/owners.h"
#include "store/pause_rows.h"
#include "store/read/list/list_nodes.h"
#include "store/store.h"
#include "wire/json_value.h"
#include "wire/row_json.h"
#include <string.h>

static const char *const clock_words[] = {
	[CLOCK_GOOD] = "ok",
	[CLOCK_UNSURE] = "unset",
	[CLOCK_WRONG] = "wrong",
};

struct status_query {
	struct store_read q;
	struct store_counts counts;
	int64_t number;      /* owner number of the caller */
	int64_t jobs, active; /* of the caller */
	struct node_list nodes;
	json_t *frozen; /* owned: the current freeze, or null */
};

static bool run_status(struct store *s, struct store_read *q, struct err *e)
{
	struct status_query *sq = (struct status_query *)q;
	AUTO_DONE(pause_list) all = {};

	if (!store_counts(s, &sq->counts, e) || !pause_rows_list(s, -1, &all, e) ||
		!owner_read_counts(s, sq->number, &sq->jobs, &sq->active, e) ||
		!list_nodes_open(s, &sq->nodes, e))
		return false;
	for (size_t i = 0; i < all.n && !sq->frozen; i++)
		if (all.v[i].scope == PAUSE_FREEZE)
			sq->frozen = row_json_pause(&all.v[i]);
	return true;
}

static void free_status(struct store_read *q)
{
	json_decref(((struct status_query *)q)->frozen);
	node_list_done(&((struct status_query *)q)->nodes);
	free((struct status_query *)q);
}

static json_t *counts_to_json(const struct store_counts *c, bool jobs)
{
	json_t *o = json_object();

	for (int i = 0; i < (jobs ? (int)JOB_STATE_MAX : (int)RUN_STATE_MAX); i++)
		json_object_set_new(o,
			jobs ? job_state_name((enum job_state)i)
			     : run_state_name((enum run_state)i),
			json_integer(jobs ? c->jobs[i] : c->runs[i]));
	return o;
}

/* Converts thousandths to a real number; null: not available on this machine. */
static json_t *figure(const struct machine_figures *m, enum machine_figure f)
{
	return m->thousandths[f] < 0 ? json_null() : json_real((double)m->thousandths[f] / 1000);
}

/* Adds the limits of this node with their reasons. */
static void write_limits(json_t *o, struct concurrency *g)
{
	struct concurrency_view v;
	json_t *machine = json_object();

	concurrency_get_view(g, &v);
	json_object_set_new(o, "max_running", json_integer((json_int_t)v.max_running));
	json_object_set_new(o, "max_running_auto", json_boolean(v.why != CAPACITY_PINNED));
	json_object_set_new(o, "max_running_why", json_string(capacity_why_words(v.why)));
	json_object_set_new(o, "owner_max_running",
		v.owner_max ? json_integer((json_int_t)v.owner_max) : json_null());
	for (int i = 0; i < MACHINE_FIGURE_MAX; i++)
		json_object_set_new(machine, policy_machine_figure_name((enum machine_figure)i),
			figure(concurrency_machine(g), (enum machine_figure)i));
	json_object_set_new(o, "machine", machine);
}

/* The caller and its role. */
static json_t *you_to_json(const struct request *r, const struct status_query *q)
{
	const char *name = client_user_name(r);

	return json_pack("{s:o, s:I, s:s, s:I, s:I}", "name", json_value_text(name), "uid",
		(json_int_t)r->who.uid, "role",
		r->context->user_mode ? "owner" : access_role_name(request_role(r)), "jobs",
		(json_int_t)q->jobs, "running", (json_int_t)q->active);
}

/* Hides the totals of all users, which would show the activity of other users. */
static void hide_totals(json_t *o)
{
	static const char *const totals[] = {
		"jobs", "runs", "in_flight", "room", "next_slot", "backlog", "notices"};

	for (size_t i = 0; i < ELEMENTS(totals); i++)
		json_object_set_new(o, totals[i], json_null());
}

/* The leader, and the share of this node in the schedule. */
static json_t *cluster_to_json(const struct server_context *c, const struct node_list *l)
{
	const struct node_view *mine = NULL;
	json_int_t alive = 0;
	json_t *o;

	for (size_t i = 0; i < l->n; i++) {
		alive += l->v[i].lease_remains > 0;
		if (text_equal(l->v[i].id, c->node_id))
			mine = &l->v[i];
	}
	o = json_pack("{s:o, s:I, s:o, s:I}", "leader", json_value_text(l->leader), "term",
		(json_int_t)l->term, "leader_lease_remains",
		l->leader ? json_value_seconds(l->lease_remains) : json_null(), "nodes", alive);
	json_object_set_new(o, "leads", json_boolean(mine && mine->leads));
	json_object_set_new(o, "draining", json_boolean(mine && mine->draining));
	json_object_set_new(o, "segments", json_integer(mine ? mine->segments : 0));
	json_object_set_new(o, "lease_remains",
		json_value_seconds(mine && mine->lease_remains > 0 ? mine->lease_remains : 0));
	json_object_set_new(o, "run_lease_remains",
		json_value_seconds(cluster_runs_remain(c->cluster)));
	json_object_set_new(o, "lease_age", json_value_seconds(cluster_lease_age(c->cluster)));
	json_object_set_new(o, "clock_offset", json_value_seconds(mine ? mine->skew : 0));
	json_object_set_new(o, "overdue", json_value_seconds(cluster_overdue(c->cluster, planner_next_slot(c->planner))));
	return o;
}

/* The location of the store, and since when it has been unavailable. */
static json_t *store_to_json(const struct server_context *c)
{
	struct err why = {};
	usec_t since = store_outage_since(c->store_outage, &why);

	return json_pack("{s:s, s:o, s:o, s:o, s:b, s:o, s:o}", "kind",
		text_starts(c->store_where, "postgres") ? "postgresql" : "sqlite", "place",
		json_value_text(c->store_where), "away_since", json_value_time(since), "away_why",
		since ? json_value_text(why.msg) : json_null(), "full",
		store_thread_no_room(c->store), "risk", json_value_text(store_risk_text(c->store_risk)),
		"held", json_value_text(store_risk_held(c->store_risk)));
}

/*
 * In user mode the daemon starts jobsched-net when it is needed, so a missing connection is not an
 * error.
 */
static json_t *crontabs_to_json(const struct server_context *c)
{
	struct crontabs_status s = {};

	if (c->crontabs)
		crontabs_status(c->crontabs, &s);
	return json_pack("{s:s, s:b, s:o}", "mode", config_crontabs_names[s.mode], "held", s.held, "cron", json_value_text(s.cron));
}

static json_t *net_to_json(const struct server_context *c)
{
	const char *down = c->net ? net_client_down(c->net) : NULL;

	return json_pack("{s:b, s:o}", "up", c->net && !down, "why",
		c->user_mode || !down ? json_null() : json_value_text(down));
}

static json_t *archive_to_json(const struct server_context *c)
{
	struct err why = {};
	usec_t since = c->s3 ? s3_client_failing(c->s3, &why) : 0;

	return json_pack("{s:o, s:o, s:o}", "place", json_value_text(c->archive), "failing_since", json_value_time(since),
		"failing_why", since ? json_value_text(why.msg) : json_null());
}

/* The part of the status that does not need the store. */
static json_t *own_status(const struct request *r)
{
	const struct server_context *c = r->context;
	struct dispatcher_counts d = {};
	struct spawner_link_health spawner;
	usec_t next = planner_next_slot(c->planner);
	json_t *o;

	dispatcher_counts(c->dispatcher, &d);
	spawner_link_health(c->spawner, &spawner);
	o = json_pack("{s:s, s:{s:o, s:o}, s:o, s:o, s:I, s:I, s:b, s:o, s:s, s:I, s:s}",
		"version", PACKAGE_VERSION,
		"node", "name", json_value_text(c->node_name), "id", json_value_text(c->node_id),
		"store", store_to_json(c),
		"uptime", json_value_seconds(clock_boot(c->clock) - request_started(r)),
		"in_flight", (json_int_t)d.in_flight,
		"room", (json_int_t)d.room,
		"spawner_up", d.spawner_up && !spawner.why[0],
		"next_slot", json_value_time(next == USEC_NEVER ? 0 : next),
		"clock", clock_words[clock_guard_trust(c->clock_guard)],
		"backlog", (json_int_t)store_thread_backlog(c->store),
		"mode", c->user_mode ? "user" : "system");
	if (!d.refused)
		d.refused = planner_refused(c->planner, &d.refused_since);
	json_object_set_new(o, "net", net_to_json(c));
	json_object_set_new(o, "archive", archive_to_json(c));
	json_object_set_new(o, "crontabs", crontabs_to_json(c));
	json_object_set_new(o, "spawner_why", json_value_text(spawner.why[0] ? spawner.why : NULL));
	json_object_set_new(o, "spawner_stopped",
		spawner.stopped ? json_integer(spawner.stopped) : json_null());
	json_object_set_new(o, "stuck_since", json_value_time(d.refused ? d.refused_since : 0));
	json_object_set_new(o, "stuck_why", json_value_text(d.refused));
	write_limits(o, c->concurrency);
	return o;
}

static void answer_status(struct request *r, struct store_read *q)
{
	const struct server_context *c = r->context;
	const struct store_counts *counts = &((struct status_query *)q)->counts;
	json_t *o = own_status(r), *frozen = ((struct status_query *)q)->frozen;

	json_object_set_new(o, "jobs", counts_to_json(counts, true));
	json_object_set_new(o, "runs", counts_to_json(counts, false));
	json_object_set_new(o, "cluster", cluster_to_json(c, &((struct status_query *)q)->nodes));
	json_object_set_new(o, "notices",
		json_pack("{s:I, s:I}", "waiting", (json_int_t)counts->notices[NOTICE_WAITING],
			"failed", (json_int_t)counts->notices[NOTICE_FAILED]));
	json_object_set(o, "frozen", frozen ? frozen : json_null());
	json_object_set_new(o, "you", you_to_json(r, (struct status_query *)q));
	if (!request_sees_all(r))
		hide_totals(o);
	request_answer_json(r, 200, o);
}

/*
 * Responds while the store is unavailable. The members from the store are null. The caller's number
 * is in the store, so the totals are shown to root and administrators only.
 */
static void answer_away(struct request *r)
{
	static const char *const unknown[] = {
		"jobs", "runs", "cluster", "notices", "frozen", "you"};
	json_t *o = own_status(r);

	if (!r->context->user_mode && r->who.uid != 0 && !r->who.admin)
		hide_totals(o);
	for (size_t i = 0; i < ELEMENTS(unknown); i++)
		json_object_set_new(o, unknown[i], json_null());
	request_answer_json(r, 200, o);
}

void route_status(struct request *r)
{
	struct status_query *s;

	if (store_outage_since(r->context->store_outage, NULL)) {
		answer_away(r);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->number = request_owner(r);
	s->q.run = run_status;
	s->q.then = answer_status;
	s->q.free = free_status;
	store_read_start(r, &s->q);
}
