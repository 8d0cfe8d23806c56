/* SPDX-License-Identifier: Apache-2.0 */
/* Times in options, absolute or relative. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;

struct moment_how {
	usec_t now;
	const char *tz; /* zone of times without an offset; NULL: the user's zone */
	bool back;      /* relative times are past: '2h' is two hours ago, 'monday' the last one */
};
/*
 * Parses 2026-11-16T09:00:00Z, @1700000000, 2h, 'yesterday', '2026-11-16', 'tomorrow at 9am' or
 * '1 day ago'. A day without a time is its midnight.
 */
bool moment_parse(const char *text, const struct moment_how *how, usec_t *ret, struct err *e);
