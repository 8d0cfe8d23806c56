/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP server on the API socket. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allow_list;
struct audit;
struct callbacks;
struct clock;
struct cluster;
struct dispatcher;
struct err;
struct metrics;
struct metrics_source;
struct concurrency;
struct crontabs;
struct run_feed;
struct run_watch_set;
struct store_outage;
struct store_risk;
struct planner;
struct output_relays;
struct retention;
struct s3_client;
struct sd_event;
struct server;
struct spawner_link;
struct store_thread;
struct clock_guard;
struct zone_caches;

/* The parts that routes use. All pointers are borrowed and outlive the server. */
struct server_context {
	const struct clock *clock;
	struct store_thread *store;
	struct audit *audit;       /* NULL: no audit trail */
	struct allow_list *allow;       /* allow and deny files; NULL: all users are permitted */
	const char *admin_group;   /* NULL: only root is an administrator */
	const struct cluster *cluster; /* NULL: none */
	const struct store_outage *store_outage;   /* NULL: the store is always available */
	const struct store_risk *store_risk;       /* NULL: the store is a file */
	struct dispatcher *dispatcher;
	struct spawner_link *spawner;
	struct concurrency *concurrency;
	struct crontabs *crontabs; /* NULL: user mode */
	struct run_watch_set *run_watch_set;
	struct run_feed *run_feed; /* NULL: streams have no runs */
	struct metrics *metrics;   /* NULL: requests are not counted */
	const struct metrics_source *metrics_source; /* NULL: there is no scrape */
	const struct net_client *net; /* NULL: none */
	const struct planner *planner;
	struct output_relays *relays;     /* NULL: there are no other nodes */
	struct retention *retention; /* NULL: history is never deleted */
	const char *archive;       /* directory or s3://…; NULL: none */
	struct s3_client *s3;      /* NULL: the archive is a directory, or there is none */
	const char *state_dir;
	const char *sendmail;      /* mail program; NULL: not known */
	const struct clock_guard *clock_guard; /* NULL: the clock is trusted */
	struct zone_caches *zones;
	const char *node_name, *node_id;
	const char *store_where;   /* location without a password, for display */
	const char *http_allow;    /* addresses that calls may use; NULL: none */
	const char *s3_artifacts;  /* buckets that artifacts may be in; NULL: none */
	const char *lambda_functions; /* that calls may invoke; NULL: none */
	bool http_proxy;           /* calls use a proxy */
	const struct callbacks *callbacks; /* NULL: there are no asynchronous calls */
	int output_dir;            /* descriptor of the output directory of the spawner */
	/* only the daemon's own uid and root are served, and quotas do not apply */
	bool user_mode;
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
void server_send_answers(struct server *s); /* now; otherwise in the next loop iteration */
void server_set_limits(struct server *s, const struct server_limits *l); /* after a reload */
/* Looks up the administrators' group again, on another thread. */
void server_find_admins(struct server *s);
/*
 * Accepts no further connections and answers requests with 503. Operations in progress are still
 * answered.
 */
void server_stop(struct server *s);
/*
 * Answers waiting requests while the store is unavailable. Requests whose change is in progress are
 * answered only if 'unknown', that is, when its outcome cannot be determined any more.
 */
void server_refuse_waiting(struct server *s, const struct err *why, bool unknown);
/* Waiting requests are answered with 503, or with "uncertain" if a change is in progress. */
void server_free(struct server *s);
AUTO_DEFINE(server);
