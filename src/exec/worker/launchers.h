/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's launchers: starts go to processes that may be blocked, the loop never waits for one. */
/*
 * A launcher makes one child at a time and is suspended until that child is the command. A start that takes longer than
 * LAUNCH_BLOCKED_AFTER is 'held': its launcher is left to it, and another launcher takes the next starts. Each uid has a few launchers
 * at a time, so that a user's blocked starts delay starts of the same user only.
 */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "exec/child/child.h"
#include "exec/worker/deadline.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launcher;
struct launching;
struct sandboxes;
struct workers;

#define LAUNCH_BLOCKED_AFTER USEC_SEC

enum launch_event {
	LAUNCH_BLOCKED, /* the child exists and is not the command yet; LAUNCH_DONE follows */
	LAUNCH_DONE, /* *word says what became of it */
	LAUNCH_LOST, /* the start was given up or its launcher is gone; *word says what was made until then */
};
/* The processes in *word are the spawner's children and not reaped. After LAUNCH_DONE and LAUNCH_LOST the launching is freed. */
typedef void launch_fn(enum launch_event news, const struct child_report *word, void *arg);

struct launchers {
	int ep;                      /* borrowed */
	struct workers *workers;     /* borrowed: they know the launchers as helpers of the spawner */
	const struct sandboxes *sandboxes; /* borrowed */
	int settings;                /* owned; -1: not made yet */
	struct launcher *first, *dead; /* dead: freed at the end of the turn */
	struct launching *queue, **queue_end; /* starts that wait for a launcher */
	struct deadlines deadlines;
};
void launchers_init(struct launchers *ls, int ep, struct workers *ws);
void launchers_done(struct launchers *ls); /* starts under way are given up, without a word */

/* 0, or -errno: -EBUSY: too many starts of this uid are held. The plan is borrowed for the call; fn is called later, by the loop. */
int launchers_start(struct launchers *ls, uid_t uid, const struct child_plan *p, launch_fn *fn, void *arg, struct launching **ret);
void launcher_start_kill(struct launching *l);    /* the start ends, and LAUNCH_LOST comes when nothing of it can run any more */
void launcher_start_cancel(struct launching *l);  /* the same, but fn is not called */
void launcher_start_abandon(struct launching *l); /* of one that was held: it goes on, and fn is not called */
const struct child_report *launcher_start_report(const struct launching *l); /* as it is now; NULL: it waits for a launcher */
bool launchers_expect(const struct launchers *ls, pid_t pid); /* a process of a start that is not done: not to be reaped yet */

void launchers_run_due(struct launchers *ls, usec_t now);
usec_t launchers_next_due(const struct launchers *ls);
void launchers_warm(struct launchers *ls);                  /* makes the first launcher before it is needed */
bool launchers_spare(const struct launchers *ls);           /* more than one is idle */
void launchers_trim(struct launchers *ls);                  /* ends idle launchers but one */
void launchers_settle(struct launchers *ls, usec_t patience); /* waits that long at most until all starts are done; then those with a process are held */
