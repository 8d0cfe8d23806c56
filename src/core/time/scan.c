/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers and words, and formats syntax errors with their position. */
#include "core/time/scan.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 60 /* of the text, in a message */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool scan_is_letter(char c)
{
	c = lower(c);
	return c >= 'a' && c <= 'z';
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

char scan_peek(const struct scan *s)
{
	return s->pos < s->end ? s->text[s->pos] : '\0';
}

bool scan_done(const struct scan *s)
{
	return s->pos >= s->end;
}

bool scan_take(struct scan *s, char c)
{
	if (scan_done(s) || lower(s->text[s->pos]) != lower(c))
		return false;
	s->pos++;
	return true;
}

bool scan_blanks(struct scan *s)
{
	size_t from = s->pos;

	while (scan_peek(s) == ' ' || scan_peek(s) == '\t')
		s->pos++;
	return s->pos > from;
}

bool scan_number(struct scan *s, int64_t *ret, size_t *ret_digits)
{
	size_t p = s->pos;
	int64_t n = 0;

	while (p < s->end && digit(s->text[p]) && p - s->pos <= SCAN_NUMBER_DIGITS)
		n = n * 10 + (s->text[p++] - '0');
	if (p == s->pos || p - s->pos > SCAN_NUMBER_DIGITS)
		return false;
	if (ret_digits)
		*ret_digits = p - s->pos;
	*ret = n;
	s->pos = p;
	return true;
}

size_t scan_word(struct scan *s, char out[SCAN_WORD_MAX])
{
	size_t n = 0;

	for (; !scan_done(s) && scan_is_letter(s->text[s->pos]); s->pos++, n++)
		if (n < SCAN_WORD_MAX - 1)
			out[n] = lower(s->text[s->pos]);
	out[n < SCAN_WORD_MAX ? n : SCAN_WORD_MAX - 1] = '\0';
	if (n >= SCAN_WORD_MAX)
		out[0] = '?';
	return n;
}

int scan_lookup(const char *word, const char *const *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(word, table[i]))
			return (int)i;
	return -1;
}

/*
 * Copies the text for a message: shortened, and with '?' for all bytes that are not printable
 * ASCII.
 */
static void quote_shortened(char out[SHOWN_MAX + 4], const char *text, size_t len)
{
	size_t n = len > SHOWN_MAX ? SHOWN_MAX : len;

	for (size_t i = 0; i < n; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	memcpy(out + n, len > SHOWN_MAX ? "..." : "", len > SHOWN_MAX ? 4 : 1);
}

bool scan_fail(const struct scan *s, size_t at, const char *fmt, ...)
{
	char shown[SHOWN_MAX + 4], msg[300];
	va_list ap;

	quote_shortened(shown, s->text, s->end);
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	return err_field(s->e, "schedule", "'%s', character %zu: %s", shown, at + 1, msg);
}

bool scan_fail_part(const struct scan *s, const char *what, size_t from, size_t to, size_t at,
	const char *msg)
{
	char shown[SHOWN_MAX + 4];

	quote_shortened(shown, s->text + from, to - from);
	return err_field(s->e, "schedule", "%s '%s', character %zu: %s", what, shown, at + 1, msg);
}
