/* SPDX-License-Identifier: Apache-2.0 */
/* Parses dates, times of day and UTC offsets. */
#include "core/time/clocktime.h"

#include "core/time/civil.h"
#include "core/time/scan.h"

const char *const weekday_words[14] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat", "sunday",
	"monday", "tuesday", "wednesday", "thursday", "friday", "saturday" };
const char *const month_words[24] = { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep",
	"oct", "nov", "dec", "january", "february", "march", "april", "may", "june", "july",
	"august", "september", "october", "november", "december" };

/* Exactly so many digits, within a range. */
static bool fixed_number(struct scan *s, size_t digits, int64_t min, int64_t max, const char *what,
	int64_t *ret)
{
	size_t at = s->pos, got = 0;

	if (!scan_number(s, ret, &got) || got != digits)
		return scan_fail(s, at, "the %s has %zu digits", what, digits);
	if (*ret < min || *ret > max)
		return scan_fail(s, at, "the %s goes from %d to %d", what, (int)min, (int)max);
	return true;
}

/* 9am, 9:30 pm: takes the word if it is there and turns the hour. */
static bool scan_half(struct scan *s, size_t from, int64_t *hour, bool *ret_half)
{
	struct scan look = *s;
	char word[SCAN_WORD_MAX];
	bool pm;

	scan_blanks(&look);
	if (scan_word(&look, word) != 2 || word[1] != 'm' || (word[0] != 'a' && word[0] != 'p'))
		return true;
	pm = word[0] == 'p';
	if (*hour < 1 || *hour > 12)
		return scan_fail(s, from, "with am or pm the hour goes from 1 to 12");
	*hour = *hour % 12 + (pm ? 12 : 0);
	*ret_half = true;
	*s = look;
	return true;
}

static bool scan_fraction(struct scan *s, struct clocktime *t)
{
	size_t from = s->pos;

	for (; scan_peek(s) >= '0' && scan_peek(s) <= '9'; s->pos++)
		t->fraction |= scan_peek(s) != '0';
	t->has_fraction = true;
	return s->pos > from || scan_fail(s, from, "digits belong after the point");
}

bool clocktime_scan(struct scan *s, struct clocktime *ret)
{
	struct clocktime t = {};
	size_t from = s->pos, digits = 0;
	int64_t hour, minute = 0, second = 0;
	bool colon;

	if (!scan_number(s, &hour, &digits) || digits > 2)
		return scan_fail(s, from, "a time of day belongs here, as 9:30, 09:30:00 or 9am");
	t.two_digits = digits == 2;
	colon = scan_take(s, ':');
	if (colon && !fixed_number(s, 2, 0, 59, "minute", &minute))
		return false;
	if (colon && scan_take(s, ':')) {
		t.has_seconds = true;
		if (!fixed_number(s, 2, 0, 59, "second", &second))
			return false;
		if (scan_take(s, '.') && !scan_fraction(s, &t))
			return false;
	}
	if (!scan_half(s, from, &hour, &t.half))
		return false;
	if (!colon && !t.half)
		return scan_fail(s, s->pos, "a time of day needs its minutes, or am or pm");
	if (hour > 23)
		return scan_fail(s, from, "the hour goes from 0 to 23");
	t.seconds = (int)(hour * 3600 + minute * 60 + second);
	*ret = t;
	return true;
}

bool clocktime_scan_date(struct scan *s, int64_t *ret_day)
{
	int64_t year, month, day;
	size_t at;

	if (!fixed_number(s, 4, 1970, 2199, "year", &year))
		return false;
	if (!scan_take(s, '-'))
		return scan_fail(s, s->pos, "a date is written YYYY-MM-DD");
	if (!fixed_number(s, 2, 1, 12, "month", &month))
		return false;
	if (!scan_take(s, '-'))
		return scan_fail(s, s->pos, "a date is written YYYY-MM-DD");
	at = s->pos;
	if (!fixed_number(s, 2, 1, 31, "day", &day))
		return false;
	if (day > civil_month_days((int)year, (int)month))
		return scan_fail(s, at, "that month has no such day");
	*ret_day = civil_days((int)year, (int)month, (int)day);
	return true;
}

bool clocktime_scan_offset(struct scan *s, int64_t *ret)
{
	int64_t sign = 1, hours, minutes;

	if (scan_take(s, 'Z')) {
		*ret = 0;
		return true;
	}
	if (scan_take(s, '-'))
		sign = -1;
	else if (!scan_take(s, '+'))
		return scan_fail(s, s->pos, "an offset belongs here: Z, +HH:MM or -HH:MM");
	if (!fixed_number(s, 2, 0, 23, "offset's hour", &hours))
		return false;
	if (!scan_take(s, ':'))
		return scan_fail(s, s->pos, "an offset is written +HH:MM");
	if (!fixed_number(s, 2, 0, 59, "offset's minute", &minutes))
		return false;
	*ret = sign * (hours * 3600 + minutes * 60);
	return true;
}
