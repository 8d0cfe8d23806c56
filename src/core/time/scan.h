/* SPDX-License-Identifier: Apache-2.0 */
/* Cursor over a schedule text that reports the position of errors. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define SCHEDULE_TEXT_MAX 4096
#define SCAN_WORD_MAX 16
#define SCAN_NUMBER_DIGITS 9

struct scan {
	const char *text; /* the whole schedule, borrowed */
	size_t pos, end;  /* the rest of the text is between them */
	struct err *e;
};

char scan_peek(const struct scan *s); /* NUL at the end */
bool scan_take(struct scan *s, char c); /* letters in either case */
bool scan_blanks(struct scan *s); /* true: there was at least one */
bool scan_done(const struct scan *s);

/* Digits only; false and nothing taken without any, or with more than SCAN_NUMBER_DIGITS. */
bool scan_number(struct scan *s, int64_t *ret, size_t *ret_digits);

/* Letters in lower case; the length, 0 without any. A longer word is cut, and equals no other. */
size_t scan_word(struct scan *s, char out[SCAN_WORD_MAX]);

/* ERR_INVALID: "'text', character N: …" for the position 'at'. Returns false. */
bool scan_fail(const struct scan *s, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with a word before: "minute field '61', character 1: …" */
bool scan_fail_part(const struct scan *s, const char *what, size_t from, size_t to, size_t at,
	const char *msg);

/* n of the words in a table, in either case; -1: none */
int scan_lookup(const char *word, const char *const *table, size_t n);
