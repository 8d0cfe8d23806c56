/* SPDX-License-Identifier: Apache-2.0 */
/* Parses anacrontab; computes the slots of its jobs. */
#include "core/crontab/anacrontab.h"
#include "base/buf.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLANK " \t"
#define ENTRIES_MAX 1000
#define PERIOD_MAX 10000   /* days */
#define DELAY_MAX 10000    /* minutes */
#define FIRST_HOUR 7       /* without START_HOURS_RANGE: 07:30, when Debian's anacron.timer begins */
#define FIRST_MINUTE 30

void anacrontab_free(struct anacrontab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_entries; i++) {
		free(t->entries[i].id);
		free(t->entries[i].command);
	}
	free(t->entries);
	strv_done(&t->settings);
	free(t->error);
	free(t);
}

static void line_refuse(struct anacrontab *t, size_t line, const char *why)
{
	if (t->error_line)
		return;
	t->error_line = line;
	t->error = xstrdup(why);
}

/* Cuts the next word off; NULL: there is none. */
static char *word_take(char **at)
{
	char *word = *at + strspn(*at, BLANK);

	if (!*word)
		return NULL;
	*at = word + strcspn(word, BLANK);
	if (**at)
		*(*at)++ = '\0';
	return word;
}

static bool period_parse(const char *word, int64_t *ret)
{
	static const struct {
		const char *name;
		int64_t days;
	} names[] = {{"@daily", 1}, {"@weekly", 7}, {"@monthly", 0}, {"@yearly", 365}, {"@annually", 365}};

	for (size_t i = 0; i < ELEMENTS(names); i++)
		if (strcmp(names[i].name, word) == 0) {
			*ret = names[i].days;
			return true;
		}
	return text_parse_int(word, 1, PERIOD_MAX, ret);
}

/* The identifier is a file name in the directory of time stamps. */
static bool id_valid(const char *id)
{
	return id[0] != '.' && strlen(id) <= 200 &&
	       strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == strlen(id);
}

static void entry_parse(struct anacrontab *t, char *text, size_t line)
{
	char *period = word_take(&text), *delay = word_take(&text), *id = word_take(&text);
	struct anacrontab_entry e = {.line = line, .settings = t->settings.n};

	text += strspn(text, BLANK);
	if (!period || !delay || !id || !*text) {
		line_refuse(t, line, "a job has a period, a delay, an identifier and a command");
	} else if (!period_parse(period, &e.days)) {
		line_refuse(t, line, "the period is not a number of days or @daily, @weekly, @monthly");
	} else if (!text_parse_int(delay, 0, DELAY_MAX, &e.delay)) {
		line_refuse(t, line, "the delay is not a number of minutes");
	} else if (!id_valid(id)) {
		line_refuse(t, line, "the identifier has a character that is not a letter, a digit, '.', '_' or '-'");
	} else if (t->n_entries == ENTRIES_MAX) {
		line_refuse(t, line, "more than 1000 jobs");
	} else {
		e.id = xstrdup(id);
		e.command = xstrdup(text);
		t->entries = xgrow(t->entries, t->n_entries, sizeof(*t->entries));
		t->entries[t->n_entries++] = e;
	}
}

static void hours_parse(struct anacrontab *t, const char *value)
{
	AUTO_TEXT copy = xstrdup(value);
	char *dash = strchr(copy, '-');
	int64_t first, last;

	if (!dash)
		return;
	*dash = '\0';
	if (text_parse_int(copy, 0, 23, &first) && text_parse_int(dash + 1, first, 24, &last)) {
		t->first_hour = first;
		t->last_hour = last;
	}
}

/* NAME=value; a pair of quotes around the value is removed. */
static bool setting_parse(struct anacrontab *t, char *text)
{
	size_t name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	char *eq = text + name + strspn(text + name, BLANK), *value, *end;
	AUTO_TEXT pair = NULL;

	if (name == 0 || *eq != '=')
		return false;
	value = eq + 1 + strspn(eq + 1, BLANK);
	end = value + strlen(value);
	while (end > value && strchr(BLANK, end[-1]))
		*--end = '\0';
	if (end - value >= 2 && strchr("\"'", *value) && end[-1] == *value) {
		end[-1] = '\0';
		value++;
	}
	pair = xprintf("%.*s=%s", (int)name, text, value);
	if (text_starts(pair, "START_HOURS_RANGE="))
		hours_parse(t, value);
	else if (text_starts(pair, "RANDOM_DELAY="))
		(void)text_parse_int(value, 0, DELAY_MAX, &t->random_delay);
	else
		strv_take(&t->settings, STEAL(pair));
	return true;
}

/* One line, with the lines joined to it by a backslash at the end. */
static char *line_take(const char **at, const char *end, size_t *line)
{
	AUTO_DONE(buf) text = {};
	bool more = true;

	while (more && *at < end) {
		const char *nl = memchr(*at, '\n', (size_t)(end - *at));
		size_t len = (size_t)((nl ? nl : end) - *at);

		more = len > 0 && (*at)[len - 1] == '\\';
		buf_add(&text, *at, len - more);
		*at += len + (nl != NULL);
		(*line)++;
	}
	return buf_steal(&text);
}

void anacrontab_parse(const char *data, size_t len, struct anacrontab **ret)
{
	struct anacrontab *t = xcalloc(1, sizeof(*t));
	const char *at = data, *end = data + len;
	size_t line = 0;

	t->last_hour = 24;
	while (at < end) {
		size_t first = line + 1;
		AUTO_TEXT text = line_take(&at, end, &line);
		char *start = text + strspn(text, BLANK);

		if (*start && *start != '#' && !setting_parse(t, start))
			entry_parse(t, start, first);
	}
	*ret = t;
}

const char *anacrontab_get(const struct anacrontab *t, const struct anacrontab_entry *e, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = e->settings; i-- > 0;)
		if (strncmp(t->settings.v[i], name, len) == 0 && t->settings.v[i][len] == '=')
			return t->settings.v[i] + len + 1;
	return NULL;
}

int64_t anacrontab_minute(const struct anacrontab *t, const struct anacrontab_entry *e)
{
	int64_t first = t->last_hour < 24 || t->first_hour ? t->first_hour * 60 : FIRST_HOUR * 60 + FIRST_MINUTE;

	return (first + e->delay) % (24 * 60);
}

char *anacrontab_schedule(const struct anacrontab *t, const struct anacrontab_entry *e, int64_t day, int64_t offset)
{
	int64_t minute = anacrontab_minute(t, e), of_month = day % 100;
	bool west = offset < 0;

	if (e->days == 1)
		return xprintf("%" PRId64 " %" PRId64 " * * *", minute % 60, minute / 60);
	if (e->days == 0)
		return xprintf("%" PRId64 " %" PRId64 " %" PRId64 " * *", minute % 60, minute / 60,
			of_month < 1 ? 1 : of_month > 28 ? 28 : of_month);
	offset = (west ? -offset : offset) / 60;
	return xprintf("R/%04" PRId64 "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":00%c%02" PRId64 ":%02" PRId64
		       "/P%" PRId64 "D", day / 10000, day / 100 % 100, of_month, minute / 60, minute % 60, west ? '-' : '+',
		offset / 60, offset % 60, e->days);
}
