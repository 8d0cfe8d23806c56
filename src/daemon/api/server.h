/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server on the Unix socket: connections, identities, bodies, and the route table. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allow_list;
struct audit;
struct clock;
struct cluster;
struct dispatcher;
struct err;
struct concurrency;
struct run_watch_set;
struct store_outage;
struct planner;
struct output_relays;
struct retention;
struct sd_event;
struct server;
struct spawner_link;
struct store_thread;
struct clock_guard;
struct zone_caches;

/* What the routes may use; everything is borrowed and outlives the server. */
struct server_context {
	const struct clock *clock;
	struct store_thread *store;
	struct audit *audit;       /* NULL: nobody keeps one */
	struct allow_list *allow;       /* the site's lists; NULL: everybody may */
	const char *admin_group;   /* NULL: only root is an administrator */
	const struct cluster *cluster; /* NULL: there is none */
	const struct store_outage *store_outage;   /* NULL: the store always answers */
	struct dispatcher *dispatcher;
	struct spawner_link *spawner;
	struct concurrency *concurrency;
	struct run_watch_set *run_watch_set;
	const struct net_client *net; /* NULL: there is none */
	const struct planner *planner;
	struct output_relays *relays;     /* NULL: this node is always alone */
	struct retention *retention; /* NULL: history is kept for ever */
	const char *state_dir;
	const char *sendmail;      /* the mail program; NULL: not known */
	const struct clock_guard *clock_guard; /* NULL: the clock is right */
	struct zone_caches *zones;
	const char *node_name, *node_id;
	const char *store_where;   /* as it may be shown: without a password */
	int output_dir;            /* descriptor of the spawner's output directory */
	bool user_mode;            /* only our own uid is served, and the quotas do not apply */
};
struct server_limits {             /* config keys of the same names */
	size_t connections, connections_per_uid, connections_reserved;
	size_t body, bulk_body, bulk_jobs;
	size_t bodies_per_uid, bodies_total; /* bytes */
	size_t jobs_per_uid, submissions_per_second, submissions_burst;
	int64_t owner_store; /* bytes; 0: no limit */
	int head_timeout, body_timeout; /* seconds */
};

bool server_start(struct sd_event *ev, int listen_fd /* moved */, const struct server_context *c,
	const struct server_limits *l, struct server **ret, struct err *e);
void server_set_limits(struct server *s, const struct server_limits *l); /* after a reload */
void server_find_admins(struct server *s); /* looks the group up again, off the loop */
/* No further connections, and requests are answered with 503; what is on its way to the store is answered still. */
void server_stop(struct server *s);
/* The store is away: those who wait for it are told why; those whose change is under way once nobody can know what came of it. */
void server_refuse_waiting(struct server *s, const struct err *why, bool unknown);
void server_free(struct server *s); /* those who still wait are answered with 503, or told that the outcome is unknown */
AUTO_DEFINE(server);
