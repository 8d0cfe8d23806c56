/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed dates, times of day and UTC offsets. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct scan;

struct clocktime {
	int seconds;       /* of the day */
	bool two_digits;   /* the hour, as RFC 3339 wants it */
	bool has_seconds;  /* :SS was written */
	bool fraction;     /* .f was written and is not zero */
	bool has_fraction; /* .f was written */
	bool half;         /* am or pm was written */
};
/* H:MM, HH:MM[:SS[.f]], 9am, 9:30 pm; 24:00 and second 60 are refused */
bool clocktime_scan(struct scan *s, struct clocktime *ret);

/* YYYY-MM-DD, 1970 to 2199; the day since the epoch */
bool clocktime_scan_date(struct scan *s, int64_t *ret_day);

/* Z, +HH:MM or -HH:MM in seconds */
bool clocktime_scan_offset(struct scan *s, int64_t *ret);

extern const char *const weekday_words[14]; /* sun … sat, then the long ones */
extern const char *const month_words[24];   /* jan … dec, then the long ones */
