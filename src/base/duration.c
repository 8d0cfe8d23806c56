/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and formats durations. */
#include "base/duration.h"
#include "base/err.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DURATION_MAX (INT64_C(36525) * USEC_DAY) /* a hundred years */

struct unit {
	const char *name;
	usec_t usec;
};

/* A name that is a prefix of another comes after it. */
static const struct unit plain_units[] = {
	{"ms", USEC_MSEC}, {"us", 1},
	{"seconds", USEC_SEC}, {"second", USEC_SEC}, {"secs", USEC_SEC}, {"sec", USEC_SEC}, {"s", USEC_SEC},
	{"minutes", USEC_MIN}, {"minute", USEC_MIN}, {"mins", USEC_MIN}, {"min", USEC_MIN}, {"m", USEC_MIN},
	{"hours", USEC_HOUR}, {"hour", USEC_HOUR}, {"hrs", USEC_HOUR}, {"hr", USEC_HOUR}, {"h", USEC_HOUR},
	{"days", USEC_DAY}, {"day", USEC_DAY}, {"d", USEC_DAY},
	{"weeks", 7 * USEC_DAY}, {"week", 7 * USEC_DAY}, {"w", 7 * USEC_DAY},
	{NULL, 0},
};
static const struct unit iso_date_units[] = {{"W", 7 * USEC_DAY}, {"D", USEC_DAY}, {NULL, 0}};
static const struct unit iso_time_units[] = {
	{"H", USEC_HOUR}, {"M", USEC_MIN}, {"S", USEC_SEC}, {NULL, 0}};

static const struct unit *unit_find(const struct unit *units, const char *s)
{
	for (; units->name; units++)
		if (strncasecmp(s, units->name, strlen(units->name)) == 0)
			return units;
	return NULL;
}

/* Reads one term like "12.5h". Each unit must be smaller than the one before, *below. */
static bool term_read(const char **text, const struct unit *units, usec_t *below, usec_t *sum)
{
	const char *s = *text;
	int64_t whole = 0, part = 0, scale = 1;
	const struct unit *u;
	usec_t term;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
			__builtin_add_overflow(whole, *s - '0', &whole))
			return false;
	if (*s == '.') {
		if (s[1] < '0' || s[1] > '9')
			return false;
		for (s++; *s >= '0' && *s <= '9'; s++)
			if (scale < 1000000) {
				part = part * 10 + (*s - '0');
				scale *= 10;
			}
	}
	while (*s == ' ' && s[1])
		s++;
	u = unit_find(units, s);
	if (!u || u->usec >= *below || __builtin_mul_overflow(whole, u->usec, &term) ||
		__builtin_add_overflow(*sum, term, sum) ||
		__builtin_add_overflow(*sum, u->usec * part / scale, sum))
		return false;
	*below = u->usec;
	*text = s + strlen(u->name);
	return true;
}

static bool iso_duration_read(const char *s, usec_t *sum)
{
	const struct unit *units = iso_date_units;
	usec_t below = USEC_NEVER;

	for (s++; *s;) {
		if ((*s == 'T' || *s == 't') && units == iso_date_units && s[1]) {
			units = iso_time_units;
			s++;
		} else if (!term_read(&s, units, &below, sum)) {
			return false;
		}
	}
	return below != USEC_NEVER;
}

static bool plain_duration_read(const char *s, usec_t *sum)
{
	usec_t below = USEC_NEVER;

	if (!*s)
		return false;
	while (*s) {
		if (!term_read(&s, plain_units, &below, sum))
			return false;
		while (*s == ' ' && s[1])
			s++;
	}
	return true;
}

bool duration_parse(const char *s, usec_t *ret, struct err *e)
{
	usec_t sum = 0;
	bool ok = (*s == 'P' || *s == 'p') ? iso_duration_read(s, &sum) : plain_duration_read(s, &sum);

	if (!ok)
		return err_set(e, ERR_INVALID, "'%.64s' is not a duration; write 90s, 15m, 1h30m, 2d or PT3H", s);
	if (sum <= 0)
		return err_set(e, ERR_INVALID, "the duration '%.64s' must be greater than 0", s);
	if (sum > DURATION_MAX)
		return err_set(e, ERR_INVALID, "the duration '%.64s' is longer than 100 years", s);
	*ret = sum;
	return true;
}

char *duration_format(usec_t d, char out[DURATION_TEXT_MAX])
{
	static const struct unit units[] = {{"d", USEC_DAY}, {"h", USEC_HOUR}, {"m", USEC_MIN},
		{"s", USEC_SEC}, {"ms", USEC_MSEC}, {"us", 1}};
	size_t len = 0;

	if (d <= 0)
		return strcpy(out, "0s");
	out[0] = '\0';
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && len < DURATION_TEXT_MAX - 1; i++) {
		if (d < units[i].usec)
			continue;
		len += (size_t)snprintf(out + len, DURATION_TEXT_MAX - len, "%" PRId64 "%s", d / units[i].usec,
			units[i].name);
		d %= units[i].usec;
	}
	return out;
}
