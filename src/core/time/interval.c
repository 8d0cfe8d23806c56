/* SPDX-License-Identifier: Apache-2.0 */
/* Adds multiples of a duration to an anchor without accumulating rounding. */
#include "core/time/interval.h"

#include "base/buf.h"
#include "core/time/civil.h"
#include "core/time/zone.h"

#include <inttypes.h>

#define MEAN_MONTH INT64_C(2629746) /* seconds: a 4800th of 400 years */

/* Years and months first, the day cut to the month's end, then days. */
static int64_t wall_add(int64_t wall, int64_t months, int64_t days)
{
	int of_day;
	int64_t day = civil_split(wall, &of_day);

	if (months) {
		struct civil c = civil_from_days(day);
		int64_t m = (int64_t)c.year * 12 + (c.month - 1) + months;
		int year = (int)(m / 12), month = (int)(m % 12) + 1;
		int last = civil_month_days(year, month);

		day = civil_days(year, month, c.day < last ? c.day : last);
	}
	return (day + days) * DAY_SECONDS + of_day;
}

int64_t interval_add(const struct interval *v, const struct zone *z, int64_t anchor, int64_t k)
{
	int64_t t = anchor;

	if (v->months || v->days) {
		int64_t wall = anchor + zone_offset(z, anchor);

		t = zone_instant(z, wall_add(wall, v->months * k, v->days * k));
	}
	return t + v->seconds * k;
}

/*
 * The mean length gives k to within the spread of month lengths and offsets, less than eight steps;
 * the series never falls, so the rest is a search.
 */
#define SEARCH_SPREAD 8

bool interval_next(const struct interval_series *s, const struct zone *z, int64_t after, int64_t *ret)
{
	const struct interval *v = &s->step;
	int64_t mean = v->months * MEAN_MONTH + v->days * DAY_SECONDS + v->seconds;
	int64_t guess = after < s->anchor ? 0 : (after - s->anchor) / mean;
	int64_t lo = guess - SEARCH_SPREAD, hi = guess + SEARCH_SPREAD, t;

	if (!v->months && !v->days)
		lo = hi = guess + (after >= s->anchor);
	if (lo < s->first)
		lo = s->first;
	if (hi < lo)
		hi = lo;
	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;

		if (interval_add(v, z, s->anchor, mid) > after)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo > s->last)
		return false;
	t = interval_add(v, z, s->anchor, lo);
	if (t > TIME_LAST)
		return false;
	*ret = t;
	return true;
}

struct part {
	int64_t n;
	char iso;
	const char *word;
};

static void print_parts(const struct part *v, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].n)
			buf_printf(out, "%" PRId64 "%c", v[i].n, v[i].iso);
}

void interval_print(const struct interval *v, struct buf *out)
{
	const struct part date[] = { { v->months / 12, 'Y', NULL }, { v->months % 12, 'M', NULL },
		{ v->days, 'D', NULL } };
	const struct part time[] = { { v->seconds / 3600, 'H', NULL }, { v->seconds / 60 % 60, 'M', NULL },
		{ v->seconds % 60, 'S', NULL } };

	buf_char(out, 'P');
	print_parts(date, 3, out);
	if (v->seconds)
		buf_char(out, 'T');
	print_parts(time, 3, out);
}

void interval_explain(const struct interval *v, struct buf *out)
{
	const struct part parts[] = {
		{ v->months / 12, 0, "year" },
		{ v->months % 12, 0, "month" },
		{ v->days % 7 ? 0 : v->days / 7, 0, "week" },
		{ v->days % 7 ? v->days : 0, 0, "day" },
		{ v->seconds / 3600, 0, "hour" },
		{ v->seconds / 60 % 60, 0, "minute" },
		{ v->seconds % 60, 0, "second" },
	};
	const char *gap = "";

	for (size_t i = 0; i < ELEMENTS(parts); i++) {
		if (!parts[i].n)
			continue;
		buf_printf(out, "%s%" PRId64 " %s%s", gap, parts[i].n, parts[i].word,
			parts[i].n == 1 ? "" : "s");
		gap = " ";
	}
}
