/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when unacknowledged ends are written to the ends file. */
/*
 * An end that the daemon has not acknowledged for a second (the daemon or its store is unavailable)
 * is written to the file, so that it survives a power failure. The file is removed when all its
 * ends are acknowledged. The next spawner reports the ends that it finds there; the daemon
 * recognizes an end that it has already recorded by run and fence.
 */
#pragma once
#include "base/clock.h"
#include "exec/proto/epoll_source.h"
#include <stdbool.h>
#include <stddef.h>

struct worker;
struct workers;

#define ENDS_SPOOL_AFTER (USEC_SEC)   /* an end that is unacknowledged for this long is written */

struct ends_spool {
	struct epoll_source pipe; /* result of the writing process; -1: there is none */
	int pidfd;          /* of that process; -1: none */
	bool removing;      /* that process removes the file */
	bool file;          /* the file exists */
	bool said;          /* the log says that ends are kept on disk */
	size_t spooled;     /* unacknowledged ends in the file */
	/* boottime when an end may be old enough; 0: there is no end to check */
	usec_t look_at;
	usec_t retry_at;    /* boottime of the next try after a failure; 0: none */
};

void ends_spool_note(struct worker *w);        /* it has just ended */
void ends_spool_forget(struct worker *w);      /* its end was acknowledged */
/* after a restart or re-exec, when there may be a file or ends */
void ends_spool_resume(struct workers *ws);
void ends_spool_run_due(struct workers *ws, usec_t now);
/* boottime when ends_spool_run_due() is needed next */
usec_t ends_spool_next_due(const struct workers *ws);
/* kills the writing process; 'wait': until it has exited */
void ends_spool_stop(struct workers *ws, bool wait);
/* the writing process: frames from descriptor 0, directory in 3, result to 1 */
int ends_spool_main(void);
