/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb is given: how to reach the daemon, how to show things. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

struct http_client;
struct err;

enum format { FORMAT_TABLE, FORMAT_WIDE, FORMAT_JSON, FORMAT_JSONL, FORMAT_CSV, FORMAT_NAME, FORMAT_MAX };
enum where { WHERE_ANY, WHERE_USER, WHERE_SYSTEM };

enum exit_code {
	EXIT_USAGE = 2,
	EXIT_NOT_FOUND = 3,
	EXIT_NOT_ALLOWED = 4,
	EXIT_UNREACHABLE = 5,
	EXIT_CONFLICT = 6,
	EXIT_WAIT_TIMEOUT = 8,
	EXIT_RUN_FAILED = 10,
	EXIT_RUN_CANCELLED = 11,
	EXIT_RUN_SKIPPED = 12,
	EXIT_RUN_TIMED_OUT = 13,
};

struct ctl {
	const char *socket_given;  /* --socket or the environment; NULL: search */
	const char *instance;      /* one of several on this host; NULL: the one without a name */
	enum where where;
	enum format format;
	bool terminal;             /* standard output is one */
	bool colour;
	int width;                 /* of the terminal; 0: do not cut */
	bool yes;                  /* --yes: approve without asking */
	const char *job_typed;     /* the operand that names the job to change or run; NULL: none. Borrowed */
	usec_t now;                /* when the command started, for relative times */
	struct http_client *client;     /* NULL until connect_daemon() */
	char *socket;              /* where the client is connected */
	pid_t daemon;              /* who was there when it was last asked; 0: not known */
};
void ctl_done(struct ctl *c);

/* To standard error, one line, control characters escaped. */
void ctl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int ctl_fail(const struct err *e); /* says it and returns its exit code */

bool ctl_can_ask(void);             /* standard input and standard error are terminals */
bool ctl_ask(const char *question); /* true: the answer begins with 'y' */
