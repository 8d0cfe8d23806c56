/* SPDX-License-Identifier: Apache-2.0 */
/* Parses date and time phrases and resolves them in a zone. */
#include "core/time/phrase.h"

#include "base/auto.h"
#include "core/time/civil.h"
#include "core/time/clocktime.h"
#include "core/time/interval.h"
#include "core/time/scan.h"
#include "core/time/zone.h"

#include <string.h>

enum date_form { DATE_NONE, DATE_NOW, DATE_TODAY, DATE_TOMORROW, DATE_YESTERDAY, DATE_WEEKDAY, DATE_MONTH_DAY, DATE_ISO };

/* The parts of the phrase that were parsed so far. */
struct phrase {
	enum date_form form;
	int weekday;             /* of DATE_WEEKDAY */
	bool next;               /* 'next' was written before it */
	int month, day, year;    /* of DATE_MONTH_DAY; year 0: the next one that fits */
	int64_t iso_day;         /* of DATE_ISO */
	bool has_time;
	int time;                /* seconds of the day */
	bool has_plus;
	struct interval plus;    /* negative after 'ago' */
};

struct time_word {
	const char *word;
	int time;
};
static const struct time_word time_words[] = {
	{ "midnight", 0 },
	{ "noon", 12 * 3600 },
	{ "teatime", 16 * 3600 },
};

static const struct time_word *time_word_find(const char *word)
{
	for (size_t i = 0; i < ELEMENTS(time_words); i++)
		if (!strcmp(word, time_words[i].word))
			return &time_words[i];
	return NULL;
}

static const char *const date_words[] = { "now", "today", "tomorrow", "next", "yesterday" };

bool phrase_looks_like(const struct scan *s)
{
	struct scan look = *s;
	char word[SCAN_WORD_MAX];
	int64_t n;
	size_t digits;

	if (scan_word(&look, word))
		return scan_lookup(word, date_words, ELEMENTS(date_words)) >= 0 ||
		       time_word_find(word) || scan_lookup(word, weekday_words, 14) >= 0 ||
		       scan_lookup(word, month_words, 24) >= 0;
	if (!scan_number(&look, &n, &digits))
		return false;
	if (scan_peek(&look) == ':' || (scan_peek(&look) == '-' && digits == 4))
		return true;
	scan_blanks(&look);
	return scan_word(&look, word) == 2 && word[1] == 'm' && strchr("ap", word[0]);
}

static bool set_time(struct scan *s, size_t at, struct phrase *p, int time)
{
	if (p->has_time || p->form == DATE_NOW)
		return scan_fail(s, at, "one time of day is enough");
	p->has_time = true;
	p->time = time;
	return true;
}

static bool set_date(struct scan *s, size_t at, struct phrase *p, enum date_form form)
{
	if (p->form != DATE_NONE || (form == DATE_NOW && p->has_time))
		return scan_fail(s, at, "one date is enough");
	p->form = form;
	return true;
}

/* After the month's name: DAY [,] [YEAR] */
static bool scan_month_day(struct scan *s, struct phrase *p)
{
	struct scan look;
	int64_t n;
	size_t digits;

	scan_blanks(s);
	if (!scan_number(s, &n, &digits) || digits > 2 || n < 1 ||
	    n > civil_month_days(2000, p->month))
		return scan_fail(s, s->pos, "a day of that month belongs here, as in 'dec 24 18:00'");
	p->day = (int)n;
	look = *s;
	scan_take(&look, ',');
	scan_blanks(&look);
	if (!scan_number(&look, &n, &digits) || digits != 4)
		return true;
	if (n < 1970 || n > 2199)
		return scan_fail(s, look.pos - digits, "the year goes from 1970 to 2199");
	p->year = (int)n;
	if (p->day > civil_month_days(p->year, p->month))
		return scan_fail(s, look.pos - digits, "that month has no such day in that year");
	*s = look;
	return true;
}

static bool scan_next_weekday(struct scan *s, struct phrase *p)
{
	char word[SCAN_WORD_MAX];
	size_t at;
	int n;

	scan_blanks(s);
	at = s->pos;
	n = scan_word(s, word) ? scan_lookup(word, weekday_words, 14) : -1;
	if (n < 0)
		return scan_fail(s, at, "a weekday belongs after 'next'; for a week or month from now "
			"write 'now + 1 week'");
	p->weekday = n % 7;
	p->next = true;
	return true;
}

/* After 'at': a time of day. */
static bool scan_at(struct scan *s, struct phrase *p)
{
	char word[SCAN_WORD_MAX];
	const struct time_word *t = NULL;
	struct clocktime c;
	size_t at;

	scan_blanks(s);
	at = s->pos;
	if (scan_word(s, word) && (t = time_word_find(word)))
		return set_time(s, at, p, t->time);
	s->pos = at;
	if (!t && (scan_peek(s) < '0' || scan_peek(s) > '9'))
		return scan_fail(s, at, "a time of day belongs after 'at', as in 'tomorrow at 9am'");
	if (!clocktime_scan(s, &c))
		return false;
	if (c.has_fraction)
		return scan_fail(s, at, "a time of day has whole seconds");
	return set_time(s, at, p, c.seconds);
}

static bool scan_phrase_word(struct scan *s, struct phrase *p)
{
	char word[SCAN_WORD_MAX];
	size_t at = s->pos;
	const struct time_word *t;
	int n;

	scan_word(s, word);
	if ((t = time_word_find(word)))
		return set_time(s, at, p, t->time);
	switch (scan_lookup(word, date_words, ELEMENTS(date_words))) {
	case 0:
		return set_date(s, at, p, DATE_NOW);
	case 1:
		return set_date(s, at, p, DATE_TODAY);
	case 2:
		return set_date(s, at, p, DATE_TOMORROW);
	case 3:
		return set_date(s, at, p, DATE_WEEKDAY) && scan_next_weekday(s, p);
	case 4:
		return set_date(s, at, p, DATE_YESTERDAY);
	}
	if (!strcmp(word, "at"))
		return scan_at(s, p);
	if ((n = scan_lookup(word, weekday_words, 14)) >= 0) {
		p->weekday = n % 7;
		return set_date(s, at, p, DATE_WEEKDAY);
	}
	if ((n = scan_lookup(word, month_words, 24)) >= 0) {
		p->month = n % 12 + 1;
		return set_date(s, at, p, DATE_MONTH_DAY) && scan_month_day(s, p);
	}
	return scan_fail(s, at, "not a word of a time; write 'now', 'tomorrow 09:00', 'friday 17:00', "
		"'dec 24 18:00' or YYYY-MM-DD HH:MM");
}

/* Parses 'N UNIT' and adds it, multiplied by 'sign'. */
static bool scan_units(struct scan *s, struct phrase *p, int sign)
{
	char word[SCAN_WORD_MAX];
	const struct interval_unit *u;
	struct interval *v = &p->plus;
	int64_t n;
	size_t at;

	if (!scan_number(s, &n, NULL))
		return scan_fail(s, s->pos, "a whole number of at most 9 digits belongs here, as in 'now + 5 minutes'");
	scan_blanks(s);
	at = s->pos;
	u = scan_word(s, word) ? interval_unit_find(word) : NULL;
	if (!u)
		return scan_fail(s, at, "a unit belongs here: seconds, minutes, hours, days, weeks, months or years");
	v->months += u->one.months * n * sign;
	v->days += u->one.days * n * sign;
	v->seconds += u->one.seconds * n * sign;
	p->has_plus = true;
	if (v->months * sign > 1200 * 12 || v->days * sign > 366 * 1000 || v->seconds * sign > 4 * INTERVAL_SECONDS_MAX)
		return scan_fail(s, at, sign > 0 ? "that is after the end of 2199" : "that is before 1970");
	scan_blanks(s);
	return true;
}

/* "2 days ago", "1h30m ago": a number and a unit follow, which no time of day begins with. */
static bool looks_like_ago(const struct scan *s)
{
	struct scan look = *s;
	char word[SCAN_WORD_MAX];
	int64_t n;

	if (!scan_number(&look, &n, NULL))
		return false;
	scan_blanks(&look);
	return scan_word(&look, word) && interval_unit_find(word);
}

/* N unit [N unit ...] ago, to the end */
static bool scan_ago(struct scan *s, struct phrase *p)
{
	char word[SCAN_WORD_MAX];
	size_t at = s->pos;

	if (p->form != DATE_NONE || p->has_time)
		return scan_fail(s, at, "'ago' counts from now; no date or time of day may stand before it");
	p->form = DATE_NOW;
	do {
		if (!scan_units(s, p, -1))
			return false;
	} while (scan_peek(s) >= '0' && scan_peek(s) <= '9');
	at = s->pos;
	if (!scan_word(s, word) || strcmp(word, "ago"))
		return scan_fail(s, at, "'ago' belongs here, as in '2 days ago'; for a time to come write 'now + 2 days'");
	scan_blanks(s);
	return scan_done(s) || scan_fail(s, s->pos, "nothing may follow 'ago'");
}

/* + N unit, to the end */
static bool scan_plus(struct scan *s, struct phrase *p)
{
	scan_take(s, '+');
	scan_blanks(s);
	if (!scan_units(s, p, 1))
		return false;
	return scan_done(s) || scan_fail(s, s->pos, "nothing may follow; one number and one unit is enough");
}

/*
 * Parses the part after YYYY-MM-DD. *ret_instant is set if there is an offset; else the phrase
 * continues.
 */
static bool scan_after_date(struct scan *s, struct phrase *p, bool *ret_absolute, int64_t *ret_instant)
{
	bool letter = scan_take(s, 'T');
	struct clocktime t;
	size_t at;
	int64_t offset;

	if (!letter) {
		struct scan look = *s;

		scan_blanks(&look);
		if (scan_peek(&look) < '0' || scan_peek(&look) > '9')
			return true;
		*s = look;
	}
	at = s->pos;
	if (!clocktime_scan(s, &t))
		return false;
	if (letter && (!t.two_digits || t.half))
		return scan_fail(s, at, "after a T a time is written HH:MM or HH:MM:SS");
	if (!scan_done(s) && strchr("zZ+-", scan_peek(s))) {
		if (!t.two_digits || !t.has_seconds || t.half)
			return scan_fail(s, at, "with an offset a time is written HH:MM:SS (RFC 3339)");
		if (!clocktime_scan_offset(s, &offset))
			return false;
		*ret_instant = p->iso_day * DAY_SECONDS + t.seconds + t.fraction - offset;
		*ret_absolute = true;
		return true;
	}
	if (t.has_fraction)
		return scan_fail(s, at, "a fraction needs an offset after it (RFC 3339)");
	return set_time(s, at, p, t.seconds);
}

static bool scan_phrase_number(struct scan *s, struct phrase *p, bool *ret_absolute, int64_t *ret_instant)
{
	struct scan look = *s;
	struct clocktime t;
	size_t at = s->pos, digits;
	int64_t n;

	if (scan_number(&look, &n, &digits) && digits == 4 && scan_peek(&look) == '-')
		return set_date(s, at, p, DATE_ISO) && clocktime_scan_date(s, &p->iso_day) &&
		       scan_after_date(s, p, ret_absolute, ret_instant);
	if (looks_like_ago(s))
		return scan_ago(s, p);
	if (!clocktime_scan(s, &t))
		return false;
	if (t.has_fraction)
		return scan_fail(s, at, "a time of day has whole seconds");
	return set_time(s, at, p, t.seconds);
}

/* MONTH DAY without a year: the first one from now on, or with 'back' the last one up to now. */
static int64_t month_day_wall(const struct phrase *p, const struct phrase_context *c, int64_t today,
	int time)
{
	int year = p->year ? p->year : civil_from_days(today).year, step = c->back ? -1 : 1;
	int64_t wall = 0, t;

	for (int left = p->year ? 1 : 9; left > 0; left--, year += step) {
		if (p->day > civil_month_days(year, p->month))
			continue;
		wall = civil_days(year, p->month, p->day) * DAY_SECONDS + time;
		t = zone_instant(c->zone, wall);
		if (c->back ? t <= c->now : t >= c->now)
			break;
	}
	return wall;
}

static int64_t weekday_wall(const struct phrase *p, const struct phrase_context *c, int64_t today, int time)
{
	int64_t wall;

	if (!c->back || p->next)
		return (today + 1 + (p->weekday - civil_weekday(today) + 6) % 7) * DAY_SECONDS + time;
	wall = (today - (civil_weekday(today) - p->weekday + 7) % 7) * DAY_SECONDS + time;
	return zone_instant(c->zone, wall) > c->now ? wall - 7 * DAY_SECONDS : wall;
}

static int64_t phrase_wall(const struct phrase *p, const struct phrase_context *c)
{
	int now_time;
	int64_t today = civil_split(c->now + zone_offset(c->zone, c->now), &now_time);
	int time = p->has_time ? p->time : c->whole_days && p->form > DATE_NOW ? 0 : now_time;

	switch (p->form) {
	case DATE_TOMORROW:
		return (today + 1) * DAY_SECONDS + time;
	case DATE_YESTERDAY:
		return (today - 1) * DAY_SECONDS + time;
	case DATE_WEEKDAY:
		return weekday_wall(p, c, today, time);
	case DATE_MONTH_DAY:
		return month_day_wall(p, c, today, time);
	case DATE_ISO:
		return p->iso_day * DAY_SECONDS + time;
	default:
		return today * DAY_SECONDS + time;
	}
}

static int64_t wall_plus(const struct phrase *p, const struct phrase_context *c, int64_t wall)
{
	struct interval nominal = p->plus;

	nominal.seconds = 0;
	wall = interval_add(&nominal, &zone_utc, wall, 1);
	return zone_instant(c->zone, wall) + p->plus.seconds;
}

static int64_t phrase_instant(const struct phrase *p, const struct phrase_context *c)
{
	int64_t wall = phrase_wall(p, c), t;

	/* from inside a repeated hour, now and so many minutes later are of the second pass */
	if (p->form == DATE_NOW && !p->plus.days && !p->plus.months)
		return c->now + p->plus.seconds;
	t = wall_plus(p, c, wall);
	if (p->form == DATE_NONE && c->back && t > c->now)
		t = wall_plus(p, c, wall - DAY_SECONDS);
	else if (p->form == DATE_NONE && !c->back && t < c->now)
		t = wall_plus(p, c, wall + DAY_SECONDS);
	return t;
}

static bool phrase_complete(const struct scan *s, const struct phrase *p, const struct phrase_context *c)
{
	if (c->whole_days)
		return true;
	if (p->form == DATE_ISO && !p->has_time)
		return scan_fail(s, s->end, "a date needs a time of day, as in '2026-01-31 09:00'");
	if (p->form == DATE_TODAY && !p->has_time)
		return scan_fail(s, s->end, "'today' needs a time of day, as in 'today 18:00'");
	return true;
}

static bool phrase_in_range(const struct scan *s, const struct phrase_context *c, int64_t t)
{
	if (t < c->now && !c->past_ok)
		return scan_fail(s, 0, "time is in the past");
	if (t < 0 || t > TIME_LAST)
		return scan_fail(s, 0, "times go from 1970 to the end of 2199");
	return true;
}

bool phrase_scan(struct scan *s, const struct phrase_context *c, int64_t *ret)
{
	struct phrase p = {};
	bool absolute = false;
	int64_t t = 0;

	while (!scan_done(s) && !absolute) {
		char ch = scan_peek(s);

		if (ch == '+' ? !scan_plus(s, &p) :
		    ch >= '0' && ch <= '9' ? !scan_phrase_number(s, &p, &absolute, &t) :
		    !scan_phrase_word(s, &p))
			return false;
		if (!absolute && !scan_done(s) && !scan_blanks(s) && scan_peek(s) != '+')
			return scan_fail(s, s->pos, "a blank or the end belongs here");
	}
	if (absolute && !scan_done(s))
		return scan_fail(s, s->pos, "nothing may follow a time with an offset");
	if (!absolute) {
		if (!phrase_complete(s, &p, c))
			return false;
		t = phrase_instant(&p, c);
	}
	if (!phrase_in_range(s, c, t))
		return false;
	*ret = t;
	return true;
}

bool phrase_scan_rfc3339(struct scan *s, int64_t *ret)
{
	struct phrase p = {};
	bool absolute = false;
	size_t at = s->pos;

	if (!clocktime_scan_date(s, &p.iso_day) || !scan_after_date(s, &p, &absolute, ret))
		return false;
	if (!absolute)
		return scan_fail(s, at, "a full time with its offset belongs here, as 2026-01-31T09:00:00Z");
	return true;
}
