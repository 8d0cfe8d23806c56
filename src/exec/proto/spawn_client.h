/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the spawner for workers and hears how each one ended, exactly once after it was acknowledged. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/run.h"
#include "core/job/start_failure.h"
#include "core/job/start_plan.h"
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
	SPAWN_NOT_STARTED, /* error, transient: nothing ran */
	SPAWN_ENDED,       /* the whole of the rest */
	SPAWN_HAS,         /* answer to a list: running, with pid and started_at */
	SPAWN_LIST_DONE,   /* everything the spawner has was named; ends not yet acknowledged came as SPAWN_ENDED */
	SPAWN_GONE,        /* the connection ended: the spawner died; before SPAWN_CONNECTED, error tells why it failed */
	SPAWN_SUPERSEDED,  /* a newer engine has taken over: exit 75 */
	SPAWN_CONNECTED,   /* the first report after spawn_client_connect(): the welcome has come */
	SPAWN_REPORT_MAX
};

struct spawn_report {
	enum spawn_report_kind kind;
	int64_t run, fence, attempt;
	int64_t pid;
	usec_t started_at, ended_at;
	enum attempt_outcome outcome;      /* of SPAWN_ENDED: succeeded, failed, timed_out, cancelled; lost when the spawner was told to stop */
	int64_t exit_code, term_signal;
	usec_t cpu_user, cpu_system;
	int64_t max_rss, io_read, io_written, output_bytes, output_dropped; /* io -1: not known */
	enum start_failure reason;         /* of SPAWN_NOT_STARTED */
	bool transient;                    /* the reason is START_TRANSIENT: EAGAIN, ENOMEM … */
	const char *error;                 /* borrowed; NULL: none */
};
typedef void spawn_report_fn(const struct spawn_report *r, void *arg);

/*
 * Connects, says hello and waits (at most 5 s) for the welcome; reports arrive through the loop afterwards.
 * ERR_UNREACHABLE: no spawner listens at 'path', or it does not answer. For the start of a program, before its loop runs.
 */
bool spawn_client_open(struct sd_event *ev /* borrowed */, const char *path, const char *node,
	spawn_report_fn *fn, void *arg, struct spawn_client **ret, struct err *e);
/*
 * Connects, says hello and returns at once. SPAWN_CONNECTED or SPAWN_GONE follows, the latter also when a spawner that is not
 * stopped gives no welcome within 5 s. Before SPAWN_CONNECTED only spawn_client_health() and spawn_client_free() may be called.
 */
bool spawn_client_connect(struct sd_event *ev /* borrowed */, const char *path, const char *node,
	spawn_report_fn *fn, void *arg, struct spawn_client **ret, struct err *e);
void spawn_client_free(struct spawn_client *c); /* workers keep running */
AUTO_DEFINE(spawn_client);

struct sandbox_offers *spawn_client_sandboxes(const struct spawn_client *c); /* a reference; NULL: not heard of yet */
const char *spawn_client_spawner(const struct spawn_client *c); /* the spawner's id */
enum warrant_policy spawn_client_warrants(const struct spawn_client *c); /* for whose jobs it wants warrants */

unsigned spawn_client_limits_refused(const struct spawn_client *c); /* enum limit_kind */

/* Frames are queued and leave as the socket allows; a failure shows up as SPAWN_GONE. */
bool spawn_client_start(struct spawn_client *c, const struct start_plan *p, struct err *e);
void spawn_client_cancel(struct spawn_client *c, int64_t run, int64_t fence); /* SIGTERM, grace, SIGKILL */
void spawn_client_ack(struct spawn_client *c, int64_t run, int64_t fence);    /* after the commit of its end */
void spawn_client_list(struct spawn_client *c);
/* By then (boottime) what must not run twice is ended, unless it is told anew; 0: no such moment. */
void spawn_client_lease(struct spawn_client *c, usec_t end_at, usec_t kill_at);
/* A file of a job's owner, opened by a child of the spawner and sent to a socket; the daemon never has it. */
struct spawn_file {
	int64_t run, fence, uid;
	const char *owner, *path;
	int socket; /* borrowed */
};
bool spawn_client_open_file(struct spawn_client *c, const struct spawn_file *s, struct err *e);
void spawn_client_forget_output(struct spawn_client *c, int64_t run, int64_t attempt);

/*
 * Whether the spawner still reads what it is sent. The socket tells how much is unread. The state of the process is known
 * where /proc shows it. An idle connection is probed, so that a later call knows more.
 */
struct spawn_health {
	pid_t pid;     /* 0: not known */
	bool stopped;  /* by SIGSTOP or a debugger */
	usec_t unread; /* how long a frame has been waiting to be read; 0: all were read */
};
void spawn_client_health(struct spawn_client *c, struct spawn_health *ret);
