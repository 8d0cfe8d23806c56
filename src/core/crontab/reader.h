/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor over the bytes of a crontab, and its findings; private to this directory. */
#pragma once
#include "core/crontab/crontab.h"

struct reader {
	const unsigned char *data;
	size_t len, pos;
	size_t line, line_start;           /* of 'pos' */
	const struct crontab_options *o;
	struct crontab *table;
};

#define READER_END (-1)

/* The byte at the cursor, or READER_END. */
static inline int reader_peek(const struct reader *r)
{
	return r->pos < r->len ? r->data[r->pos] : READER_END;
}

/* Moves on by one byte and returns the byte that is then at the cursor. */
int reader_next(struct reader *r);
void reader_skip_blanks(struct reader *r); /* spaces and tabs */
/* Moves to the first character of the next line that is neither blank nor a comment; false: none. */
bool reader_skip_comments(struct reader *r);
void reader_skip_line(struct reader *r);   /* to the start of the next line */
/* The number of bytes up to one of these characters, a NUL byte or the end of the table. */
size_t reader_span(const struct reader *r, const char *terminators);

/* Kinds of findings. The table in reader.c has the text of each. */
enum crontab_code {
	CODE_MINUTE, CODE_HOUR, CODE_DOM, CODE_MONTH, CODE_DOW,
	CODE_COMMAND, CODE_TIMESPEC, CODE_USERNAME, CODE_TOO_LONG, CODE_OPTION,
	CODE_NEWLINE, CODE_LINES,
	CODE_IGNORED, CODE_REVERSED, CODE_WRAPPED, CODE_PERCENT, CODE_NEVER, CODE_RETURN, CODE_CUT,
	CODE_EMPTY, CODE_NUL, CODE_CRON_TZ, CODE_RANDOM_DELAY, CODE_BAD_DELAY, CODE_DOLLAR,
	CODE_HASH, CODE_NAME,
	CODE_UNEVEN, CODE_WIDE, CODE_DAY_OR, CODE_DAY_AND, CODE_TZ, CODE_RANDOM, CODE_UNLOGGED, CODE_ON_ERROR,
	CODE_MAX
};
/* Reports at 'pos', a position in the current line. Returns false. */
bool reader_report(struct reader *r, enum crontab_code code, size_t pos, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
