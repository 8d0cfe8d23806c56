/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say when: each becomes a text of the schedule language. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct args;
struct err;
struct strv;

/* clang-format off */
#define WHEN_OPTS \
	{"at", 0, "TIME", "once, at 2026-11-16T09:00:00Z, @1700000000 or a phrase like 'tomorrow at 9am'"}, \
	{"in", 0, "DURATION", "once, after 90s, 15m, 3h, 2d"}, \
	{"every", 0, "DURATION", "again and again, every 90s, 15m, 1h30m"}, \
	{"cron", 0, "EXPR", "when a cron expression says so; repeatable"}, \
	{"iso", 0, "INTERVAL", "ISO 8601: PT3H, P1M, R10/2026-01-31T09:00:00Z/PT2H"}, \
	{"after-finish", 0, "DURATION", "again and again, each time so long after the last run ended"}, \
	{"on", 0, "boot", "once each time the machine has booted"}, \
	{"manual", 0, NULL, "never by itself, only when triggered with 'jobctl run'"}
/* clang-format on */

const char *when_args_flag(size_t i); /* the names of these options; NULL: no more */

/* What one of them means by a value. *ret stays NULL when there is no such option. */
bool when_args_parse(const char *flag, const char *value, char **ret, struct err *e);

/* Appends what WHEN_OPTS were given; at most one of them. */
bool when_args_read(const struct args *a, struct strv *schedules, struct err *e);
