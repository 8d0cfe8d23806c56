/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a cron daemon: which command it started for whom, and when. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct err;

struct cron_start {
	usec_t at;
	char *user, *command; /* owned */
};
struct cron_starts {
	struct cron_start *v;
	size_t n;
};
void cron_starts_done(struct cron_starts *l);

/* A message "(USER) CMD (COMMAND)". False: another message. */
bool cron_log_message(const char *message, size_t len, struct cron_start *ret);
/*
 * A line of a syslog file, "Nov 18 07:17:01 host CRON[12]: …" or with an RFC 3339 time. Times without
 * a year are in the year before 'now'. False: not a start.
 */
bool cron_log_line(const char *line, size_t len, usec_t now, struct cron_start *ret);

/* Reads the starts since a time: from 'file', or (NULL) from the journal or a syslog file. */
bool cron_log_read(const char *file, usec_t since, usec_t now, struct cron_starts *ret, struct err *e);
