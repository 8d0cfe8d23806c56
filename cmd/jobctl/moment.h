/* SPDX-License-Identifier: Apache-2.0 */
/* A time as people write it in an option. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;

struct moment_how {
	usec_t now;
	const char *tz; /* of words and wall times; NULL: the zone of the caller */
	bool back;      /* '2h' is two hours ago and 'monday' the last one; else both are to come */
};
/*
 * 2026-11-16T09:00:00Z, @1700000000, 2h, 'yesterday', '2026-11-16', 'tomorrow at 9am', '1 day ago'. A day without a time of
 * day means its midnight.
 */
bool moment_parse(const char *text, const struct moment_how *how, usec_t *ret, struct err *e);
