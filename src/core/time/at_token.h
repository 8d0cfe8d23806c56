/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the time specifications of at(1). */
#pragma once
#include <stddef.h>

/* Words with several forms have one kind; 'value' tells them apart. */
enum at_token_kind {
	AT_TOKEN_END,
	AT_TOKEN_CHAR,    /* any other character, in 'value' */
	AT_TOKEN_NOW,
	AT_TOKEN_AM_PM,   /* 0: am, 12: pm */
	AT_TOKEN_CLOCK,   /* noon, midnight, teatime: the hour */
	AT_TOKEN_WEEKDAY, /* 0: Sunday */
	AT_TOKEN_TODAY,
	AT_TOKEN_TOMORROW,
	AT_TOKEN_NEXT,
	AT_TOKEN_PERIOD,  /* enum at_period */
	AT_TOKEN_MONTH,   /* 1 … 12 */
	AT_TOKEN_UTC,
	AT_TOKEN_INT_1_2, /* numbers by their count of digits */
	AT_TOKEN_INT_4,
	AT_TOKEN_INT_5_8,
	AT_TOKEN_INT,     /* another count */
	AT_TOKEN_DOTTED,  /* 31.12.26 */
	AT_TOKEN_HYPHENS, /* 2026-12-31 */
	AT_TOKEN_HOUR_MIN /* 10:15, 10h15, 10.15 */
};
enum at_period {
	AT_PERIOD_MINUTE,
	AT_PERIOD_HOUR,
	AT_PERIOD_DAY,
	AT_PERIOD_WEEK,
	AT_PERIOD_MONTH,
	AT_PERIOD_YEAR
};

struct at_token {
	enum at_token_kind kind;
	int value;        /* of a word */
	const char *text; /* in the input */
	size_t len;
};

/* The longest token at the start of the text, which follows blanks; returns its end. */
const char *at_token_read(const char *text, struct at_token *ret);
