/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and formats RFC 3339 timestamps. */
#include "base/rfc3339.h"
#include "base/err.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Days since 1970-01-01 of a proleptic Gregorian date. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
	int64_t era, yoe, doy;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void date_of(int64_t days, int64_t *y, int64_t *m, int64_t *d)
{
	int64_t era, doe, yoe, doy, mp;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	doe = days - era * 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	*d = doy - (153 * mp + 2) / 5 + 1;
	*m = mp + (mp < 10 ? 3 : -9);
	*y = yoe + era * 400 + (*m <= 2);
}

static int days_in_month(int64_t y, int64_t m)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

	return days[m - 1] + (m == 2 && leap);
}

static char *digits_write(char *to, int64_t value, int n)
{
	for (int i = n - 1; i >= 0; i--, value /= 10)
		to[i] = (char)('0' + value % 10);
	return to + n;
}

/* Without printf(), which would take most of the time of a list. */
char *rfc3339_format(usec_t t, char out[RFC3339_MAX])
{
	int64_t days = t / USEC_DAY, rest = t % USEC_DAY, y, m, d, sec, part;
	char *to = out;

	if (rest < 0) {
		rest += USEC_DAY;
		days--;
	}
	date_of(days, &y, &m, &d);
	sec = rest / USEC_SEC;
	part = rest % USEC_SEC;
	if (y < 0 || y > 9999)
		to += snprintf(to, RFC3339_MAX, "%04d", (int)y);
	else
		to = digits_write(to, y, 4);
	*to++ = '-';
	to = digits_write(to, m, 2);
	*to++ = '-';
	to = digits_write(to, d, 2);
	*to++ = 'T';
	to = digits_write(to, sec / 3600, 2);
	*to++ = ':';
	to = digits_write(to, sec / 60 % 60, 2);
	*to++ = ':';
	to = digits_write(to, sec % 60, 2);
	if (part) {
		*to++ = '.';
		to = part % 1000 ? digits_write(to, part, 6) : digits_write(to, part / 1000, 3);
	}
	*to++ = 'Z';
	*to = '\0';
	return out;
}

static bool digits_read(const char **s, int n, int64_t *ret)
{
	*ret = 0;
	for (; n > 0; n--, (*s)++) {
		if (**s < '0' || **s > '9')
			return false;
		*ret = *ret * 10 + (**s - '0');
	}
	return true;
}

static bool skip_char(const char **s, const char *set)
{
	if (!**s || !strchr(set, **s))
		return false;
	(*s)++;
	return true;
}

/* ".5" in microseconds, or nothing; more than six digits are cut. */
static bool fraction_read(const char **s, int64_t *ret)
{
	int64_t unit = USEC_SEC / 10;

	*ret = 0;
	if (**s != '.')
		return true;
	(*s)++;
	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
		*ret += unit * (**s - '0');
	return true;
}

static bool offset_read(const char **s, int64_t *ret)
{
	int sign = **s == '-' ? -1 : 1;
	int64_t h, m;

	*ret = 0;
	if (skip_char(s, "Zz"))
		return true;
	if (!skip_char(s, "+-") || !digits_read(s, 2, &h) || !skip_char(s, ":") ||
		!digits_read(s, 2, &m) || h > 23 || m > 59)
		return false;
	*ret = sign * (h * 60 + m) * USEC_MIN;
	return true;
}

static bool instant_read(const char *s, usec_t *ret)
{
	int64_t y, mo, d, h, mi, sec, part, offset;

	if (!digits_read(&s, 4, &y) || !skip_char(&s, "-") || !digits_read(&s, 2, &mo) ||
		!skip_char(&s, "-") || !digits_read(&s, 2, &d) || !skip_char(&s, "Tt ") ||
		!digits_read(&s, 2, &h) || !skip_char(&s, ":") || !digits_read(&s, 2, &mi) ||
		!skip_char(&s, ":") || !digits_read(&s, 2, &sec) || !fraction_read(&s, &part) ||
		!offset_read(&s, &offset) || *s)
		return false;
	if (mo < 1 || mo > 12 || d < 1 || d > days_in_month(y, mo) || h > 23 || mi > 59 || sec > 59)
		return false;
	*ret = days_of(y, mo, d) * USEC_DAY + ((h * 60 + mi) * 60 + sec) * USEC_SEC + part - offset;
	return true;
}

static bool epoch_read(const char *s, usec_t *ret)
{
	int64_t sec = 0, part;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(sec, 10, &sec) || __builtin_add_overflow(sec, *s - '0', &sec))
			return false;
	return fraction_read(&s, &part) && !*s && !__builtin_mul_overflow(sec, USEC_SEC, ret) &&
	       !__builtin_add_overflow(*ret, part, ret);
}

bool rfc3339_parse(const char *s, usec_t *ret, struct err *e)
{
	usec_t t;

	if (*s == '@' ? !epoch_read(s + 1, &t) : !instant_read(s, &t))
		return err_set(e, ERR_INVALID,
			"'%.64s' is not an instant; write 2026-11-16T09:00:00Z, with an offset, or @1700000000", s);
	if (t < 0 || t > USEC_LAST)
		return err_set(e, ERR_INVALID, "'%.64s' is outside the years 1970 to 2199", s);
	*ret = t;
	return true;
}
