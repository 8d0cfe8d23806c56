/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the spawner, shared by the parts of the daemon. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/warrant.h"
#include "exec/proto/spawn_client.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct start_plan;
struct sandbox_offers;
struct sd_event;
struct spawner_link;

struct spawner_link_options {       /* everything is borrowed and outlives the link */
	const char *node_id;        /* new with each start of the daemon */
	const char *socket;
	/* Started if no spawner listens at 'socket'; NULL: systemd starts it. */
	const char *program;
	const char *runtime_dir, *output_dir; /* passed to the program */
	usec_t (*offset)(void *arg); /* store clock minus this host's clock; NULL: 0 */
	/* A report has been handled: there may be room or work again. */
	void (*on_change)(void *arg);
	/* A newer daemon has taken over: end with this status. */
	void (*on_exit)(int status, void *arg);
	void *arg;
};

bool spawner_link_new(struct sd_event *ev /* borrowed */, const struct spawner_link_options *o,
	struct spawner_link **ret, struct err *e);
void spawner_link_free(struct spawner_link *l); /* workers keep running; NULL is fine */
AUTO_DEFINE(spawner_link);

/*
 * Reports go to the client that they concern: those with a run number above 0 to SPAWNER_LINK_RUNS,
 * below 0 to SPAWNER_LINK_NOTICES, SPAWN_LIST_DONE and SPAWN_GONE to both, SPAWN_CONNECTED to
 * SPAWNER_LINK_RUNS, SPAWN_TABLES to SPAWNER_LINK_TABLES. Times in reports are on the clock of the store.
 */
enum spawner_link_client { SPAWNER_LINK_NOTICES, SPAWNER_LINK_RUNS, SPAWNER_LINK_TABLES, SPAWNER_LINK_CLIENT_MAX };
void spawner_link_set_client(struct spawner_link *l, enum spawner_link_client which,
	spawn_report_fn *fn, void *arg);

/*
 * Connects, starts the spawner if needed, and waits for its welcome. Only for the start of the
 * daemon, before the loop runs.
 */
bool spawner_link_open(struct spawner_link *l, struct err *e);
/*
 * Connects in the background and retries with backoff. SPAWN_CONNECTED follows. Does nothing while
 * connected.
 */
void spawner_link_connect(struct spawner_link *l);
void spawner_link_close(struct spawner_link *l, usec_t delay); /* connects again after 'delay' */
/* Makes no further attempt to connect. */
void spawner_link_stop(struct spawner_link *l);

/*
 * The link is ready from SPAWN_LIST_DONE on: every run that the spawner has is known.
 * spawner_link_suspend() makes it unready until the next list.
 */
bool spawner_link_ready(const struct spawner_link *l);
void spawner_link_suspend(struct spawner_link *l);
void spawner_link_list(struct spawner_link *l); /* asks for the list; connected only */

/* The id of the connected spawner; NULL: not connected. */
const char *spawner_link_id(const struct spawner_link *l);
/* Policy of the spawner that was connected last. */
enum warrant_policy spawner_link_warrants(const struct spawner_link *l);
/* Limits (enum limit_kind) that the spawner cannot enforce; 0 while not connected. */
unsigned spawner_link_limits_refused(const struct spawner_link *l);
/* A reference to the sandbox profiles of the spawner; NULL: not known yet. */
struct sandbox_offers *spawner_link_sandboxes(const struct spawner_link *l);

/* ERR_BUSY: the link is not ready. */
bool spawner_link_start(struct spawner_link *l, const struct start_plan *p, struct err *e);
/*
 * The next three do nothing while not connected. Call spawner_link_ack() after the commit of the
 * end.
 */
void spawner_link_cancel(struct spawner_link *l, int64_t run, int64_t fence);
void spawner_link_ack(struct spawner_link *l, int64_t run, int64_t fence);
void spawner_link_set_deadline(struct spawner_link *l, usec_t end_at, usec_t kill_at);
bool spawner_link_open_file(struct spawner_link *l, const struct spawn_file *f, struct err *e);
bool spawner_link_state(struct spawner_link *l, const struct spawn_state *s, struct err *e); /* ERR_BUSY: not connected */
/* Deletes the output of an attempt. False: not connected, try later. */
bool spawner_link_forget_output(struct spawner_link *l, int64_t run, int64_t attempt);

/* Asks for the crontabs of the machine, also after each new connection. */
void spawner_link_watch_tables(struct spawner_link *l, bool on);
struct table_list;
bool spawner_link_tables(struct spawner_link *l, struct table_list *ret); /* moves the newest list; false: none */

/* Whether the spawner can start runs. Costs some system calls: for status requests only. */
struct spawner_link_health {
	/* Why it starts nothing: not connected, stopped, or not reading; empty: it works. */
	char why[128];
	pid_t stopped;  /* its process if SIGCONT would help; else 0 */
};
void spawner_link_health(const struct spawner_link *l, struct spawner_link_health *ret);
