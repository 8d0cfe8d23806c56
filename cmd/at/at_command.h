/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that at(1), atq(1), atrm(1) and batch(1) share. */
#pragma once
#include "jobctl/ctl.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* Tags of the jobs that at(1) adds: atq and atrm find them by the first one. */
#define AT_TAG "at=job"
#define AT_TAG_QUEUE "at.queue"
#define AT_TAG_TIME "at.time"     /* seconds since 1970 */
#define AT_TIME_FORMAT "%a %b %e %H:%M:%S %Y"
#define AT_LOAD_LIMIT "load<1.5"  /* of batch, as atd's default */

enum at_mail { AT_MAIL_OUTPUT, AT_MAIL_ALWAYS /* -m */, AT_MAIL_NEVER /* -M */ };

struct at_command {
	struct ctl ctl;           /* connection to the daemon */
	const char *program;      /* the name it was called by */
	const char *input;        /* -f; NULL: standard input */
	char queue;               /* 0: not given */
	bool batch;               /* -b, or the program 'batch' */
	bool verify;              /* -v */
	enum at_mail mail;
	const char *mail_to;      /* -u; NULL: the user */
	const char *format;       /* -o, of strftime(3) */
	int64_t time;             /* UTC seconds; 0: not given */
	char *const *words;       /* operands */
	size_t n;
};

/* These return the exit status. */
int submit_job(struct at_command *c);
int list_jobs(struct at_command *c);
int remove_jobs(struct at_command *c);
int print_jobs(struct at_command *c);

/* Prints "at: TEXT" with control characters escaped; returns the exit status of a failure. */
int at_fail(const struct at_command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
