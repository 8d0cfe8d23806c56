/* SPDX-License-Identifier: Apache-2.0 */
/* Cron expressions as bitmaps: parse, print, explain, next match. */
#pragma once
#include "core/time/schedule.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct scan;
struct zone;

enum cron_field {
	CRON_SECOND,
	CRON_MINUTE,
	CRON_HOUR,
	CRON_DAY,
	CRON_MONTH,
	CRON_WEEKDAY,
	CRON_YEAR,
	CRON_FIELD_MAX
};
extern const char *const cron_field_names[CRON_FIELD_MAX];

#define CRON_YEAR_FIRST 1970
#define CRON_YEAR_LAST 2199
/* One more year on either side: local time may be in 1969 or 2200 while UTC is in range. */
#define CRON_YEAR_BASE 1969
#define CRON_YEARS 232

struct cron {
	uint64_t value[CRON_YEAR];     /* bit v: the plain values of each field; Sunday is 0 */
	uint32_t last;                 /* bit n: L-n */
	uint32_t near_day;             /* bit n: nW */
	uint32_t near_last;            /* bit n: L-nW; LW is n = 0 */
	uint8_t nth[5];                /* bit d of the n-th: d#n+1 */
	uint8_t last_weekday;          /* bit d: dL */
	uint64_t years[4];             /* bit y - CRON_YEAR_BASE */
	bool any_year;
	bool star[CRON_YEAR];          /* the field begins with '*' or '?' */
	bool hashed[CRON_YEAR];        /* H was used */
	bool every_day;                /* every date matches */
	bool wild;                     /* '*' in seconds, minutes or hours: DST policies do not apply */
	int fields;                    /* as written: 5, 6 or 7 */
	uint32_t star_step[CRON_YEAR]; /* n of a leading '*', '/', n; 0: none. For the linter */
	bool wide_step[CRON_YEAR];     /* a step beyond the range. For the linter */
};

/* Parses the rest of the text. 'id' is the seed of H. */
bool cron_scan(struct scan *s, const char *id, struct cron *ret);

/* Sets the members that follow from the values, stars and years of an expression. */
void cron_settle(struct cron *c);

/* How fixed wall times are treated at DST changes. */
struct cron_policy {
	const struct zone *zone;
	enum dst_gap gap;
	enum dst_fold fold;
};
/* The first match at or after t, seconds UTC. */
bool cron_next(const struct cron *c, const struct cron_policy *p, int64_t t, int64_t *ret);

/* The first matching wall time at or after this one, as if it were UTC. */
bool cron_wall_next(const struct cron *c, int64_t wall, int64_t *ret);

uint32_t cron_month_days(const struct cron *c, int year, int month); /* bit d: the day matches */

void cron_print(const struct cron *c, struct buf *out);
void cron_explain(const struct cron *c, struct buf *out);

/* A stable hash of id and field, for H. */
uint64_t cron_hash(const char *id, enum cron_field field);
