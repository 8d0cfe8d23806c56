/* SPDX-License-Identifier: Apache-2.0 */
/* Parses ISO 8601 durations and the units of 'every'. */
#include "base/auto.h"
#include "core/time/interval.h"
#include "core/time/scan.h"

#include <string.h>

static const struct interval_unit units[] = {
	{ { "s", "sec", "secs", "second", "seconds" }, { .seconds = 1 } },
	{ { "m", "min", "mins", "minute", "minutes" }, { .seconds = 60 } },
	{ { "h", "hr", "hrs", "hour", "hours" }, { .seconds = 3600 } },
	{ { "d", "day", "days" }, { .days = 1 } },
	{ { "w", "week", "weeks" }, { .days = 7 } },
	{ { "month", "months" }, { .months = 1 } },
	{ { "year", "years" }, { .months = 12 } },
};

const struct interval_unit *interval_unit_find(const char *word)
{
	for (size_t i = 0; i < ELEMENTS(units); i++)
		for (size_t k = 0; k < ELEMENTS(units[i].names) && units[i].names[k]; k++)
			if (!strcmp(word, units[i].names[k]))
				return &units[i];
	return NULL;
}

bool interval_unit_elapsed(const struct interval_unit *u, int64_t *ret_seconds)
{
	if (u->one.months)
		return false;
	*ret_seconds = u->one.seconds + u->one.days * 86400;
	return true;
}

/* The mean length, with the 365.25 days of the limit. Nine digits each: no overflow. */
static bool length_fits(const struct interval *v, struct scan *s, size_t from)
{
	int64_t total = v->months * (INTERVAL_SECONDS_MAX / 1200) + v->days * 86400 + v->seconds;

	if (total == 0)
		return scan_fail(s, from, "a duration of zero");
	if (total > INTERVAL_SECONDS_MAX)
		return scan_fail(s, from, "a duration is at most 36525 days, a hundred years");
	return true;
}

struct iso_part {
	char letter;
	bool time; /* after the T */
	struct interval one;
};
static const struct iso_part iso_parts[] = {
	{ 'Y', false, { .months = 12 } },
	{ 'M', false, { .months = 1 } },
	{ 'W', false, { .days = 7 } },
	{ 'D', false, { .days = 1 } },
	{ 'H', true, { .seconds = 3600 } },
	{ 'M', true, { .seconds = 60 } },
	{ 'S', true, { .seconds = 1 } },
};

static void add_times(struct interval *to, const struct interval *one, int64_t n)
{
	to->months += one->months * n;
	to->days += one->days * n;
	to->seconds += one->seconds * n;
}

bool interval_scan_iso(struct scan *s, struct interval *ret)
{
	struct interval v = {};
	size_t from = s->pos, next = 0, count = 0;
	bool time = false;

	if (!scan_take(s, 'P'))
		return scan_fail(s, s->pos, "a duration begins with P, as in PT90S or P1D");
	for (;;) {
		int64_t n;
		size_t at = s->pos, i;

		if (!time && scan_take(s, 'T')) {
			time = true;
			count = 0;
			continue;
		}
		if (scan_done(s) || strchr(" \t/", scan_peek(s)))
			break;
		if (!scan_number(s, &n, NULL))
			return scan_fail(s, at, "a whole number of at most 9 digits belongs here");
		for (i = next; i < ELEMENTS(iso_parts); i++)
			if (iso_parts[i].time == time && scan_take(s, iso_parts[i].letter))
				break;
		if (i == ELEMENTS(iso_parts))
			return scan_fail(s, s->pos,
				"a unit belongs here, in the order P nY nM nW nD T nH nM nS");
		add_times(&v, &iso_parts[i].one, n);
		next = i + 1;
		count++;
	}
	if (count == 0)
		return scan_fail(s, s->pos, time ? "T needs hours, minutes or seconds after it" :
			"a duration needs at least one part, as in PT90S or P1D");
	if (!length_fits(&v, s, from))
		return false;
	*ret = v;
	return true;
}

bool interval_scan_words(struct scan *s, struct interval *ret)
{
	struct interval v = {};
	size_t from = s->pos;
	char word[SCAN_WORD_MAX];

	do {
		const struct interval_unit *u;
		int64_t n, seconds;
		size_t at = s->pos;

		if (!scan_number(s, &n, NULL))
			return scan_fail(s, at, "a whole number of at most 9 digits belongs here, as in 'every 15m'");
		scan_blanks(s);
		at = s->pos;
		u = scan_word(s, word) ? interval_unit_find(word) : NULL;
		if (!u || !interval_unit_elapsed(u, &seconds))
			return scan_fail(s, at, "a unit belongs here: s, m, h, d or w (months and years: P1M, P1Y)");
		v.seconds += n * seconds;
		if (v.seconds > INTERVAL_SECONDS_MAX)
			break;
		scan_blanks(s);
	} while (!scan_done(s) && scan_peek(s) >= '0' && scan_peek(s) <= '9');
	if (!length_fits(&v, s, from))
		return false;
	*ret = v;
	return true;
}
