/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a time specification of at(1) into tokens. */
#include "core/time/at_token.h"

#include "base/auto.h"
#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const struct word {
	const char *text;
	size_t shortest; /* the abbreviation; 0: only the whole word */
	enum at_token_kind kind;
	int value;
} words[] = {
	{"now", 0, AT_TOKEN_NOW, 0},
	{"am", 0, AT_TOKEN_AM_PM, 0},
	{"pm", 0, AT_TOKEN_AM_PM, 12},
	{"noon", 0, AT_TOKEN_CLOCK, 12},
	{"midnight", 0, AT_TOKEN_CLOCK, 0},
	{"teatime", 0, AT_TOKEN_CLOCK, 16},
	{"sunday", 3, AT_TOKEN_WEEKDAY, 0},
	{"monday", 3, AT_TOKEN_WEEKDAY, 1},
	{"tuesday", 3, AT_TOKEN_WEEKDAY, 2},
	{"wednesday", 3, AT_TOKEN_WEEKDAY, 3},
	{"thursday", 3, AT_TOKEN_WEEKDAY, 4},
	{"friday", 3, AT_TOKEN_WEEKDAY, 5},
	{"saturday", 3, AT_TOKEN_WEEKDAY, 6},
	{"today", 0, AT_TOKEN_TODAY, 0},
	{"tomorrow", 0, AT_TOKEN_TOMORROW, 0},
	{"next", 0, AT_TOKEN_NEXT, 0},
	{"min", 0, AT_TOKEN_PERIOD, AT_PERIOD_MINUTE},
	{"minutes", 6, AT_TOKEN_PERIOD, AT_PERIOD_MINUTE},
	{"hours", 4, AT_TOKEN_PERIOD, AT_PERIOD_HOUR},
	{"days", 3, AT_TOKEN_PERIOD, AT_PERIOD_DAY},
	{"weeks", 4, AT_TOKEN_PERIOD, AT_PERIOD_WEEK},
	{"months", 5, AT_TOKEN_PERIOD, AT_PERIOD_MONTH},
	{"years", 4, AT_TOKEN_PERIOD, AT_PERIOD_YEAR},
	{"january", 3, AT_TOKEN_MONTH, 1},
	{"february", 3, AT_TOKEN_MONTH, 2},
	{"march", 3, AT_TOKEN_MONTH, 3},
	{"april", 3, AT_TOKEN_MONTH, 4},
	{"may", 0, AT_TOKEN_MONTH, 5},
	{"june", 3, AT_TOKEN_MONTH, 6},
	{"july", 3, AT_TOKEN_MONTH, 7},
	{"august", 3, AT_TOKEN_MONTH, 8},
	{"september", 3, AT_TOKEN_MONTH, 9},
	{"october", 3, AT_TOKEN_MONTH, 10},
	{"november", 3, AT_TOKEN_MONTH, 11},
	{"december", 3, AT_TOKEN_MONTH, 12},
	{"utc", 0, AT_TOKEN_UTC, 0},
};

static size_t word_len(const struct word *w, const char *text)
{
	size_t whole = strlen(w->text);

	if (strncasecmp(text, w->text, whole) == 0)
		return whole;
	return w->shortest && strncasecmp(text, w->text, w->shortest) == 0 ? w->shortest : 0;
}

static void read_word(const char *text, struct at_token *ret)
{
	for (size_t i = 0; i < ELEMENTS(words); i++) {
		size_t len = word_len(&words[i], text);

		if (len > ret->len)
			*ret = (struct at_token){words[i].kind, words[i].value, text, len};
	}
}

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* 31.12.26 or 31.12.2026; 0: neither. */
static size_t dotted_len(const char *text)
{
	size_t day = digits(text), month, year;

	if (day > 2 || text[day] != '.')
		return 0;
	month = digits(text + day + 1);
	if (month < 1 || month > 2 || text[day + 1 + month] != '.')
		return 0;
	year = digits(text + day + 1 + month + 1);
	return year < 2 ? 0 : day + month + 2 + (year >= 4 ? 4 : 2);
}

/* 26-12-31 or 2026-12-31; 0: neither. */
static size_t hyphens_len(const char *text)
{
	size_t year = digits(text), month, day;

	if ((year != 2 && year != 4) || text[year] != '-')
		return 0;
	month = digits(text + year + 1);
	if (month < 1 || month > 2 || text[year + 1 + month] != '-')
		return 0;
	day = digits(text + year + 1 + month + 1);
	return day < 1 ? 0 : year + month + 2 + (day >= 2 ? 2 : 1);
}

/* 9:05 or 21h05; 0: neither. */
static size_t hour_min_len(const char *text)
{
	size_t hour = digits(text);

	if (hour > 2 || (hour == 2 && text[0] > '2') || !text[hour] ||
		!strchr(":'hH,.", text[hour]))
		return 0;
	return digits(text + hour + 1) < 2 ? 0 : hour + 3;
}

static enum at_token_kind number_kind(size_t len)
{
	if (len <= 2)
		return AT_TOKEN_INT_1_2;
	if (len == 4)
		return AT_TOKEN_INT_4;
	return len >= 5 && len <= 8 ? AT_TOKEN_INT_5_8 : AT_TOKEN_INT;
}

static void read_number(const char *text, struct at_token *ret)
{
	const struct {
		enum at_token_kind kind;
		size_t len;
	} forms[] = {
		{number_kind(digits(text)), digits(text)},
		{AT_TOKEN_DOTTED, dotted_len(text)},
		{AT_TOKEN_HYPHENS, hyphens_len(text)},
		{AT_TOKEN_HOUR_MIN, hour_min_len(text)},
	};

	for (size_t i = 0; i < ELEMENTS(forms); i++)
		if (forms[i].len > ret->len)
			*ret = (struct at_token){forms[i].kind, 0, text, forms[i].len};
}

const char *at_token_read(const char *text, struct at_token *ret)
{
	text += strspn(text, " \t\n");
	*ret = (struct at_token){.text = text};
	if (!*text)
		return text;
	if (digits(text))
		read_number(text, ret);
	else
		read_word(text, ret);
	if (!ret->len)
		*ret = (struct at_token){AT_TOKEN_CHAR, (unsigned char)*text, text, 1};
	return text + ret->len;
}
