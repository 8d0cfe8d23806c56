/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failpoints: named steps at which a test can kill, stop, delay or fail a process. Compiled in with
 * --enable-failpoints only.
 */
#pragma once
#include <stdbool.h>

struct err;

/*
 * Around the commits of operations, in the threads and processes that act on them, in the spawner
 * and in jobsched-net.
 */
enum failpoint {
	FP_SUBMIT_PRE, FP_SUBMIT_POST,
	FP_MAT_PRE, FP_MAT_POST,
	FP_GRANT_PRE, FP_GRANT_POST, FP_GRANT_SEND,
	FP_START_PRE, FP_START_POST,
	FP_STATE_PART,
	FP_RESULT_PRE, FP_RESULT_POST, FP_RESULT_ACK,
	FP_RETRY_PRE, FP_RETRY_POST,
	FP_DEAD_PRE, FP_DEAD_POST,
	FP_LOST_PRE, FP_LOST_POST,
	FP_GIVE_BACK_PRE, FP_GIVE_BACK_POST,
	FP_CANCEL_PRE, FP_CANCEL_POST,
	FP_DELETE_PRE, FP_DELETE_POST,
	FP_RENEW_PRE, FP_RENEW_POST,
	FP_LEAD_TAKE, FP_LEAD_TAKEN, FP_LEAD_RENEW,
	FP_REAP_PRE, FP_REAP_POST,
	FP_SPREAD_PRE, FP_SPREAD_POST,
	FP_ADOPT_PRE, FP_ADOPT_POST,
	FP_LEAVE_PRE, FP_LEAVE_POST,
	FP_CHECKPOINT_PRE, FP_CHECKPOINT_POST,
	FP_MIGRATE,
	FP_SPAWN_FORK, FP_SPAWN_FORKED, FP_SPAWN_DROP, FP_SPAWN_EXEC, FP_SPAWN_TELL,
	FP_CANCEL_SIGNAL, FP_CANCEL_SIGNALLED,
	FP_END_WAITED, FP_END_TELL, FP_ENDS_RENAME,
	FP_RELOAD,
	FP_CALL_SEND, FP_CALL_ANSWERED, FP_CALL_TELL,
	FP_STORAGE_SEND, FP_STORAGE_ANSWERED,
	FP_PRUNE_PRE, FP_PRUNE_POST,
	FAILPOINT_MAX
};

#ifdef JOBSCHED_FAILPOINTS

/*
 * Reads $JOBSCHED_FAILPOINTS: NAME=ACTION[@N],... where ACTION is kill, exit, stop:SECONDS,
 * delay:MS or error:ERRNO. The action is executed when this process passes the point for the N-th
 * time, and only then. If $JOBSCHED_FAILPOINTS_DIR is set, the process first creates a file there,
 * named as the entry, that contains its pid. If the file exists already, the action is not
 * executed: of all processes that share the directory, one executes it, once. False: there is no
 * such point or action.
 */
bool failpoints_open(struct err *e);

/*
 * 0, or the errno to fail with. Makes system calls only, because a child that shares the memory of
 * its creator calls it too.
 */
int failpoint(enum failpoint p);
bool failpoint_ok(enum failpoint p, struct err *e); /* as failpoint(), with the error in *e */
#define failpoint_pass(p) (void)failpoint(p)        /* at a step that cannot fail */

#else
#define failpoints_open(e) ((void)(e), true)
#define failpoint(p) 0
#define failpoint_ok(p, e) true
#define failpoint_pass(p) (void)0
#endif
