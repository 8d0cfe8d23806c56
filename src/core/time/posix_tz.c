/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and applies POSIX TZ rules like CET-1CEST,M3.5.0,M10.5.0/3. */
#include "core/time/posix_tz.h"
#include "core/time/civil.h"

#include <string.h>

/* The rest of the text. */
struct rest {
	const char *p, *end;
};

static bool rest_skip(struct rest *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static bool number_read(struct rest *r, int min, int max, int *ret)
{
	const char *from = r->p;
	int n = 0;

	while (r->p < r->end && *r->p >= '0' && *r->p <= '9' && n <= 1000)
		n = n * 10 + (*r->p++ - '0');
	*ret = n;
	return r->p > from && n >= min && n <= max;
}

static bool is_ascii_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool zone_name_skip(struct rest *r)
{
	const char *from = r->p;

	if (rest_skip(r, '<')) {
		while (r->p < r->end && *r->p != '>')
			r->p++;
		return rest_skip(r, '>') && r->p - from >= 5;
	}
	while (r->p < r->end && is_ascii_letter(*r->p))
		r->p++;
	return r->p - from >= 3;
}

/* [+-]hh[:mm[:ss]] */
static bool time_offset_read(struct rest *r, int hours_max, int64_t *ret)
{
	bool minus = rest_skip(r, '-');
	int h, m = 0, s = 0;

	if (!minus)
		rest_skip(r, '+');
	if (!number_read(r, 0, hours_max, &h) || (rest_skip(r, ':') && (!number_read(r, 0, 59, &m) ||
	    (rest_skip(r, ':') && !number_read(r, 0, 59, &s)))))
		return false;
	*ret = (minus ? -1 : 1) * ((int64_t)h * 3600 + m * 60 + s);
	return true;
}

static bool rule_day_read(struct rest *r, struct posix_day *d)
{
	if (rest_skip(r, 'M')) {
		d->form = POSIX_DAY_M;
		if (!number_read(r, 1, 12, &d->month) || !rest_skip(r, '.') || !number_read(r, 1, 5, &d->week) ||
		    !rest_skip(r, '.') || !number_read(r, 0, 6, &d->day))
			return false;
	} else if (rest_skip(r, 'J')) {
		d->form = POSIX_DAY_J;
		if (!number_read(r, 1, 365, &d->day))
			return false;
	} else {
		d->form = POSIX_DAY_N;
		if (!number_read(r, 0, 365, &d->day))
			return false;
	}
	d->time = 2 * 3600;
	return !rest_skip(r, '/') || time_offset_read(r, 167, &d->time);
}

bool posix_tz_parse(const char *text, size_t len, struct posix_tz *ret)
{
	struct rest r = { text, text + len };
	struct posix_tz p = {};

	/* POSIX counts west of Greenwich */
	if (!zone_name_skip(&r) || !time_offset_read(&r, 24, &p.std))
		return false;
	p.std = -p.std;
	if (r.p < r.end) {
		p.has_dst = true;
		if (!zone_name_skip(&r))
			return false;
		p.dst = -(p.std + 3600);
		if (r.p < r.end && *r.p != ',' && !time_offset_read(&r, 24, &p.dst))
			return false;
		p.dst = -p.dst;
		if (!rest_skip(&r, ',') || !rule_day_read(&r, &p.start) || !rest_skip(&r, ',') || !rule_day_read(&r, &p.end))
			return false;
	}
	if (r.p != r.end)
		return false;
	*ret = p;
	return true;
}

static int64_t day_of(const struct posix_day *d, int year)
{
	int64_t first;
	int back, last;

	switch (d->form) {
	case POSIX_DAY_J:
		return civil_days(year, 1, 1) + d->day - 1 + (d->day >= 60 && civil_leap(year));
	case POSIX_DAY_N:
		return civil_days(year, 1, 1) + d->day;
	case POSIX_DAY_M:
		break;
	}
	first = civil_days(year, d->month, 1);
	first += (d->day - civil_weekday(first) + 7) % 7;
	last = civil_month_days(year, d->month);
	back = civil_from_days(first).day + 7 * (d->week - 1) > last;
	return first + 7 * (d->week - 1 - back);
}

void posix_tz_year(const struct posix_tz *p, int year, int64_t *ret_start, int64_t *ret_end)
{
	*ret_start = day_of(&p->start, year) * DAY_SECONDS + p->start.time - p->std;
	*ret_end = day_of(&p->end, year) * DAY_SECONDS + p->end.time - p->dst;
}
