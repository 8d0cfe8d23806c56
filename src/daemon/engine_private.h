/* SPDX-License-Identifier: Apache-2.0 */
/* State of the engine, private to the engine's files. */
#pragma once
#include "base/clock.h"
#include "base/io.h"
#include "daemon/api/auth/tcp_listeners.h"
#include "daemon/engine.h"
#include "daemon/metrics/metrics_scrape.h"
#include <stdbool.h>
#include <systemd/sd-event.h>

struct config;
struct err;
struct event_list;
struct concurrency_rules;
struct op;
struct retention_limits;
struct server_limits;
struct batch_wake;

struct engine {
	struct engine_options o;
	char node_id[RANDOM_ID_LEN + 1];
	struct clock clock; /* the store's time of day: host clock plus offset */
	char *labels;       /* see OP_CLAIM; NULL: none */
	char *boot_id;      /* NULL: unknown */
	char *term_file;
	/*
	 * PostgreSQL: a writer for renewals only, so that they do not wait behind a batch; NULL:
	 * 'store'.
	 */
	struct store_thread *leases;
	struct cluster *cluster;
	/* Runs of earlier daemons are taken over; the first OP_NODE_POLL is complete. */
	bool taken_over, looked;
	/* NULL: PostgreSQL, whose nodes are on several hosts. */
	struct peer_wakeup *peer_wakeup;
	struct store_watcher *store_watcher; /* NULL: this node has been the only one so far */
	struct store_outage *store_outage;
	struct store_risk *store_risk; /* NULL: the store is a file */
	struct file_lock *file_lock; /* NULL: PostgreSQL */
	struct lock_guard_process *guard;         /* NULL: PostgreSQL */
	char *machine; /* NULL: unknown */
	char *store_where, *store_shown, *spawner_program;
	sd_event *ev;
	int output_dir;
	struct listener *listener;
	/* The TCP side, until the server takes it over. */
	struct tcp_listeners tcp;
	struct tls_files *tls;
	struct jwt_keys *jwt;
	struct planner *planner;
	struct clock_guard *clock_guard;
	struct audit *audit;
	struct pause_timer *pause_timer;
	struct expiry *expiry;
	struct store_thread *store;
	struct zone_caches *zones;
	struct alarm *alarm;
	struct run_watch_set *run_watch_set;
	struct run_feed *run_feed;
	struct artifact_requests *artifacts;
	struct callbacks *callbacks; /* NULL: not configured */
	struct net_client *net;
	char *net_program; /* owned; NULL: systemd starts it */
	struct spawner_link *spawner;
	struct dispatcher *dispatcher;
	struct retention *retention;
	struct s3_client *s3; /* NULL: the archive is a directory, or there is none */
	struct notifier *notifier;
	struct crontabs *crontabs; /* NULL: user mode */
	struct concurrency *concurrency;
	struct metrics *metrics;
	usec_t started_at;       /* wall clock */
	struct metrics_source metrics_source;
	char *metrics_group;     /* control group of the workers; owned; NULL: unknown */
	struct spans *spans;     /* NULL: no spans are exported */
	struct metrics_textfile *textfile; /* NULL: none is written */
	struct output_relays *relays;
	struct allow_list *allow; /* NULL: user mode */
	struct server *server;
	bool stopping, closing;
};

/* engine_start.c */
/* False without an error: a signal told it to stop. */
bool engine_start(struct engine *g, struct err *e);
void engine_end(struct engine *g);                  /* also of an engine that was started in part */
void engine_serve(struct engine *g);

/* engine_config.c */
struct server_limits engine_server_limits(const struct config *c);
void engine_bound_results(struct engine *g); /* see store_thread.h */
struct concurrency_rules engine_concurrency_rules(const struct engine *g);
struct retention_limits engine_retention_limits(const struct engine *g);
void engine_apply_config(struct engine *g, const struct config *fresh);

/* engine_tcp.c */
bool engine_open_tcp(struct engine *g, struct err *e);  /* before the store is opened */
bool engine_serve_tcp(struct engine *g, struct err *e); /* after the server has started */
void engine_end_tcp(struct engine *g);

/* engine.c; 'arg' is the engine */
bool engine_watch_signals(struct engine *g, struct err *e);
void engine_on_wake(const struct batch_wake *w, void *arg);
void engine_on_events(const struct event_list *l, void *arg);
void engine_on_op(const struct op *op, void *arg);
void engine_on_alarm(bool clock_set, void *arg);
void engine_on_change(void *arg);
void engine_on_exit(int status, void *arg);
void engine_on_fatal(const struct err *e, void *arg);
void engine_on_delivered(void *arg);
void engine_on_busy(void *arg);
void engine_on_tables(void *arg);

/* engine_nodes.c */
bool engine_join(struct engine *g, struct err *e);
usec_t engine_realtime(void *arg); /* the store's time of day */
usec_t engine_boottime(void *arg); /* of this host */
usec_t engine_offset(void *arg);   /* the store's time of day minus that of this host */
bool engine_trusted(void *arg);
bool engine_leads(void *arg);
bool engine_has_peers(void *arg);
void engine_on_opened(int64_t others, void *arg);
void engine_on_spawner(const char *spawner, void *arg);
void engine_on_fenced(void *arg);
bool engine_start_relays(struct engine *g, struct err *e);

/* engine_metrics.c */
void engine_metrics_new(struct engine *g);  /* before the other parts, which count */
void engine_metrics_free(struct engine *g);

/* engine_lock.c */
bool engine_lock_store(struct engine *g, struct err *e);    /* before the store is opened */
bool engine_publish_socket(struct engine *g, struct err *e); /* after it was opened */
void engine_unlock_store(struct engine *g);                 /* after it was closed */

/* engine_self.c; the caller frees the texts; NULL: unknown, or none */
char *engine_machine(const struct config *c);
char *engine_boot_id(void);
bool engine_labels(const char *labels, char **ret, struct err *e); /* as lines */
