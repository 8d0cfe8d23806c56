/* SPDX-License-Identifier: Apache-2.0 */
/* The set of all workers of a spawner. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/map.h"
#include "exec/worker/ends_spool.h"
#include "exec/worker/launchers.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct cgroups;
struct err;
struct frame_ended;
struct launch_stacks;
struct sandbox_profiles;
struct sandbox_set;
struct worker;

struct workers {
	int ep, output_dir, null, children; /* null and children are owned, the others borrowed */
	const char *spawner;                /* its id; borrowed */
	pid_t pid;                          /* of the spawner */
	uid_t uid;                          /* of the spawner, effective */
	const char *lang;                   /* borrowed; NULL: none */
	/* borrowed: mount point of artifacts; NULL: they are used in the cache directory */
	const char *artifact_path;
	/* the spawner is root and each worker changes to its user */
	bool change_user;
	bool sessions;                      /* each worker gets a PAM session of its user */
	struct launch_stacks *stacks;       /* for tests of sandbox profiles */
	struct launchers launchers;
	struct cgroups *groups;             /* borrowed */
	struct sandbox_set *sandboxes;
	struct rlimit nofile;               /* limit of open files that workers get */
	/* limits that cannot be enforced are reported instead of refused */
	bool limits_report;
	struct map by_run, by_pid;          /* by_pid: main processes that are not reaped */
	struct map orphans;                 /* reparented children, by pid */
	struct deadlines deadlines;
	struct deadlines output_filters;
	struct deadlines signs;
	struct deadlines state_removals;
	struct map states_removed;          /* directories that are being emptied, by run; see worker_state.c */
	int notify_dir;                     /* owned: directory of the notify sockets; -1: none */
	const char *notify_path;            /* borrowed: its path */
	struct ends_spool spool;
	struct worker *outbox, **outbox_end, *ending, *dead;
	/* PAM sessions being opened; their workers count as running */
	size_t opening;
	size_t count, running;              /* all workers; those with processes */
	size_t running_max;                 /* derived from the limit of open files */
	usec_t lease_end, lease_kill;       /* boottime; 0: none. See frame.h */
	bool lease_late;                    /* the lease was seen to be over once */
	bool lease_over;                    /* workers have been ended because of it */
	bool stopping;
	bool scan_wanted;
	/* earliest time of the next scan; a scan is expensive with many children */
	usec_t scan_after;
	char *chunk;                        /* buffer for output */
	struct buf children_text;
	pid_t *pids;
	size_t pids_cap, children_n;        /* children_n: at the last scan */
};

bool workers_init(struct workers *ws, int ep, int output_dir, const char *spawner,
	struct cgroups *groups, struct err *e);
/* Called once, before the first start. See sandbox_set_open(). */
bool workers_open_sandboxes(struct workers *ws, const struct sandbox_profiles *profiles,
	bool report, const char *init, struct err *e);
void workers_done(struct workers *ws);

struct worker *workers_find(const struct workers *ws, int64_t run, int64_t fence); /* NULL: none */
void workers_each(struct workers *ws, void (*fn)(struct worker *w, void *arg), void *arg);
/* an end of an earlier spawner */
void workers_add_ended(struct workers *ws, const struct frame_ended *end);
void worker_forget(struct worker *w);                  /* freed in the next workers_run_due() */
/* ends workers in WORKER_OPENING; the starts can be retried */
void workers_give_up(struct workers *ws, const char *why);
void workers_stop(struct workers *ws);                 /* ends all workers and starts no more */

void worker_report_queue(struct worker *w, unsigned reports);
/* removes the first of the outbox; NULL: empty */
struct worker *workers_report_next(struct workers *ws);
/* after a re-exec */
void workers_report_restore(
	struct workers *ws, int64_t run, int64_t fence, bool asked, unsigned reports);

void workers_lease(struct workers *ws, usec_t end_at, usec_t kill_at);
bool workers_lease_over(const struct workers *ws);

void workers_run_due(struct workers *ws);           /* once per iteration of the event loop */
usec_t workers_next_due(const struct workers *ws);  /* boottime when it is needed next */
