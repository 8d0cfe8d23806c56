/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of one spawner, from start to acknowledged end. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "core/job/start_plan.h"
#include "core/job/run.h"
#include "exec/worker/cgroup.h"
#include "exec/child/child.h"
#include "exec/worker/deadline.h"
#include "exec/worker/launchers.h"
#include "exec/proto/output_file.h"
#include "exec/proto/epoll_source.h"
#include "exec/worker/output_filter.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct err;
struct frame;
struct frame_ended;
struct frame_start;
struct launching;
struct exec_spec;
struct payload;
struct sandbox_profiles;
struct sandboxes;
struct reexec_state_orphan;
struct user;
struct workers;

enum worker_phase {
	WORKER_NOT_STARTED, /* until that is reported */
	WORKER_OPENING,     /* its process is being made, by a launcher or by the process of its user's session */
	WORKER_RUNNING,
	WORKER_TERMINATING, /* SIGTERM was sent, the grace runs */
	WORKER_KILLED,      /* SIGKILL was sent */
	WORKER_ENDING,      /* the main process is gone; what it left is being ended and its last output read */
	WORKER_ENDED,       /* until that is acknowledged */
	WORKER_PHASE_MAX
};

/* What the engine is still to be told of a worker, in this order. */
enum worker_report_kind { REPORT_STARTED = 1, REPORT_HAS = 2, REPORT_NOT_STARTED = 4, REPORT_ENDED = 8 };

/* A start that a launcher has under way, and what its errors are to name. */
struct worker_launch {
	struct launching *of;
	uid_t uid;
	char *user;                  /* owned, as all texts; NULL: the spawner's own */
	char *command, *cwd, *place; /* place: of the artifact */
	bool given_up;               /* the worker has the reason already */
};

struct worker {
	struct workers *all;         /* borrowed */
	int64_t run, fence, attempt;
	usec_t grace;
	bool ends_with_lease;        /* it must not run twice */
	enum worker_phase phase;
	enum attempt_outcome forced; /* by us; ATTEMPT_RUNNING: not so far */
	pid_t pid;                   /* its process, group and session; ours to reap until WORKER_ENDING */
	struct source exit, out;     /* pidfd and pipe */
	struct source session;       /* a socket to the process that keeps its PAM session open; see session.h */
	struct worker_launch *launch; /* owned; NULL: no launcher has it */
	usec_t timeout;              /* until it runs, then it is the deadline; 0: none */
	usec_t closing;              /* boottime since when its session is being closed; 0: it is not */
	struct deadline deadline;    /* by phase: timeout, grace, patience */
	struct output_file_writer output;
	struct output_filter output_filter;            /* over its output */
	usec_t started_at, ended_at; /* realtime */
	usec_t died;                 /* boottime */
	int exit_code, term_signal;  /* -1 and 0: none */
	struct cgroup group;         /* dir -1: none */
	struct cgroup_usage used;    /* by the main process and what it waited for; with a group, by all that was in it */
	size_t left;                 /* processes it left, by the last look */
	bool looked;                 /* a look was taken since it died */
	enum start_failure reason;   /* of one that was not started */
	char *error;                 /* owned; NULL: nothing to say */
	char *words;                 /* owned: of its command, where the profile withholds privileges; NULL: no need to look at them */
	const char *profile;         /* with words: its name; borrowed from the sandboxes */
	struct frame_ended *told;    /* owned; the end of a worker of an earlier spawner; NULL: it is our own */
	usec_t unacked_since;        /* boottime of its end; see ends.h */
	unsigned news;               /* enum worker_report_kind */
	bool asked;                  /* this engine has started or listed it, so it is told */
	bool posted;                 /* is in the outbox */
	bool spooled;                /* its end is in the file of ends */
	bool spooling;               /* its end is in the file that is being written */
	struct worker *next_posted, *next_ending, *next_dead;
	struct worker *same_run;     /* with another fence */
};

/* A child that came to us when its parent died. */
struct adopted {
	pid_t pid;
	int64_t run, fence; /* run 0: it does not say */
	int looks;
};

/* The file of ends that are not acknowledged; see ends.h. */
struct ends_spool {
	struct source pipe; /* the result of the process that writes; -1: there is none */
	int pidfd;          /* of that process; -1: none */
	bool removing;      /* it removes the file */
	bool file;          /* there is one */
	bool said;          /* that ends are kept on disk */
	size_t spooled;     /* ends in the file that are not acknowledged */
	usec_t look_at;     /* boottime when an end may be old enough; 0: there is none to look at */
	usec_t retry_at;    /* boottime; nothing is written before, after a failure */
};

struct workers {
	int ep, output_dir, null, children; /* null and children are owned, the others borrowed */
	const char *spawner;                /* its id; borrowed */
	const char *lang;                   /* borrowed; NULL: none */
	const char *artifact_place;         /* borrowed: where workers find theirs; NULL: where the engine has it */
	bool change_user;                   /* we are root and become somebody for every worker */
	bool sessions;                      /* each worker is in a PAM session of its user */
	struct launch_stacks *stacks;        /* for trials of sandbox profiles */
	struct launchers launchers;
	struct cgroups *groups;             /* borrowed */
	struct sandboxes *sandboxes;
	struct rlimit nofile;               /* what workers get */
	bool limits_report;                 /* what cannot be enforced is reported, not refused */
	struct map by_run, by_pid;          /* by_pid: mains that are not reaped */
	struct map adopted;                 /* children that came to us when their parents died */
	struct deadlines deadlines;
	struct deadlines output_filters;
	struct ends_spool spool;
	struct worker *outbox, **outbox_end, *ending, *dead;
	size_t opening;                     /* sessions that are being opened; their workers count as running */
	size_t count, running;              /* known in all; with processes */
	size_t running_max;                 /* as the limit of open files allows */
	usec_t lease_end, lease_kill;       /* boottime; 0: none. See frame.h */
	bool lease_late;                    /* seen to be over once */
	bool lease_over;                    /* they have been ended for it */
	bool stopping;
	bool scan_wanted;
	usec_t scan_after;                  /* not before: looking costs time with many children */
	char *chunk;                        /* for reading output */
	struct buf children_text;
	pid_t *pids;
	size_t pids_cap, children_n;        /* at the last look */
};

bool workers_init(struct workers *ws, int ep, int output_dir, const char *spawner, struct cgroups *groups, struct err *e);
/* Once, before the first start: what of these profiles can be had; 'report': those that lack something are used. */
bool workers_open_sandboxes(struct workers *ws, const struct sandbox_profiles *profiles, bool report, const char *init, struct err *e);
void workers_done(struct workers *ws);

struct worker *workers_find(const struct workers *ws, int64_t run, int64_t fence);
/* Always gives a worker, with the news of what became of it. All but the frame is the caller's. */
struct worker_start {
	const struct frame_start *frame;
	const struct payload *payload;
	const struct user *user; /* who it is to be, as admitted */
	int in;                  /* standard input; -1: /dev/null */
	int artifact;            /* a directory; -1: none */
	struct secrets *secrets; /* moved; NULL: none */
	struct cgroup *group;    /* the run's control group, in which its secrets were read; moved; NULL: it has none yet */
};
struct worker *worker_start(struct workers *ws, const struct worker_start *s);
int worker_start_cgroup(struct workers *ws, uid_t uid, const struct cgroup_limits *l, struct cgroup *ret); /* 0, or -errno; may be none */
struct worker *worker_start_refuse(struct workers *ws, const struct frame_start *s, enum start_failure reason,
	const char *why);
void worker_end(struct worker *w, enum attempt_outcome why); /* SIGTERM, grace, SIGKILL */
void workers_give_up(struct workers *ws, const char *why);    /* those that are opening: worth another try */
void worker_forget(struct worker *w);                        /* freed at the end of the turn */
void worker_report_queue(struct worker *w, unsigned news);
struct worker *workers_report_next(struct workers *ws);           /* the first of the outbox; NULL: empty */
void workers_each(struct workers *ws, void (*fn)(struct worker *w, void *arg), void *arg);

void workers_lease(struct workers *ws, usec_t end_at, usec_t kill_at);
bool workers_lease_over(const struct workers *ws);
void workers_stop(struct workers *ws);          /* ends them all and starts no more */
void workers_run_due(struct workers *ws);          /* once per turn of the loop: what is due, what has ended */
usec_t workers_next_due(const struct workers *ws);  /* boottime of the next turn that is needed */

/* state_read.c: workers of the program that was here before, in the same process */
bool workers_adopt(struct workers *ws, const struct worker *from, char *error /* moved */, struct err *e);
void workers_report_restore(struct workers *ws, int64_t run, int64_t fence, bool asked, unsigned news);
void orphans_add(struct workers *ws, const struct reexec_state_orphan *a);
void orphans_add_helper(struct workers *ws, pid_t pid); /* a child of our own that is no worker: reaped, else left alone */

/* worker_limits.c */
struct worker_limits {
	struct child_limits child;
	struct cgroup_limits group;
	char *note; /* owned: what is not enforced; NULL: all is */
};
void worker_limits_done(struct worker_limits *l);
unsigned worker_limits_refused(const struct workers *ws); /* enum limit_kind */
bool worker_limits(const struct workers *ws, const struct exec_spec *o, struct worker_limits *ret, struct err *e);

/* ---- within the module ---- */
#define WORKER_CHUNK (64 << 10) /* of output, read at a time */
void worker_free(struct worker *w);
void worker_deadline_passed(struct worker *w);                 /* its deadline is over */
bool worker_end_check(struct worker *w, usec_t now); /* WORKER_ENDING: true when nothing of it is left */
void worker_end_frame(struct frame *f, const struct worker *w);
void workers_add_ended(struct workers *ws, const struct frame_ended *end);
struct worker *worker_new(struct workers *ws, const struct frame_start *s);
void worker_ending_add(struct worker *w);
void worker_start_failed(struct worker *w, enum start_failure reason, char *why /* moved */);
void worker_start_done(struct worker *w, const struct child *c);
enum start_failure worker_start_failure(int errnum);
void worker_start_give_up(struct worker *w, enum start_failure reason, const char *why); /* WORKER_OPENING: it is not started */

/* worker_launch.c */
void worker_launch(struct worker *w, struct child_plan *p);
void worker_launch_give_up(struct worker *w, enum start_failure reason, const char *why);
void worker_launch_ended(struct worker *w);                   /* its process has ended: why it was not the command */
void worker_launch_free(struct worker *w);
char *worker_launch_error(const struct child_report *word, const struct child_plan *p);
/* The worker of a launch becomes ours; of a failed one everything is ended. 0, or -errno. */
int worker_launch_adopt(struct workers *ws, const struct child_report *word, struct child *ret);

/* worker_session.c */
struct pam_session_plan;
void worker_session_open(struct worker *w, const struct pam_session_plan *p);
void worker_session_adopt(struct worker *w);
void worker_session_give_up(struct worker *w, enum start_failure reason, const char *why);
bool worker_session_closed(struct worker *w, usec_t now); /* tells it to, first; or it has taken too long */
void orphans_scan(struct workers *ws, usec_t now); /* at our children: what ended workers left is killed */
