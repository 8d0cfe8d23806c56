/* SPDX-License-Identifier: Apache-2.0 */
/* The process that holds the PAM session of one run. It runs as root. */
/*
 * The process creates the worker, so that the worker inherits the session (limits, login uid,
 * keyring, namespaces). The worker is a child of the spawner like any other, so signals, accounting
 * and its end do not involve this process. The process has a copy of the spawner's memory, and of
 * its descriptors only those that the worker needs. It reports the result of the start through a
 * socket, and closes the session when the spawner shuts that socket down or exits.
 */
#pragma once
#include "base/clock.h"
#include "core/start/start_plan.h"
#include "exec/child/child.h"
#include <stdbool.h>
#include <stdint.h>

struct environment_source;

/* for opening and for closing the session; after that the process is killed */
#define PAM_SESSION_TIMEOUT (10 * USEC_SEC)
#define PAM_SESSION_TEXT_MAX 256
#define PAM_SESSION_MAGIC UINT32_C(0x7373656a) /* "jess" */
/* The first packet from the process. A packet of one byte follows when the session is closed. */
#define PAM_SESSION_STARTED (-1)
struct pam_session_report {
	uint32_t magic;
	int32_t failure;             /* enum start_failure; or PAM_SESSION_STARTED */
	int64_t started_at;          /* realtime */
	struct child_report made;    /* pid 0: no process was created */
	char text[PAM_SESSION_TEXT_MAX]; /* the error, or a note about the start */
};

struct pam_session_plan {
	int64_t run;
	const struct child_plan *child;        /* its environment is not used */
	const struct environment_source *environ;  /* combined with the variables of the session */
};
/* 0, or -errno */
int pam_session_fork(const struct pam_session_plan *p, pid_t *ret_pid, int *ret_socket);
