/* SPDX-License-Identifier: Apache-2.0 */
/* Context of a command: connection, options, output format. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

struct http_client;
struct err;

enum format {
	FORMAT_TABLE,
	FORMAT_WIDE,
	FORMAT_JSON,
	FORMAT_JSONL,
	FORMAT_CSV,
	FORMAT_NAME,
	FORMAT_MAX
};
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
	const char *socket_given;  /* --socket or $JOBSCHED_SOCKET; NULL: search */
	const char *url;           /* of a daemon over TCP; NULL: none */
	const char *token_file, *ca_file; /* NULL: none */
	const char *context;       /* --context; NULL: the current one, if nothing else is given */
	const char *instance;      /* name of the daemon instance; NULL: the one without a name */
	enum where where;
	enum format format;
	bool terminal;             /* standard output is a terminal */
	bool colour;
	int width;                 /* of the terminal in columns; 0: do not cut lines */
	bool yes;                  /* --yes: approve without asking */
	const char *job_typed;     /* borrowed: the operand that names the job; NULL: none */
	usec_t now;                /* when the command started, for relative times */
	struct http_client *client; /* NULL until connect_daemon() */
	char *socket;              /* path or URL that the client is connected to */
	bool remote;               /* connected over TCP */
	pid_t daemon;              /* process that received the last request; 0: unknown */
};
void ctl_done(struct ctl *c);

/* Prints one line to standard error, with control characters escaped. */
void ctl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int ctl_fail(const struct err *e); /* prints the error and returns its exit code */

bool ctl_can_ask(void);             /* standard input and standard error are terminals */
bool ctl_ask(const char *question); /* true: the answer begins with 'y' */
