/* SPDX-License-Identifier: Apache-2.0 */
/* Schedule options of the command line. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct args;
struct err;
struct strv;

/* clang-format off */
#define WHEN_OPTS \
	{"at", 0, "TIME", "run once, at 2026-11-16T09:00:00Z, @1700000000 or 'tomorrow at 9am'"}, \
	{"in", 0, "DURATION", "run once, after 90s, 15m, 3h or 2d"}, \
	{"every", 0, "DURATION", "run every 90s, 15m or 1h30m"}, \
	{"cron", 0, "EXPR", "run at the times of a cron expression; repeatable"}, \
	{"iso", 0, "INTERVAL", "run at an ISO 8601 interval: PT3H, P1M, R10/2026-01-31T09:00:00Z/PT2H"}, \
	{"after-finish", 0, "DURATION", "run again this long after the last run has ended"}, \
	{"on", 0, "boot", "run once after each boot of the machine"}, \
	{"manual", 0, NULL, "no schedule: run only with 'jobctl run'"}
/* clang-format on */

const char *when_args_flag(size_t i); /* name of the i-th of these options; NULL: no more */

/* The schedule for a value of the option 'flag'. *ret is not set if there is no such option. */
bool when_args_parse(const char *flag, const char *value, char **ret, struct err *e);

/* Appends the schedules given by WHEN_OPTS. Only one of these options may be given. */
bool when_args_read(const struct args *a, struct strv *schedules, struct err *e);
