/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the time specifications of at(1) into instants. */
#include "core/time/at_time.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/time/at_token.h"
#include "core/time/civil.h"
#include "core/time/zone.h"
#include <string.h>

/* Wall clock time as it is built up. Fields may be out of range until it is normalised. */
struct wall {
	int64_t year;
	int64_t month;       /* 1 … 12 */
	int64_t day, hour, minute;
	int64_t offset;      /* of the instant it was made from; decides in the hour that is repeated */
};

struct parser {
	const char *rest;    /* not read yet */
	struct at_token last; /* the last token read; len 0 at the end of the text */
	char seen[64];       /* its text, for messages; the end of the text does not change it */
	bool ahead;          /* 'last' is not consumed */
	const struct zone *zone;
	struct wall at;
	bool time_only;      /* only a time of day was given */
	bool year_given;
	struct err *e;
};

/* ---- wall clock time and instants ---- */

static int64_t wall_seconds(const struct wall *w)
{
	return civil_days((int)w->year, (int)w->month, 1) * DAY_SECONDS + (w->day - 1) * DAY_SECONDS +
	       w->hour * 3600 + w->minute * 60;
}

/* A skipped time moves forward by the length of the gap. Of a repeated one the second is meant. */
static int64_t instant_of(const struct zone *z, int64_t wall, int64_t offset)
{
	int64_t before = zone_offset(z, wall - DAY_SECONDS), after = zone_offset(z, wall + DAY_SECONDS);

	if (zone_offset(z, wall - offset) == offset)
		return wall - offset;
	if (zone_offset(z, wall - after) == after)
		return wall - after;
	return wall - before;
}

static int64_t wall_instant(const struct zone *z, const struct wall *w)
{
	return instant_of(z, wall_seconds(w), w->offset);
}

static struct wall wall_of(const struct zone *z, int64_t t)
{
	int of_day;
	int64_t offset = zone_offset(z, t), days = civil_split(t + offset, &of_day);
	struct civil c = civil_from_days(days);

	return (struct wall){c.year, c.month, c.day, of_day / 3600, of_day % 3600 / 60, offset};
}

/* Years that the calendar functions can take; the final result has a narrower range. */
static bool in_range(const struct wall *w)
{
	return w->year >= 0 && w->year <= 9999 && w->day > -4000000 && w->day < 4000000;
}

/* The wall clock time moves by this, also across a change of the clock. */
static void add_seconds(struct parser *p, int64_t seconds)
{
	int64_t from = wall_instant(p->zone, &p->at), to = from + seconds;

	to += zone_offset(p->zone, from) - zone_offset(p->zone, to);
	p->at = wall_of(p->zone, to);
}

static bool normalise(struct parser *p)
{
	if (!in_range(&p->at))
		return false;
	p->at = wall_of(p->zone, wall_instant(p->zone, &p->at));
	return true;
}

/*
 * A day beyond the end of the month runs on into the next month. As in Debian's at this is decided
 * for the month in the same year, before the years are added.
 */
static bool add_months(struct parser *p, int64_t n)
{
	int64_t months = p->at.month - 1 + n;
	int64_t years = months >= 0 ? months / 12 : -((11 - months) / 12);

	p->at.month = months - 12 * years + 1;
	if (!normalise(p))
		return false;
	p->at.year += years;
	return normalise(p);
}

static bool add_period(struct parser *p, int64_t n, enum at_period period)
{
	static const int64_t seconds[] = {
		[AT_PERIOD_MINUTE] = 60,
		[AT_PERIOD_HOUR] = 3600,
		[AT_PERIOD_DAY] = DAY_SECONDS,
		[AT_PERIOD_WEEK] = 7 * DAY_SECONDS,
	};

	if (!in_range(&p->at))
		return false;
	if (period < AT_PERIOD_MONTH) {
		add_seconds(p, n * seconds[period]);
		return true;
	}
	if (period == AT_PERIOD_MONTH)
		return add_months(p, n);
	p->at.year += n;
	return normalise(p);
}

/* ---- tokens ---- */

/* The next token, without consuming it. */
static const struct at_token *peek(struct parser *p)
{
	if (p->ahead)
		return &p->last;
	p->rest = at_token_read(p->rest, &p->last);
	p->ahead = true;
	if (p->last.len) {
		size_t len = p->last.len < sizeof(p->seen) ? p->last.len : sizeof(p->seen) - 1;

		memcpy(p->seen, p->last.text, len);
		p->seen[len] = '\0';
	}
	return &p->last;
}

static bool fail(struct parser *p, const char *what)
{
	return err_set(p->e, ERR_INVALID, "%s. Last token seen: %s", what,
		p->seen[0] ? p->seen : "(empty)");
}

static bool accept(struct parser *p, enum at_token_kind kind, struct at_token *ret)
{
	const struct at_token *t = peek(p);

	if (t->kind != kind)
		return false;
	p->ahead = false;
	if (ret)
		*ret = *t;
	return true;
}

static bool accept_char(struct parser *p, char c)
{
	return peek(p)->kind == AT_TOKEN_CHAR && peek(p)->value == c &&
	       accept(p, AT_TOKEN_CHAR, NULL);
}

static bool expect(struct parser *p, enum at_token_kind kind, struct at_token *ret)
{
	return accept(p, kind, ret) || fail(p, "syntax error");
}

/* Up to three numbers with one character between them. Nine digits are more than any limit. */
static void numbers(const struct at_token *t, int64_t n[3])
{
	const char *c = t->text, *end = c + t->len;

	for (int i = 0; i < 3 && c < end; i++, c++)
		for (n[i] = 0; c < end && *c >= '0' && *c <= '9'; c++)
			if (n[i] < INT64_C(1000000000))
				n[i] = n[i] * 10 + *c - '0';
}

static int64_t number(const struct at_token *t)
{
	int64_t n[3] = {};

	numbers(t, n);
	return n[0];
}

/* ---- fields ---- */

static bool set_clock(struct parser *p, int64_t hour, int64_t minute)
{
	p->at.hour = hour;
	p->at.minute = minute;
	if (minute > 60)
		return fail(p, "Problem in minutes specification");
	if (hour > 24)
		return fail(p, "Problem in hours specification");
	return true;
}

/* Two digits up to 69 are years from 2000, other numbers up to 1900 count from 1900. */
static void set_year(struct parser *p, int64_t year)
{
	p->year_given = true;
	p->at.year = year < 70 ? year + 2000 : year > 1900 ? year : year + 1900;
}

static bool set_month(struct parser *p, int64_t month)
{
	if (month < 1 || month > 12)
		return fail(p, "Error in month number");
	p->at.month = month;
	return true;
}

static bool set_day(struct parser *p, int64_t day)
{
	if (day < 1 || day > 31)
		return fail(p, "Error in day of month");
	p->at.day = day;
	return true;
}

static bool set_date(struct parser *p, int64_t year, int64_t month, int64_t day)
{
	if (!set_month(p, month))
		return false;
	set_year(p, year);
	if (day < 1 || day > civil_month_days((int)p->at.year, (int)month))
		return fail(p, "Error in day of month");
	p->at.day = day;
	return true;
}

/* ---- times of day ---- */

static bool parse_am_pm(struct parser *p)
{
	struct at_token t = {};

	if (!accept(p, AT_TOKEN_AM_PM, &t))
		return true;
	if (p->at.hour > 12)
		return fail(p, t.value ? "Hour too large for PM" : "Hour too large for AM");
	p->at.hour = p->at.hour % 12 + t.value;
	return true;
}

static bool parse_utc(struct parser *p)
{
	if (accept(p, AT_TOKEN_UTC, NULL))
		p->zone = &zone_utc;
	return true;
}

/* 1015: hours and minutes. */
static bool parse_four_digits(struct parser *p, const struct at_token *t)
{
	return set_clock(p, number(t) / 100, number(t) % 100) && parse_utc(p);
}

static bool parse_hour_min(struct parser *p, const struct at_token *t)
{
	int64_t n[3] = {};

	numbers(t, n);
	return set_clock(p, n[0], n[1]) && parse_am_pm(p) && parse_utc(p);
}

static bool parse_hour(struct parser *p, const struct at_token *t)
{
	return set_clock(p, number(t), 0) && parse_am_pm(p) && parse_utc(p);
}

static bool parse_clock_word(struct parser *p, const struct at_token *t)
{
	return set_clock(p, t->value, 0) && parse_utc(p);
}

/* ---- dates ---- */

static bool parse_optional_year(struct parser *p, bool comma)
{
	struct at_token t = {};
	bool required = comma && accept_char(p, ',');

	if (accept(p, AT_TOKEN_INT_4, &t)) {
		set_year(p, number(&t));
		return true;
	}
	if (peek(p)->kind == AT_TOKEN_INT_1_2 && peek(p)->len == 2) {
		accept(p, AT_TOKEN_INT_1_2, &t);
		set_year(p, number(&t));
		return true;
	}
	return !required || fail(p, "syntax error");
}

/* Nov 20, Nov 20 2026 and Nov 20, 2026 */
static bool parse_month_day(struct parser *p, const struct at_token *t)
{
	struct at_token day = {};

	p->at.month = t->value;
	return expect(p, AT_TOKEN_INT_1_2, &day) && set_day(p, number(&day)) &&
	       parse_optional_year(p, true);
}

/* 11/20/26 */
static bool parse_slashes(struct parser *p, const struct at_token *t)
{
	struct at_token day = {};

	if (!set_month(p, number(t)) || !accept_char(p, '/') ||
		!expect(p, AT_TOKEN_INT_1_2, &day) || !set_day(p, number(&day)))
		return false;
	if (!accept_char(p, '/'))
		return fail(p, "syntax error");
	p->year_given = false;
	return parse_optional_year(p, false) && (p->year_given || fail(p, "syntax error"));
}

/* 20 Nov and 20 Nov 2026, or 11/20/26. The token after the number decides. */
static bool parse_day_first(struct parser *p, const struct at_token *t)
{
	struct at_token month = {};

	if (peek(p)->kind == AT_TOKEN_CHAR && peek(p)->value == '/')
		return parse_slashes(p, t);
	if (!set_day(p, number(t)) || !expect(p, AT_TOKEN_MONTH, &month))
		return false;
	p->at.month = month.value;
	return parse_optional_year(p, false);
}

/* A number is an hour before 'am' and 'pm', else a part of a date. */
static bool parse_small_number(struct parser *p, const struct at_token *t)
{
	if (peek(p)->kind == AT_TOKEN_AM_PM) {
		p->time_only = true;
		return parse_hour(p, t);
	}
	return parse_day_first(p, t);
}

static bool parse_dotted(struct parser *p, const struct at_token *t)
{
	int64_t n[3] = {};

	numbers(t, n);
	return set_date(p, n[2], n[1], n[0]);
}

static bool parse_hyphens(struct parser *p, const struct at_token *t)
{
	int64_t n[3] = {};

	numbers(t, n);
	return set_date(p, n[0], n[1], n[2]);
}

/* MDDYY, MMDDYY, MDDYYYY or MMDDYYYY; the day may be 0. */
static bool parse_joined(struct parser *p, const struct at_token *t)
{
	int64_t all = number(t), years = t->len > 6 ? 10000 : 100, day = all / years % 100;

	if (!set_month(p, all / years / 100))
		return false;
	if (day > 31)
		return fail(p, "Error in day of month");
	p->at.day = day;
	set_year(p, all % years);
	return true;
}

/* The next such day, never today. */
static bool to_weekday(struct parser *p, int weekday)
{
	int today;

	if (!in_range(&p->at))
		return false;
	today = civil_weekday(civil_days((int)p->at.year, (int)p->at.month, (int)p->at.day));
	return add_period(p, (6 + weekday - today) % 7 + 1, AT_PERIOD_DAY);
}

static bool parse_weekday(struct parser *p, const struct at_token *t)
{
	return to_weekday(p, t->value);
}

static bool parse_today(struct parser *p, const struct at_token *t)
{
	(void)p;
	(void)t;
	return true;
}

static bool parse_tomorrow(struct parser *p, const struct at_token *t)
{
	(void)t;
	return add_period(p, 1, AT_PERIOD_DAY);
}

static bool parse_next(struct parser *p, const struct at_token *t)
{
	struct at_token what = {};

	(void)t;
	if (accept(p, AT_TOKEN_WEEKDAY, &what))
		return to_weekday(p, what.value);
	return expect(p, AT_TOKEN_PERIOD, &what) && add_period(p, 1, (enum at_period)what.value);
}

static bool parse_now(struct parser *p, const struct at_token *t)
{
	(void)t;
	p->year_given = true;
	return true;
}

/* ---- the specification ---- */

/* The first words of a specification. A time of day may be followed by a date. */
static const struct start {
	enum at_token_kind kind;
	bool time;
	bool (*parse)(struct parser *p, const struct at_token *t);
} starts[] = {
	{AT_TOKEN_INT_4, true, parse_four_digits},
	{AT_TOKEN_HOUR_MIN, true, parse_hour_min},
	{AT_TOKEN_CLOCK, true, parse_clock_word},
	{AT_TOKEN_INT_1_2, false, parse_small_number},
	{AT_TOKEN_MONTH, false, parse_month_day},
	{AT_TOKEN_WEEKDAY, false, parse_weekday},
	{AT_TOKEN_TODAY, false, parse_today},
	{AT_TOKEN_TOMORROW, false, parse_tomorrow},
	{AT_TOKEN_HYPHENS, false, parse_hyphens},
	{AT_TOKEN_DOTTED, false, parse_dotted},
	{AT_TOKEN_INT_5_8, false, parse_joined},
	{AT_TOKEN_NEXT, false, parse_next},
	{AT_TOKEN_NOW, false, parse_now},
};

static const struct start *find_start(const struct at_token *t)
{
	for (size_t i = 0; i < ELEMENTS(starts); i++)
		if (starts[i].kind == t->kind)
			return &starts[i];
	return NULL;
}

/* A date after a time of day; absent: the next time that the clock shows it. */
static bool parse_date_after_time(struct parser *p)
{
	const struct start *s = find_start(peek(p));
	struct at_token t = {};

	p->time_only = true;
	if (!s || s->time || s->kind == AT_TOKEN_NOW)
		return true;
	p->time_only = false;
	accept(p, s->kind, &t);
	return s->kind == AT_TOKEN_INT_1_2 ? parse_day_first(p, &t) : s->parse(p, &t);
}

static bool parse_base(struct parser *p)
{
	const struct start *s = find_start(peek(p));
	struct at_token t = {};

	if (!s)
		return fail(p, "syntax error");
	accept(p, s->kind, &t);
	if (!s->parse(p, &t))
		return false;
	return !s->time && !p->time_only ? true : parse_date_after_time(p);
}

static bool is_integer(const struct at_token *t)
{
	return t->kind >= AT_TOKEN_INT_1_2 && t->kind <= AT_TOKEN_INT;
}

/* + 3 days, - 1 hour */
static bool parse_shift(struct parser *p)
{
	struct at_token n = {}, period = {};
	int64_t sign = accept_char(p, '+') ? 1 : accept_char(p, '-') ? -1 : 0;

	if (!sign)
		return true;
	if (!is_integer(peek(p)))
		return fail(p, "syntax error");
	accept(p, peek(p)->kind, &n);
	if (!expect(p, AT_TOKEN_PERIOD, &period))
		return false;
	if (period.value >= AT_PERIOD_DAY)
		p->time_only = false;
	return add_period(p, sign * number(&n), (enum at_period)period.value) ||
	       fail(p, "Unknown increment");
}

/* A time of day that is over is meant for tomorrow, a day and month that are over for next year. */
static void move_forward(struct parser *p, const struct wall *now)
{
	struct wall *at = &p->at;

	if (p->time_only) {
		if (at->day == now->day &&
			(at->hour < now->hour || (at->hour == now->hour && at->minute <= now->minute)))
			at->day++;
	} else if (!p->year_given && at->year == now->year &&
		   (at->month < now->month || (at->month == now->month && at->day < now->day))) {
		at->year++;
	}
}

static bool parse_words(struct parser *p)
{
	if (!parse_base(p) || !parse_shift(p))
		return false;
	return peek(p)->kind == AT_TOKEN_END || fail(p, "syntax error");
}

static bool join(char *const *words, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		if (out->len + strlen(words[i]) >= AT_TIME_TEXT_MAX)
			return false;
		buf_str(out, words[i]);
		buf_char(out, ' ');
	}
	buf_char(out, ' ');
	return true;
}

enum at_time_result at_time_parse(const struct at_time_context *c, char *const *words, size_t n,
	int64_t *ret, struct err *e)
{
	AUTO_DONE(buf) text = {};
	int64_t minute = c->now - c->now % 60, t;
	struct wall now = wall_of(c->zone, minute);
	struct parser p = {.zone = c->zone, .at = now, .e = e};

	if (!join(words, n, &text)) {
		err_set(e, ERR_INVALID, "the time has more than %d bytes", AT_TIME_TEXT_MAX);
		return AT_TIME_GARBLED;
	}
	p.rest = text.data;
	if (!parse_words(&p))
		return AT_TIME_GARBLED;
	move_forward(&p, &now);
	t = in_range(&p.at) ? wall_instant(p.zone, &p.at) : -1;
	if (t > TIME_LAST || t < 0) {
		err_set(e, ERR_INVALID, "the time is not between 1970 and 2199");
		return AT_TIME_GARBLED;
	}
	if (t < minute)
		return AT_TIME_PAST;
	*ret = t;
	return AT_TIME_OK;
}

/* ---- the argument of -t ---- */

static int pair(const char *digits)
{
	return (digits[0] - '0') * 10 + digits[1] - '0';
}

static bool read_posix(const struct at_time_context *c, const char *text, struct wall *w,
	int *seconds)
{
	size_t len = strspn(text, "0123456789");

	*seconds = 0;
	if (len != 8 && len != 10 && len != 12)
		return false;
	if (text[len] == '.' && strspn(text + len + 1, "0123456789") == 2 && !text[len + 3])
		*seconds = pair(text + len + 1);
	else if (text[len])
		return false;
	*w = wall_of(c->zone, c->now);
	if (len == 12)
		w->year = pair(text) * 100 + pair(text + 2);
	else if (len == 10)
		w->year = pair(text) + (pair(text) <= 68 ? 2000 : 1900);
	text += len - 8;
	w->month = pair(text);
	w->day = pair(text + 2);
	w->hour = pair(text + 4);
	w->minute = pair(text + 6);
	return w->month >= 1 && w->month <= 12 && w->day >= 1 &&
	       w->day <= civil_month_days((int)w->year, (int)w->month) && w->hour <= 23 &&
	       w->minute <= 59 && *seconds <= 59;
}

enum at_time_result at_time_posix(const struct at_time_context *c, const char *text, int64_t *ret)
{
	struct wall w, shown;
	int seconds;
	int64_t t;

	if (!read_posix(c, text, &w, &seconds))
		return AT_TIME_GARBLED;
	t = wall_instant(c->zone, &w);
	shown = wall_of(c->zone, t);
	if (t < 0 || t > TIME_LAST || shown.hour != w.hour || shown.minute != w.minute)
		return AT_TIME_GARBLED; /* the clock skips this time */
	*ret = t + seconds;
	return AT_TIME_OK;
}
