/* SPDX-License-Identifier: Apache-2.0 */
/* Durations with calendar parts, which follow the wall clock, and elapsed seconds. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct scan;
struct zone;

#define INTERVAL_SECONDS_MAX (INT64_C(36525) * 86400) /* a hundred years */

struct interval {
	int64_t months;  /* years are twelve; added first, the day cut to the month's end */
	int64_t days;    /* weeks are seven; wall clock */
	int64_t seconds; /* elapsed */
};

/* One unit word, as in "5 minutes". */
struct interval_unit {
	const char *names[5]; /* the first is the short one, the last the plural */
	struct interval one;
};
/*
 * NULL: not a unit. 'elapsed' days and weeks are what 'every' means by them; it knows no months and
 * years.
 */
const struct interval_unit *interval_unit_find(const char *word);
bool interval_unit_elapsed(const struct interval_unit *u, int64_t *ret_seconds);

bool interval_scan_iso(struct scan *s, struct interval *ret);   /* P1DT12H, up to a '/', a blank or the end */
bool interval_scan_words(struct scan *s, struct interval *ret); /* 1h 30m; elapsed */

/*
 * anchor + k times the duration, computed from the anchor; beyond TIME_LAST the value is only
 * "later".
 */
int64_t interval_add(const struct interval *v, const struct zone *z, int64_t anchor, int64_t k);

/* The first such instant after 'after' with first <= k <= last; false: none up to TIME_LAST. */
struct interval_series {
	struct interval step;
	int64_t anchor;
	int64_t first, last; /* k; INT64_MAX: no end */
};
bool interval_next(const struct interval_series *s, const struct zone *z, int64_t after, int64_t *ret);

void interval_print(const struct interval *v, struct buf *out);   /* ISO 8601 */
void interval_explain(const struct interval *v, struct buf *out); /* 1 hour 30 minutes */
