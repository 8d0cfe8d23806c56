/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a table as Debian's crontab does before it installs it. */
#include "base/auto.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/time/clocktime.h"
#include "crontab/crontab_command.h"
#include "spool/request.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HEADER_LINES 3
#define WORD_MAX 1000 /* cron refuses a number or name of this length */

const char *table_after_header(const struct buf *table)
{
	const char *at = table->data ? table->data : "";

	for (int i = 0; i < HEADER_LINES && *at == '#'; i++) {
		const char *end = strchr(at, '\n');

		at = end ? end + 1 : at + strlen(at);
	}
	return at;
}

/* The first line that cron refuses; NULL: none. A last line without newline is not read any further. */
static const struct crontab_finding *find_bad_line(const struct crontab *t)
{
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct crontab_finding *f = &t->findings[i];

		if (strcmp(f->code, "no-final-newline") == 0)
			return NULL;
		if (f->level == CRONTAB_ERROR && strcmp(f->code, "too-many-lines") != 0)
			return f;
	}
	return NULL;
}

static bool lacks_newline(const struct crontab *t)
{
	for (size_t i = 0; i < t->n_findings; i++)
		if (strcmp(t->findings[i].code, "no-final-newline") == 0)
			return true;
	return false;
}

static const char *skip_word(const char *at, const char *end)
{
	while (at < end && isalnum((unsigned char)*at))
		at++;
	return at;
}

static bool is_named(const char *const *names, int n, const char *at, const char *end)
{
	for (int i = 0; i < n; i++)
		if (strlen(names[i]) == (size_t)(end - at) && strncasecmp(names[i], at, (size_t)(end - at)) == 0)
			return true;
	return false;
}

/* Whether a word is a number, or a name that is allowed in the field of the error. */
static bool is_value(const char *at, const char *end, const char *error)
{
	const char *digit = at;

	while (digit < end && isdigit((unsigned char)*digit))
		digit++;
	return digit == end || (strcmp(error, "bad month") == 0 && is_named(month_words, 12, at, end)) ||
	       (strcmp(error, "bad day-of-week") == 0 && is_named(weekday_words, 7, at, end));
}

/* cron reads up to one of these characters, or a NUL byte. */
static const char *skip_until(const char *at, const char *end, const char *stop)
{
	while (at < end && !strchr(stop, *at))
		at++;
	return at;
}

/* The end of what cron reads before it finds the error: a nickname, a command, or an element of a list as 1-5/2. */
static const char *skip_read(const char *at, const char *end, const char *error)
{
	const char *word = at;

	if (strcmp(error, "bad command") == 0)
		return at;
	if (strcmp(error, "bad time specifier") == 0)
		return skip_until(at, end, " \t\n");
	if (strcmp(error, "command too long") == 0)
		return skip_until(at, end, "\n");
	word = at < end && *at == '*' ? at + 1 : skip_word(at, end);
	if (word - at >= WORD_MAX)
		return at; /* cron stops inside */
	if (*at != '*' && !is_value(at, word, error))
		return word;
	for (const char *c = "-/"; word > at && *c; c++)
		if (word < end && *word == *c)
			word = skip_word(word + 1, end);
	return word;
}

/*
 * The number that Debian's crontab prints: the lines that it has read completely. The line of the
 * error counts only if the text at fault is at its end.
 */
static size_t lines_read(const struct buf *table, const struct crontab_finding *f)
{
	const char *at = table->data, *end = table->data + table->len;

	for (size_t line = 1; line < f->line && at < end; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline ? newline + 1 : end;
	}
	at += f->column ? f->column - 1 : 0;
	at = at < end ? skip_read(at, end, f->cron_text) : end;
	return at < end && *at == '\n' ? f->line : f->line - 1;
}

static bool check_table(const char *label, const struct buf *table)
{
	AUTO(crontab) *t = NULL;
	AUTO_DONE(buf) name = {};
	const struct crontab_finding *bad;

	crontab_parse(table->data ? table->data : "", table->len,
		&(struct crontab_options){.mode = CRONTAB_DEBIAN}, &t);
	if (t->too_long) {
		fprintf(stderr, "crontab is too long; maximum number of lines is %d.\n",
			CRONTAB_LINES_MAX);
		return false;
	}
	bad = find_bad_line(t);
	if (bad) {
		text_escape(&name, label, strlen(label));
		fprintf(stderr, "\"%s\":%zu: %s\nerrors in crontab file, can't install.\n",
			name.data ? name.data : "", lines_read(table, bad), bad->cron_text);
		return false;
	}
	if (lacks_newline(t)) {
		fputs("new crontab file is missing newline before EOF, can't install.\n", stderr);
		return false;
	}
	return true;
}

enum install_result install_table(const struct crontab_command *c, const char *label,
	const struct buf *table)
{
	if (table->len > SPOOL_BODY_MAX) {
		fprintf(stderr, "%s: the table has more than %zu bytes; can't install.\n", c->program,
			SPOOL_BODY_MAX);
		return INSTALL_BAD_TABLE;
	}
	if (!check_table(label, table))
		return INSTALL_BAD_TABLE;
	if (c->dry_run) {
		fputs("The syntax of the crontab file was successfully checked.\n", stderr);
		return INSTALL_DONE;
	}
	return request_replace(c, label, table) ? INSTALL_DONE : INSTALL_FAILED;
}
