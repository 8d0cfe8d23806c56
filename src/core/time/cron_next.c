/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the next match of a cron expression by bitmap search. */
#include "core/time/civil.h"
#include "core/time/cron.h"
#include "core/time/zone.h"

#define NEVER (INT64_C(1) << 61)

/* The lowest set bit at or above 'from', or -1. */
static int bit_from(uint64_t bits, int from)
{
	if (from > 63)
		return -1;
	bits &= ~UINT64_C(0) << from;
	return bits ? __builtin_ctzll(bits) : -1;
}

static int year_from(const struct cron *c, int year)
{
	int i = year - CRON_YEAR_BASE;

	if (i < 0)
		i = 0;
	for (int word = i / 64; word < 4; word++) {
		int bit = bit_from(c->years[word], word == i / 64 ? i % 64 : 0);

		if (bit >= 0)
			return CRON_YEAR_BASE + word * 64 + bit;
	}
	return -1;
}

/* Weekdays as seen from a day that is weekday 'first': bit k is the day k later. */
static uint32_t rotate(uint32_t weekdays, int first)
{
	return ((weekdays >> first) | (weekdays << (7 - first))) & 0x7f;
}

/* The nearest of Monday to Friday, never in another month. */
static int near_weekday(int day, int weekday, int days)
{
	if (weekday == 6)
		return day > 1 ? day - 1 : day + 2;
	if (weekday == 0)
		return day < days ? day + 1 : day - 2;
	return day;
}

static uint32_t day_bits(const struct cron *c, int first, int days)
{
	uint32_t bits = (uint32_t)c->value[CRON_DAY];

	for (uint32_t left = c->last; left; left &= left - 1) {
		int day = days - __builtin_ctz(left);

		if (day >= 1)
			bits |= UINT32_C(1) << day;
	}
	for (int day = 1; (c->near_day | c->near_last) && day <= days; day++)
		if ((c->near_day >> day & 1) || (c->near_last >> (days - day) & 1))
			bits |= UINT32_C(1) << near_weekday(day, (first + day - 1) % 7, days);
	return bits;
}

static uint32_t weekday_bits(const struct cron *c, int first, int days)
{
	uint32_t plain = rotate((uint32_t)c->value[CRON_WEEKDAY], first);
	uint64_t bits = 0;

	for (int n = 0; n < 5; n++)
		bits |= (uint64_t)(plain | rotate(c->nth[n], first)) << (7 * n + 1);
	bits |= (uint64_t)rotate(c->last_weekday, (first + days - 7) % 7) << (days - 6);
	return (uint32_t)bits;
}

uint32_t cron_month_days(const struct cron *c, int year, int month)
{
	int days = civil_month_days(year, month);
	int first = civil_weekday(civil_days(year, month, 1));
	uint32_t in_month = (uint32_t)((UINT64_C(2) << days) - 2);
	uint32_t by_day = day_bits(c, first, days), by_weekday = weekday_bits(c, first, days);

	return in_month & (c->star[CRON_DAY] || c->star[CRON_WEEKDAY] ? by_day & by_weekday :
		by_day | by_weekday);
}

/* The first time of day at or after this one, or -1. */
static int time_from(const struct cron *c, int of_day)
{
	int h = of_day / 3600, m = of_day / 60 % 60, s = of_day % 60;
	int hour = bit_from(c->value[CRON_HOUR], h), minute, second;

	if (hour == h) {
		minute = bit_from(c->value[CRON_MINUTE], m);
		if (minute == m) {
			second = bit_from(c->value[CRON_SECOND], s);
			if (second >= 0)
				return h * 3600 + m * 60 + second;
			minute = bit_from(c->value[CRON_MINUTE], m + 1);
		}
		if (minute >= 0)
			return h * 3600 + minute * 60 + __builtin_ctzll(c->value[CRON_SECOND]);
		hour = bit_from(c->value[CRON_HOUR], h + 1);
	}
	if (hour < 0)
		return -1;
	return hour * 3600 + __builtin_ctzll(c->value[CRON_MINUTE]) * 60 +
	       __builtin_ctzll(c->value[CRON_SECOND]);
}

bool cron_wall_next(const struct cron *c, int64_t wall, int64_t *ret)
{
	int of_day, time, year, month;
	int64_t day = civil_split(wall, &of_day);
	struct civil at;
	uint32_t days;

	if (c->every_day) {
		time = time_from(c, of_day);
		*ret = time >= 0 ? day * DAY_SECONDS + time : (day + 1) * DAY_SECONDS + time_from(c, 0);
		return true;
	}
	at = civil_from_days(day);
	for (year = year_from(c, at.year); year >= 0; year = year_from(c, year + 1)) {
		month = year == at.year ? at.month : 1;
		while ((month = bit_from(c->value[CRON_MONTH], month)) >= 0) {
			days = cron_month_days(c, year, month);
			if (year == at.year && month == at.month) {
				if ((days >> at.day & 1) && (time = time_from(c, of_day)) >= 0) {
					*ret = day * DAY_SECONDS + time;
					return true;
				}
				days &= (uint32_t)(~UINT64_C(1) << at.day);
			}
			if (days) {
				*ret = civil_days(year, month, __builtin_ctz(days)) * DAY_SECONDS +
				       time_from(c, 0);
				return true;
			}
			month++;
		}
	}
	return false;
}

/*
 * Remembers that nothing matches between two wall times, since neighbouring periods ask the same.
 */
struct search {
	const struct cron *c;
	int64_t from, found;
};

static int64_t search_from(struct search *s, int64_t wall)
{
	if (wall < s->from || wall > s->found) {
		s->from = wall;
		if (!cron_wall_next(s->c, wall, &s->found))
			s->found = NEVER;
	}
	return s->found;
}

/* Fixed times that a short jump of the clock leaves out happen right after it. */
static bool in_gap(struct search *s, const struct zone_period *p, bool skip_seen)
{
	int64_t jump = p->offset - p[-1].offset, from = p->from + p[-1].offset;

	if (jump <= 0 || jump > ZONE_POLICY_MAX)
		return false;
	if (skip_seen && p[-1].seen > from)
		from = p[-1].seen;
	return search_from(s, from) < p->from + p->offset;
}

/* Where the wall times end that this period answers for. */
static int64_t period_end(const struct zone_period *p, bool leave_repeated)
{
	int64_t back = p->offset - p[1].offset;

	return p[1].from + (leave_repeated && back > 0 && back <= ZONE_POLICY_MAX ? p[1].offset : p->offset);
}

bool cron_next(const struct cron *c, const struct cron_policy *policy, int64_t t, int64_t *ret)
{
	const struct zone *z = policy->zone;
	bool gap = !c->wild && policy->gap == DST_GAP_AFTER;
	bool first = !c->wild && policy->fold == DST_FOLD_FIRST;
	bool last = !c->wild && policy->fold == DST_FOLD_LAST;
	struct search s = { .c = c, .from = NEVER, .found = -NEVER };

	for (size_t i = zone_find(z, t); i < z->n && z->v[i].from <= TIME_LAST; i++) {
		const struct zone_period *p = &z->v[i];
		int64_t from = (p->from > t ? p->from : t) + p->offset, wall;
		size_t far;

		if (i && p->from >= t && gap && in_gap(&s, p, first)) {
			*ret = p->from;
			return true;
		}
		if (first && p->seen > from)
			from = p->seen;
		wall = search_from(&s, from);
		if (wall < period_end(p, last)) {
			*ret = wall - p->offset;
			return true;
		}
		/* the next period may show again what lies before 'from' */
		if (p[1].from + p[1].offset < from)
			continue;
		if (wall == NEVER)
			break;
		far = zone_find(z, wall - ZONE_OFFSET_MAX);
		if (far > i + 1)
			i = far - 1;
	}
	return false;
}
