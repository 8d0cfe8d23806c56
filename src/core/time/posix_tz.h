/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX TZ rules, which are at the end of TZif files. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
