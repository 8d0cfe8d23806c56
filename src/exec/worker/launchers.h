/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers: processes that create workers, so that no start blocks the event loop. */
/*
 * A launcher creates one child at a time and is suspended until the child calls exec(). A start
 * that takes longer than LAUNCH_BLOCKED_AFTER is blocked: its launcher waits for it, and another
 * launcher handles the next starts. The number of launchers per uid is limited, so that blocked
 * starts of a user delay only starts of the same user.
 */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "exec/child/child.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launcher;
struct launcher_start;
struct sandbox_set;
struct workers;

#define LAUNCH_BLOCKED_AFTER USEC_SEC

enum launch_event {
	LAUNCH_BLOCKED, /* the child exists but has not called exec(); LAUNCH_DONE follows */
	LAUNCH_DONE, /* the child has called exec() or failed; *report says which */
	/*
	 * the start was given up, or its launcher has exited; *report has the processes that exist
	 */
	LAUNCH_LOST,
};
/*
 * The processes in *report are unreaped children of the spawner. After LAUNCH_DONE and LAUNCH_LOST
 * the start is freed.
 */
typedef void launch_fn(enum launch_event event, const struct child_report *report, void *arg);

struct launchers {
	int ep;                      /* borrowed */
	struct workers *workers;     /* borrowed; launchers are registered there as helpers */
	const struct sandbox_set *sandboxes; /* borrowed */
	int settings;                /* owned memfd; -1: not created yet */
	struct launcher *first, *dead; /* dead: freed by launchers_run_due() */
	struct launcher_start *queue, **queue_end; /* starts that wait for a launcher */
	struct deadlines deadlines;
};
void launchers_init(struct launchers *ls, int ep, struct workers *ws);
void launchers_done(struct launchers *ls); /* gives up all starts without calling fn */

/*
 * 0, or -errno; -EBUSY: too many starts of this uid are blocked. The plan is borrowed for the call;
 * fn is called later, by the loop.
 */
int launchers_start(struct launchers *ls, uid_t uid, const struct child_plan *p, launch_fn *fn,
	void *arg, struct launcher_start **ret);
/* kills the start; LAUNCH_LOST follows when none of its processes can run */
void launcher_start_kill(struct launcher_start *l);
void launcher_start_cancel(struct launcher_start *l);  /* the same, without calling fn */
/* a blocked start continues, but fn is not called */
void launcher_start_abandon(struct launcher_start *l);
/* current report; NULL: the start waits for a launcher */
const struct child_report *launcher_start_report(const struct launcher_start *l);
/* a launcher that has not exited, or a process of an unfinished start, which must not be reaped yet */
bool launchers_expect(const struct launchers *ls, pid_t pid);

void launchers_run_due(struct launchers *ls, usec_t now);
usec_t launchers_next_due(const struct launchers *ls);
/* starts the first launcher before it is needed */
void launchers_warm(struct launchers *ls);
bool launchers_spare(const struct launchers *ls);           /* more than one launcher is idle */
void launchers_trim(struct launchers *ls);                  /* ends all idle launchers except one */
/*
 * Waits until all starts are done, at most for 'timeout'; then starts that have a process count as
 * blocked.
 */
void launchers_settle(struct launchers *ls, usec_t timeout);
