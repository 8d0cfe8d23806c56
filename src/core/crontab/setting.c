/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment lines of a crontab. */
#include "core/crontab/setting.h"

#include "base/text.h"
#include <string.h>

/* isspace() of the C locale */
static bool is_space(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct span {
	const char *s;
	size_t len;
};

static void trim_end(struct span *v)
{
	while (v->len > 0 && is_space(v->s[v->len - 1]))
		v->len--;
}

static size_t skip_space(const char *s, size_t len, size_t at)
{
	while (at < len && is_space(s[at]))
		at++;
	return at;
}

/* Text up to the closing quote; *at is behind it. False: there is none. */
static bool read_quoted(const char *s, size_t len, size_t *at, struct span *ret)
{
	const char *end = memchr(s + *at + 1, s[*at], len - *at - 1);

	if (!end)
		return false;
	*ret = (struct span){ s + *at + 1, (size_t)(end - s) - *at - 1 };
	*at = (size_t)(end - s) + 1;
	return true;
}

/* One word, or a quoted text without '='. */
static bool read_name(const char *s, size_t len, size_t *at, struct span *ret)
{
	size_t from = *at;

	if (from < len && (s[from] == '"' || s[from] == '\''))
		return read_quoted(s, len, at, ret) && !memchr(ret->s, '=', ret->len);
	while (*at < len && s[*at] != '=' && !is_space(s[*at]))
		++*at;
	*ret = (struct span){ s + from, *at - from };
	return true;
}

static bool read_value(const char *s, size_t len, size_t at, bool debian, struct span *ret)
{
	if (at >= len && debian)
		return false;
	if (at < len && (s[at] == '"' || s[at] == '\'')) {
		if (!read_quoted(s, len, &at, ret) || skip_space(s, len, at) < len)
			return false;
	} else {
		*ret = (struct span){ s + at, len - at };
		trim_end(ret);
	}
	if (!debian)
		return true;
	/* Debian's cron also removes blanks before the closing quote, and a second pair of quotes. */
	trim_end(ret);
	if (ret->len >= 2 && (ret->s[0] == '"' || ret->s[0] == '\'') && ret->s[ret->len - 1] == ret->s[0]) {
		ret->s++;
		ret->len -= 2;
	}
	return true;
}

static void lint_value(struct reader *r, const struct crontab_setting *v, bool quoted, size_t pos)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;

	if (!text_is_name(v->name, strlen(v->name)))
		reader_report(r, CODE_NAME, pos, "'%.80s' is not the name of a variable that a shell can use", v->name);
	if (strchr(v->value, '$'))
		reader_report(r, CODE_DOLLAR, pos, "cron does not expand '$' in the value of %.80s", v->name);
	if (!quoted && strstr(v->value, " #"))
		reader_report(r, CODE_HASH, pos, "'#' does not start a comment here: it is part of the value of %.80s", v->name);
	if (!cronie && strcmp(v->name, "CRON_TZ") == 0)
		reader_report(r, CODE_CRON_TZ, pos,
			"Debian's cron ignores CRON_TZ: the times below are in the zone of the machine; mode 'cronie' uses it");
	if (!cronie && strcmp(v->name, "RANDOM_DELAY") == 0)
		reader_report(r, CODE_RANDOM_DELAY, pos, "Debian's cron ignores RANDOM_DELAY; mode 'cronie' uses it");
	if (strcmp(v->name, "TZ") == 0)
		reader_report(r, CODE_TZ, pos, "TZ applies to the commands below, not to the times at which they run");
}

static void add_setting(struct reader *r, struct span name, struct span value)
{
	struct crontab *t = r->table;
	struct crontab_setting v = {
		.line = r->line,
		.name = xstrndup(name.s, name.len),
		.value = xstrndup(value.s, value.len),
		.replaced = SIZE_MAX,
	};

	for (size_t i = t->n_settings; i-- > 0;)
		if (strcmp(t->settings[i].name, v.name) == 0) {
			t->settings[i].replaced = t->n_settings;
			break;
		}
	t->settings = xgrow(t->settings, t->n_settings, sizeof *t->settings);
	t->settings[t->n_settings++] = v;
}

bool setting_read(struct reader *r)
{
	bool cronie = r->o->mode == CRONTAB_CRONIE;
	const char *s = (const char *)r->data + r->pos;
	size_t max = cronie ? CRONTAB_CRONIE_MAX : CRONTAB_COMMAND_MAX;
	size_t whole = reader_span(r, "\n"), len = whole < max ? whole : max, at = 0, pos = r->pos;
	struct span name, value;
	bool quoted;

	if (!read_name(s, len, &at, &name))
		return false;
	at = skip_space(s, len, at);
	if (at >= len || s[at] != '=')
		return false;
	at = skip_space(s, len, at + 1);
	quoted = at < len && (s[at] == '"' || s[at] == '\'');
	if (!read_value(s, len, at, !cronie, &value))
		return false;
	add_setting(r, name, value);
	lint_value(r, &r->table->settings[r->table->n_settings - 1], quoted, pos);
	if (whole > len)
		reader_report(r, CODE_CUT, pos + max, "cron uses only the first %zu bytes of this line", max);
	if (r->pos + whole < r->len && r->data[r->pos + whole] == '\0')
		reader_report(r, CODE_NUL, pos + whole, "a NUL byte ends the setting; cron reads the rest as another line");
	for (size_t i = 0; i <= whole; i++)
		reader_next(r);
	return true;
}
