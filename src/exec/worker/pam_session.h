/* SPDX-License-Identifier: Apache-2.0 */
/* The process that has the PAM session of one run. It is root's, opens the session, makes the worker, and closes the session. */
/*
 * The worker is made by it, so that it inherits what the session is (limits, login uid, keyring, namespaces), but as a child
 * of the spawner, like any other: signals, accounting, the end and the spawner's death are no matter of this process. It has
 * a copy of the spawner's memory, nothing of its descriptors but what the worker needs, and a socket: it says what
 * became of the start there, and when the spawner has nothing more to say, or is gone, it closes the session.
 */
#pragma once
#include "base/clock.h"
#include "core/job/start_plan.h"
#include "exec/child/child.h"
#include <stdbool.h>
#include <stdint.h>

struct environment_source;

#define PAM_SESSION_TIMEOUT (10 * USEC_SEC) /* for modules to open it, and to close it; the process is killed then */
#define PAM_SESSION_TEXT_MAX 256
#define PAM_SESSION_MAGIC UINT32_C(0x7373656a) /* "jess" */
#define PAM_SESSION_STARTED (-1)

/* What it says first; a byte follows when the session is closed. */
struct pam_session_report {
	uint32_t magic;
	int32_t failure;             /* enum start_failure; or PAM_SESSION_STARTED */
	int64_t started_at;          /* realtime */
	struct child_report made;      /* pid 0: none was */
	char text[PAM_SESSION_TEXT_MAX]; /* the reason, or something to be noted */
};

struct pam_session_plan {
	int64_t run;
	const struct child_plan *child;        /* without an environment */
	const struct environment_source *environ;  /* which is made from this and the session's */
};
int pam_session_fork(const struct pam_session_plan *p, pid_t *ret_pid, int *ret_socket); /* 0, or -errno */
