/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as users write them: RFC 3339, a wall time, or a phrase of at(1). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct scan;
struct zone;

struct phrase_context {
	const struct zone *zone;
	int64_t now;   /* seconds; what relative words count from */
	bool past_ok;  /* the result may be before 'now' */
	bool whole_days; /* a date without a time of day means its midnight; else that is an error or keeps the time of day */
	bool back;     /* a weekday, a day of a year or a time of day is the last one up to 'now', not the next one */
};

/* Reads to the end of the text. The instant is not before 'now' unless past_ok. */
bool phrase_scan(struct scan *s, const struct phrase_context *c, int64_t *ret);

/* Does a text beginning with this word, or looking like this, belong here rather than to cron? */
bool phrase_looks_like(const struct scan *s);

/* A full RFC 3339 time with its offset; stops after it. A fraction rounds up to the next second. */
bool phrase_scan_rfc3339(struct scan *s, int64_t *ret);
