/* SPDX-License-Identifier: Apache-2.0 */
/* Reads bytes of a crontab and collects findings. */
#include "core/crontab/reader.h"

#include "base/buf.h"
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int reader_next(struct reader *r)
{
	if (r->pos >= r->len)
		return READER_END;
	if (r->data[r->pos++] == '\n') {
		r->line++;
		r->line_start = r->pos;
	}
	return reader_peek(r);
}

void reader_skip_blanks(struct reader *r)
{
	int c = reader_peek(r);

	while (c == ' ' || c == '\t')
		c = reader_next(r);
}

void reader_skip_line(struct reader *r)
{
	int c = reader_peek(r);

	while (c != '\n' && c != READER_END)
		c = reader_next(r);
	reader_next(r);
}

static void mark_line(struct reader *r, enum crontab_line kind)
{
	if (r->line <= r->table->n_lines)
		r->table->lines[r->line - 1] = (uint8_t)kind;
}

bool reader_skip_comments(struct reader *r)
{
	while (reader_peek(r) != READER_END) {
		int c;

		reader_skip_blanks(r);
		c = reader_peek(r);
		if (c == READER_END)
			return false;
		if (c != '\n' && c != '#')
			return true;
		if (c == '#' && (r->pos == 0 || r->data[r->pos - 1] != '\0'))
			mark_line(r, CRONTAB_LINE_COMMENT);
		reader_skip_line(r);
	}
	return false;
}

size_t reader_span(const struct reader *r, const char *terminators)
{
	size_t n = 0;

	while (r->pos + n < r->len && r->data[r->pos + n] && !strchr(terminators, r->data[r->pos + n]))
		n++;
	return n;
}

struct code {
	const char *word;
	enum crontab_level level;
	bool doubtful;         /* an error in strict mode */
	const char *cron_text; /* of an error */
};

static const struct code codes[CODE_MAX] = {
	[CODE_MINUTE] = { "bad-minute", CRONTAB_ERROR, .cron_text = "bad minute" },
	[CODE_HOUR] = { "bad-hour", CRONTAB_ERROR, .cron_text = "bad hour" },
	[CODE_DOM] = { "bad-day-of-month", CRONTAB_ERROR, .cron_text = "bad day-of-month" },
	[CODE_MONTH] = { "bad-month", CRONTAB_ERROR, .cron_text = "bad month" },
	[CODE_DOW] = { "bad-day-of-week", CRONTAB_ERROR, .cron_text = "bad day-of-week" },
	[CODE_COMMAND] = { "bad-command", CRONTAB_ERROR, .cron_text = "bad command" },
	[CODE_TIMESPEC] = { "bad-time-specifier", CRONTAB_ERROR, .cron_text = "bad time specifier" },
	[CODE_USERNAME] = { "bad-username", CRONTAB_ERROR, .cron_text = "bad username" },
	[CODE_TOO_LONG] = { "command-too-long", CRONTAB_ERROR, .cron_text = "command too long" },
	[CODE_OPTION] = { "bad-option", CRONTAB_ERROR, .cron_text = "bad option" },
	[CODE_NEWLINE] = { "no-final-newline", CRONTAB_ERROR, .cron_text = "missing newline before EOF" },
	[CODE_LINES] = { "too-many-lines", CRONTAB_ERROR, .cron_text = "crontab is too long" },
	[CODE_IGNORED] = { "ignored-text", CRONTAB_WARNING, true },
	[CODE_REVERSED] = { "reversed-range", CRONTAB_WARNING, true },
	[CODE_WRAPPED] = { "number-overflow", CRONTAB_WARNING, true },
	[CODE_PERCENT] = { "percent", CRONTAB_WARNING, true },
	[CODE_NEVER] = { "never", CRONTAB_WARNING, true },
	[CODE_RETURN] = { "carriage-return", CRONTAB_WARNING, true },
	[CODE_CUT] = { "setting-cut", CRONTAB_WARNING, true },
	[CODE_EMPTY] = { "no-command", CRONTAB_WARNING, true },
	[CODE_NUL] = { "nul-byte", CRONTAB_WARNING, true },
	[CODE_CRON_TZ] = { "cron-tz-ignored", CRONTAB_WARNING, true },
	[CODE_RANDOM_DELAY] = { "random-delay-ignored", CRONTAB_WARNING, true },
	[CODE_BAD_DELAY] = { "bad-random-delay", CRONTAB_WARNING, true },
	[CODE_DOLLAR] = { "not-expanded", CRONTAB_WARNING, true },
	[CODE_HASH] = { "comment-in-value", CRONTAB_WARNING, true },
	[CODE_NAME] = { "odd-name", CRONTAB_WARNING, true },
	[CODE_UNEVEN] = { "uneven-step", CRONTAB_WARNING, false },
	[CODE_WIDE] = { "wide-step", CRONTAB_WARNING, false },
	[CODE_DAY_OR] = { "day-or-weekday", CRONTAB_NOTE, false },
	[CODE_DAY_AND] = { "day-and-weekday", CRONTAB_NOTE, false },
	[CODE_TZ] = { "tz-of-command", CRONTAB_NOTE, false },
	[CODE_RANDOM] = { "random-value", CRONTAB_NOTE, false },
	[CODE_UNLOGGED] = { "not-logged", CRONTAB_NOTE, false },
	[CODE_ON_ERROR] = { "mail-on-error", CRONTAB_NOTE, false },
};

bool reader_report(struct reader *r, enum crontab_code code, size_t pos, const char *fmt, ...)
{
	struct crontab *t = r->table;
	const struct code *c = &codes[code];
	bool error = c->level == CRONTAB_ERROR || (c->doubtful && r->o->mode == CRONTAB_STRICT);
	AUTO_DONE(buf) text = {};
	char raw[400];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	text_escape(&text, raw, n < (int)sizeof raw ? (size_t)n : sizeof raw - 1);
	t->findings = xgrow(t->findings, t->n_findings, sizeof *t->findings);
	t->findings[t->n_findings++] = (struct crontab_finding){
		.line = r->line,
		.column = pos >= r->line_start ? pos - r->line_start + 1 : 0,
		.level = error ? CRONTAB_ERROR : c->level,
		.code = c->word,
		.text = buf_steal(&text),
		.cron_text = c->cron_text ? c->cron_text : error ? c->word : NULL,
	};
	if (error && r->o->mode != CRONTAB_CRONIE)
		t->accepted = false;
	return false;
}
