/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, string lists, numbers, and allocation that aborts on failure. */
#pragma once
#include "base/clock.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

/* Out of memory aborts. */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
void *xgrow(void *list, size_t n, size_t size); /* makes room for element n; doubles the capacity at each power of two */
char *xstrdup(const char *s); /* NULL gives NULL */
char *xstrndup(const char *s, size_t len);
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

bool text_equal(const char *a, const char *b); /* NULL equals NULL only */
bool text_starts(const char *s, const char *prefix);
bool text_is_name(const char *s, size_t len); /* of a variable: letters, digits and '_', not a digit first */
bool text_utf8_valid(const char *s, size_t len); /* strict: no overlong, surrogate or > U+10FFFF */

/* A list of owned strings. */
struct strv {
	char **v; /* NULL or n strings and a NULL */
	size_t n;
};
void strv_done(struct strv *v);
void strv_add(struct strv *v, const char *s);
void strv_take(struct strv *v, char *s /* moved */);
void strv_copy(struct strv *to, const struct strv *from);

/* Bytes that may contain NUL. */
struct blob {
	char *data; /* owned; NULL when absent */
	size_t len;
};
void blob_done(struct blob *b);

/*
 * These parse the whole text. Leading blanks, trailing characters and unexpected signs are refused.
 */
#define TEXT_INT 24
/* Returns the decimal digits of a number, which it writes into 'digits'. Faster than printf. */
const char *text_from_int(char digits[TEXT_INT], int64_t n);
bool text_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret);
bool text_parse_size(const char *s, int64_t *ret);                   /* 4096 64K 10M 1G */

/* Appends s with control characters, invalid UTF-8 and bidi overrides shown as \x1b or \u202e. */
void text_escape(struct buf *out, const char *s, size_t len);
