/* SPDX-License-Identifier: Apache-2.0 */
/* One worker: the processes of a run's attempt, from start to acknowledged end. */
#pragma once
#include "base/clock.h"
#include "base/deadline.h"
#include "core/job/run.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "exec/proto/epoll_source.h"
#include "exec/proto/output_file.h"
#include "exec/worker/cgroup.h"
#include "exec/worker/output/output_filter.h"
#include "exec/worker/worker_signs.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct frame;
struct frame_ended;
struct frame_start;
struct worker_launch;
struct workers;

#define WORKER_CHUNK (64 << 10) /* bytes of output per read() */

enum worker_phase {
	WORKER_NOT_STARTED, /* until the daemon has been told */
	WORKER_OPENING,     /* a launcher or the process of its PAM session creates its process */
	WORKER_RUNNING,
	WORKER_TERMINATING, /* SIGTERM was sent; SIGKILL follows after the grace period */
	WORKER_KILLED,      /* SIGKILL was sent */
	/*
	 * the main process has exited; remaining processes are killed and the last output is read
	 */
	WORKER_ENDING,
	WORKER_ENDED,       /* until the daemon has acknowledged the end */
	WORKER_PHASE_MAX
};

/* Reports that the daemon has not been sent yet; they are sent in this order. */
enum worker_report_kind {
	REPORT_STARTED = 1,
	REPORT_HAS = 2,
	REPORT_NOT_STARTED = 4,
	REPORT_ENDED = 8,
	REPORT_PROGRESS = 16 /* before REPORT_ENDED */
};

struct worker {
	struct workers *all;         /* borrowed */
	int64_t run, fence, attempt;
	usec_t grace;
	/* it is ended when the lease of the node ends, because the run must not overlap */
	bool ends_with_lease;
	/* as in cron, processes that its command leaves behind continue, unless the run was ended by force */
	bool leaves;
	bool filtered;               /* its profile refuses system calls */
	enum worker_phase phase;
	enum attempt_outcome forced; /* outcome set by the spawner; ATTEMPT_RUNNING: none so far */
	/* main process, process group and session; reaped when WORKER_ENDING begins */
	pid_t pid;
	struct epoll_source exit, out;     /* pidfd; output pipe */
	/* socket to the process that holds its PAM session; see pam_session.h */
	struct epoll_source session;
	struct worker_launch *launch; /* owned; NULL: no launcher has it */
	usec_t timeout;              /* becomes the deadline when the worker runs; 0: none */
	usec_t closing;              /* boottime when closing the session began; 0: not closing */
	/* depends on the phase: time limit, grace period or a timeout */
	struct deadline deadline;
	struct output_file_writer output;
	struct output_filter output_filter;
	struct worker_signs signs;
	int gate_fd;                 /* memory file for the exit code of its gate; -1: it has none */
	int results_fd;              /* memory file of its results, see worker_results.h; -1: none */
	char *results;               /* owned; lines KEY=VALUE, after its end; NULL: none */
	usec_t started_at, ended_at; /* realtime */
	usec_t died;                 /* boottime when the main process exited */
	int exit_code, term_signal;  /* -1 and 0: none */
	struct cgroup group;         /* dir -1: none */
	/* of the main process and its reaped children; with a group, of all its processes */
	struct cgroup_usage used;
	size_t left;                 /* processes left behind, as of the last scan */
	bool scanned;                /* the children were scanned after the main process exited */
	enum start_failure reason;   /* of WORKER_NOT_STARTED */
	char *error;                 /* owned; NULL: none */
	/* owned; start of its command, for sandbox_hint_setuid(); NULL: the profile keeps privileges */
	char *words;
	/* name of the profile, for hints; borrowed from the sandboxes; NULL: unknown */
	const char *profile;
	/* owned; end of a worker of an earlier spawner; NULL: a worker of this spawner */
	struct frame_ended *told;
	usec_t unacked_since;        /* boottime of its end; see ends_spool.h */
	unsigned reports;            /* enum worker_report_kind */
	/* the connected daemon has started or listed it, so it gets the reports */
	bool asked;
	bool posted;                 /* is in the outbox */
	bool spooled;                /* its end is in the ends file */
	bool spooling;               /* its end is in the ends file that is being written */
	struct worker *next_posted, *next_ending, *next_dead;
	struct worker *same_run;     /* next worker of the same run with another fence */
};

struct worker *worker_new(struct workers *ws, const struct frame_start *s);
void worker_free(struct worker *w);
void worker_end(struct worker *w, enum attempt_outcome why); /* SIGTERM, grace period, SIGKILL */
void worker_deadline_passed(struct worker *w);
/* the processes that its command left behind continue; not if the run was ended by force */
bool worker_leaves(const struct worker *w);
void worker_ending_add(struct worker *w);
/* WORKER_ENDING: true when no process and no output is left */
bool worker_end_check(struct worker *w, usec_t now);
void worker_end_frame(struct frame *f, const struct worker *w);
/* Continues a worker that the program had before a re-exec. */
bool workers_adopt(
	struct workers *ws, const struct worker *from, char *error /* moved */, struct err *e);
