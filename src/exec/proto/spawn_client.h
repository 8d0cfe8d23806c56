/* SPDX-License-Identifier: Apache-2.0 */
/* Client of the spawner: start, cancel, acknowledge, list. Each end is reported until it is acknowledged. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/run.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct start_plan;
struct sandbox_offers;
struct sd_event;
struct spawn_client;

enum spawn_report_kind {
	SPAWN_STARTED,     /* pid, started_at */
	SPAWN_NOT_STARTED, /* error, reason, transient; the command was not run */
	SPAWN_ENDED,       /* all other members */
	SPAWN_HAS,         /* answer to a list: a running worker, with pid and started_at */
	/* The list is complete; unacknowledged ends were reported as SPAWN_ENDED. */
	SPAWN_LIST_DONE,
	SPAWN_GONE,        /* the connection was closed; before SPAWN_CONNECTED, error is the reason */
	SPAWN_SUPERSEDED,  /* a newer daemon has connected; this one exits with 75 */
	/* The first report after spawn_client_connect(): the welcome was received. */
	SPAWN_CONNECTED,
	SPAWN_PROGRESS,    /* percent, at, text: progress that the command reported */
	SPAWN_TABLES,      /* the crontabs were read: spawn_client_tables() */
	SPAWN_REPORT_MAX
};

struct spawn_report {
	enum spawn_report_kind kind;
	int64_t run, fence, attempt;
	int64_t pid;
	usec_t started_at, ended_at;
	/*
	 * Of SPAWN_ENDED: succeeded, failed, timed_out or cancelled; lost if the spawner was
	 * stopped.
	 */
	enum attempt_outcome outcome;
	int64_t exit_code, term_signal;
	usec_t cpu_user, cpu_system;
	int64_t max_rss, io_read, io_written, output_bytes, output_dropped; /* io -1: not known */
	enum start_failure reason;         /* of SPAWN_NOT_STARTED */
	bool transient;                    /* the reason is START_TRANSIENT: EAGAIN, ENOMEM … */
	const char *error;                 /* borrowed; NULL: none */
	const char *results;               /* of SPAWN_ENDED; borrowed: lines KEY=VALUE; NULL: none */
	int64_t percent;                   /* of SPAWN_PROGRESS; -1: not given */
	usec_t at;
	const char *text;                  /* borrowed */
};
typedef void spawn_report_fn(const struct spawn_report *r, void *arg);

/*
 * Connects, sends hello and waits for the welcome, at most 5 s; later reports arrive through the
 * loop. Blocks, so it is for the start of a program, before its loop runs. ERR_UNREACHABLE: no
 * spawner listens at 'path' or none answers.
 */
bool spawn_client_open(struct sd_event *ev /* borrowed */, const char *path, const char *node,
	spawn_report_fn *fn, void *arg, struct spawn_client **ret, struct err *e);
/*
 * Connects, sends hello and returns at once. SPAWN_CONNECTED or SPAWN_GONE follows; SPAWN_GONE also
 * if there is no welcome within 5 s, unless the spawner is stopped by a signal. Before
 * SPAWN_CONNECTED only spawn_client_health() and spawn_client_free() may be called.
 */
bool spawn_client_connect(struct sd_event *ev /* borrowed */, const char *path, const char *node,
	spawn_report_fn *fn, void *arg, struct spawn_client **ret, struct err *e);
void spawn_client_free(struct spawn_client *c); /* workers keep running */
AUTO_DEFINE(spawn_client);

/* A reference for the caller; NULL: not received yet. */
struct sandbox_offers *spawn_client_sandboxes(const struct spawn_client *c);
const char *spawn_client_spawner(const struct spawn_client *c); /* the spawner's id */
/* For which jobs it requires warrants. */
enum warrant_policy spawn_client_warrants(const struct spawn_client *c);

unsigned spawn_client_limits_refused(const struct spawn_client *c); /* enum limit_kind, as bits */

/*
 * Frames are queued and sent when the socket has room. A failed connection is reported as
 * SPAWN_GONE.
 */
bool spawn_client_start(struct spawn_client *c, const struct start_plan *p, struct err *e);
/* SIGTERM, grace, SIGKILL. */
void spawn_client_cancel(struct spawn_client *c, int64_t run, int64_t fence);
/* After its end was committed. */
void spawn_client_ack(struct spawn_client *c, int64_t run, int64_t fence);
void spawn_client_list(struct spawn_client *c);
/*
 * Workers that must not run twice are ended at these times (CLOCK_BOOTTIME) unless the call is
 * repeated; 0: never.
 */
void spawn_client_lease(struct spawn_client *c, usec_t end_at, usec_t kill_at);
/*
 * A file that a child of the spawner opens as the owner of a job. The descriptor goes to 'socket',
 * not to the daemon.
 */
struct spawn_file {
	int64_t run, fence, uid;
	const char *owner, *path;
	int socket; /* borrowed */
};
bool spawn_client_open_file(struct spawn_client *c, const struct spawn_file *s, struct err *e);
/* The state of a run, see run_state.h. ERR_REFUSED: the spawner is too old. */
struct spawn_state {
	int64_t run, fence, uid;
	const char *owner;
	int verb;         /* enum run_state_verb */
	int data, socket; /* borrowed */
};
bool spawn_client_state(struct spawn_client *c, const struct spawn_state *s, struct err *e);
/* SPAWN_TABLES follows, and again after each change of a crontab. Does nothing if the spawner is too old. */
void spawn_client_watch_tables(struct spawn_client *c, bool on);
/* Moves the newest list of crontabs; false: there is none. */
struct table_list;
bool spawn_client_tables(struct spawn_client *c, struct table_list *ret);
void spawn_client_forget_output(struct spawn_client *c, int64_t run, int64_t attempt);

/*
 * Whether the spawner reads the frames it is sent. The kernel reports the number of unread bytes of
 * the socket; /proc, if readable, the state of the process. If nothing is unread, the call sends a
 * probe, which a later call can check.
 */
struct spawn_health {
	pid_t pid;     /* 0: unknown */
	bool stopped;  /* by SIGSTOP or a debugger */
	usec_t unread; /* how long a frame has been unread; 0: all were read */
};
void spawn_client_health(struct spawn_client *c, struct spawn_health *ret);
