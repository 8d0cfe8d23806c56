/* SPDX-License-Identifier: Apache-2.0 */
/* anacrontab(5): jobs with a period in days, a delay in minutes, an identifier and a command. */
#pragma once
#include "base/auto.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct anacrontab_entry {
	size_t line;
	int64_t days;       /* period; 0: a calendar month */
	int64_t delay;      /* minutes */
	char *id, *command;
	size_t settings;    /* the first so many settings apply */
};

struct anacrontab {
	struct anacrontab_entry *entries;
	size_t n_entries;
	struct strv settings;    /* NAME=value, in the order of the file */
	int64_t first_hour, last_hour; /* START_HOURS_RANGE; 0 to 24: none */
	int64_t random_delay;    /* RANDOM_DELAY in minutes; 0: none */
	size_t error_line;       /* the first line that is refused; 0: none */
	char *error;             /* owned; its reason */
};

/* A line that anacron refuses is left out and is in 'error'. */
void anacrontab_parse(const char *data, size_t len, struct anacrontab **ret);
void anacrontab_free(struct anacrontab *t);
AUTO_DEFINE(anacrontab);

/* The value that applies to an entry; NULL: not set. */
const char *anacrontab_get(const struct anacrontab *t, const struct anacrontab_entry *e, const char *name);

int64_t anacrontab_minute(const struct anacrontab *t, const struct anacrontab_entry *e); /* of the day, of its slots */
/*
 * The schedule text of an entry. Periods count from the day of the last run, YYYYMMDD. 'offset' is
 * that of the machine's zone on that day, in seconds east of UTC.
 */
char *anacrontab_schedule(const struct anacrontab *t, const struct anacrontab_entry *e, int64_t day, int64_t offset);
