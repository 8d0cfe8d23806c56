/* SPDX-License-Identifier: Apache-2.0 */
/* The slow model: tries every wall time of every matching day against the rules of the manual. */
#include "core/time/civil.h"
#include "core/time/zone.h"
#include "unit/core/random_cron.h"

#include <stddef.h>

#define SHORT_JUMP (3 * 3600)

static bool weekend(int64_t day)
{
	int w = civil_weekday(day);

	return w == 0 || w == 6;
}

/* Is 'day' of the month the one that n is moved to? */
static bool is_nearest(int64_t first, int length, int n, int day)
{
	if (n < 1 || n > length)
		return false;
	if (!weekend(first + n - 1))
		return day == n;
	/* the nearest working day, of two the one the rule names, within the month */
	if (civil_weekday(first + n - 1) == 6)
		return day == (n == 1 ? 3 : n - 1);
	return day == (n == length ? n - 2 : n + 1);
}

static bool day_matches(const struct model *m, int64_t first, int length, int day)
{
	if (m->day[day] || m->last[length - day])
		return true;
	for (int n = 1; n <= 31; n++)
		if (m->near[n] && is_nearest(first, length, n, day))
			return true;
	for (int n = 0; n <= 30; n++)
		if (m->near_last[n] && is_nearest(first, length, length - n, day))
			return true;
	return false;
}

static bool weekday_matches(const struct model *m, int64_t number, int length, int day)
{
	int w = civil_weekday(number);

	return m->weekday[w] || m->nth[(day + 6) / 7][w] || (m->last_weekday[w] && day + 7 > length);
}

static bool date_matches(const struct model *m, int64_t number)
{
	struct civil c = civil_from_days(number);
	int length = civil_month_days(c.year, c.month);
	bool d, w;

	if (!m->month[c.month] || (!m->any_year && (c.year >= 2200 || !m->year[c.year])))
		return false;
	d = day_matches(m, number - c.day + 1, length, c.day);
	w = weekday_matches(m, number, length, c.day);
	return m->star_day || m->star_weekday ? d && w : d || w;
}

/* What the rules make of one wall time; 0, 1 or 2 instants, ascending. */
static int instants_of(const struct model *m, const struct schedule_context *c, int64_t wall, int64_t out[2])
{
	const struct zone *z = c->zone ? c->zone : &zone_utc;
	int64_t passes[4], jump;
	size_t n = 0;

	for (size_t i = zone_find(z, wall - 2 * DAY_SECONDS); i < z->n && z->v[i].from < wall + 2 * DAY_SECONDS; i++) {
		int64_t t = wall - z->v[i].offset;

		if (t >= z->v[i].from && t < z->v[i + 1].from && n < 4)
			passes[n++] = t;
		/* in a gap before this period */
		if (i && wall >= z->v[i].from + z->v[i - 1].offset && wall < z->v[i].from + z->v[i].offset) {
			jump = z->v[i].offset - z->v[i - 1].offset;
			out[0] = z->v[i].from;
			return !m->wild && c->gap == DST_GAP_AFTER && jump <= SHORT_JUMP;
		}
	}
	if (n == 0)
		return 0;
	out[0] = passes[0];
	out[1] = passes[n - 1];
	if (n == 1)
		return 1;
	if (m->wild || passes[n - 1] - passes[0] > SHORT_JUMP || c->fold == DST_FOLD_BOTH)
		return 2;
	if (c->fold == DST_FOLD_LAST)
		out[0] = out[1];
	return 1;
}

static void try_wall(const struct model *m, const struct schedule_context *c, int64_t wall, int64_t after, int64_t *best)
{
	int64_t t[2];
	int n = instants_of(m, c, wall, t);

	for (int i = 0; i < n; i++)
		if (t[i] > after && t[i] < *best)
			*best = t[i];
}

static void try_day(const struct model *m, const struct schedule_context *c, int64_t number, int64_t after, int64_t *best)
{
	for (int h = 0; h < 24; h++) {
		int64_t hour = number * DAY_SECONDS + h * 3600;

		/* no offset is that large */
		if (!m->hour[h] || hour + 3600 + ZONE_OFFSET_MAX < after || hour - ZONE_OFFSET_MAX > *best)
			continue;
		for (int minute = 0; minute < 60; minute++)
			for (int s = 0; m->minute[minute] && s < 60; s++)
				if (m->second[s])
					try_wall(m, c, hour + minute * 60 + s, after, best);
	}
}

bool model_next(const struct model *m, const struct schedule_context *c, int64_t after, int days, int64_t *ret)
{
	int64_t best = INT64_MAX, first = after / DAY_SECONDS - 2;

	for (int64_t d = first; d < first + days; d++) {
		if (best != INT64_MAX && d * DAY_SECONDS - ZONE_OFFSET_MAX > best)
			break;
		if (date_matches(m, d))
			try_day(m, c, d, after, &best);
	}
	*ret = best;
	return best != INT64_MAX;
}
