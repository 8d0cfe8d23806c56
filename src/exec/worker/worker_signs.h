/* SPDX-License-Identifier: Apache-2.0 */
/* Receives the signs of a worker: the notify pipe, the notify socket and, if wanted, its output. */
/*
 * Both channels are read at most every SIGNS_INTERVAL, and the daemon is told about progress at most
 * once a second, so that a command that writes without pause costs little. A worker with a heartbeat
 * that gives no sign in time is ended.
 */
#pragma once
#include "base/clock.h"
#include "base/deadline.h"
#include "core/job/sign.h"
#include "exec/proto/epoll_source.h"
#include <stdbool.h>
#include <sys/types.h>

struct exec_spec;
struct frame;
struct user;
struct worker;
struct workers;

#define SIGNS_INTERVAL (20 * USEC_MSEC)
#define SIGNS_REPORT_INTERVAL USEC_SEC

struct worker_signs {
	struct epoll_source pipe, socket; /* fd -1: none */
	struct deadline wake;      /* the earliest of the three times below */
	usec_t silent_at;          /* boottime when the worker has stalled; 0: it has no heartbeat */
	usec_t watch_at;           /* boottime when the channels are watched again; 0: they are watched */
	usec_t report_at;          /* boottime of the next report; 0: there is nothing to report */
	usec_t reported_at;        /* boottime of the last report */
	usec_t heartbeat;          /* 0: none */
	bool on_output;            /* output is a sign */
	char *partial;             /* owned; start of a line of the pipe; NULL: none */
	struct progress *progress; /* owned; NULL: none was reported */
};

/* The channels that the command gets. */
struct worker_signs_offer {
	int pipe;          /* owned: the end to write to; -1: none */
	char *socket;      /* owned: path of the notify socket; NULL: none */
};
void worker_signs_offer_done(struct worker_signs_offer *o);

/* Opens the directory of the sockets; 'fresh' removes those of an earlier spawner. The path is borrowed. */
void worker_signs_open(struct workers *ws, const char *path, bool fresh);
void worker_signs_init(struct worker_signs *g);
/* Opens the channels. 0, or -errno. */
int worker_signs_offer(struct worker *w, const struct exec_spec *spec, const struct user *user,
	struct worker_signs_offer *ret);
void worker_signs_started(struct worker *w); /* the heartbeat begins */
/* after a re-exec */
bool worker_signs_adopt(struct worker *w);
void worker_signs_output(struct worker *w);  /* it has written output */
void worker_signs_run_due(struct workers *ws, usec_t now);
void worker_signs_stop(struct worker *w);    /* its main process has ended: reads the last signs, closes the channels */
void worker_signs_done(struct worker *w);
void worker_signs_frame(struct frame *f, const struct worker *w);
