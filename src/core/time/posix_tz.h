/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the zone code: how a table of periods is gathered. */
#pragma once
#include "core/time/zone.h"

/* Far enough from both ends that adding an offset cannot overflow. */
#define ZONE_BEGIN (-(INT64_C(1) << 60))
#define ZONE_END (INT64_C(1) << 60)
#define ZONE_RULE_YEAR 2200 /* the last year a rule is worked out for */

struct err;

/* A rule of the form EST5EDT,M3.2.0,M11.1.0 (POSIX, with the extensions of TZif version 3). */
struct posix_day {
	enum { POSIX_DAY_J, POSIX_DAY_N, POSIX_DAY_M } form;
	int month, week, day;
	int64_t time; /* wall seconds after that day's midnight, may be negative or beyond a day */
};
struct posix_tz {
	int64_t std, dst; /* seconds east of UTC */
	bool has_dst;
	struct posix_day start, end; /* of dst */
};
bool posix_tz_parse(const char *text, size_t len, struct posix_tz *ret);

/* The UTC instants of one year at which dst begins and ends. */
void posix_tz_year(const struct posix_tz *p, int year, int64_t *ret_start, int64_t *ret_end);
