/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what cron has started with the slots of the jobs of crontabs. */
#pragma once
#include "base/clock.h"
#include "jobctl/cron/cron_log.h"
#include <stddef.h>

/* A line of a crontab, as the daemon knows it. */
struct compare_line {
	char *user, *command, *origin; /* owned */
	usec_t since;                  /* slots before are not known: the job was added then */
	int64_t job;
};
struct compare_lines {
	struct compare_line *v;
	size_t n;
};
void compare_lines_done(struct compare_lines *l);

/* A slot of a line, or a start by cron; in whole minutes. */
struct compare_slot {
	size_t line;     /* index; SIZE_MAX: cron has started a command that no table has */
	usec_t minute;
};

struct compare_difference {
	usec_t minute;
	const char *user, *command; /* borrowed from the lines or the starts */
	const char *origin;         /* NULL: no table has the command */
	bool by_cron;               /* cron has run it, jobschedd would not */
};
struct compare_result {
	struct compare_difference *v; /* owned; by time */
	size_t n;
	size_t both;                  /* starts that agree */
};
/*
 * Only whole minutes between the two times are compared. Lines with the same user and command are one
 * line: each start of cron needs a slot in the same minute.
 */
void compare_run(const struct compare_lines *lines, const struct compare_slot *slots, size_t n_slots,
	const struct cron_starts *starts, usec_t from, usec_t to, struct compare_result *ret);
