/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the entries of a crontab(5) to 'jobctl add' commands. */
#include "jobctl/spec/crontab.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "core/time/schedule.h"
#include "jobctl/spec/shell.h"
#include <pwd.h>
#include <string.h>

enum line_kind { LINE_NOTHING, LINE_VARIABLE, LINE_ENTRY, LINE_OTHER };

struct line {
	enum line_kind kind;
	char *name, *value;       /* of a variable */
	char *schedule, *command; /* of an entry */
};

static void line_done(struct line *l)
{
	free(l->name);
	free(l->value);
	free(l->schedule);
	free(l->command);
	*l = (struct line){};
}

static const char *blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* NAME = VALUE; the value may be quoted. */
static bool read_variable(const char *s, struct line *ret)
{
	size_t name = strcspn(s, "= \t");
	const char *eq = blanks(s + name), *value;
	size_t len;

	if (*eq != '=' || !text_is_name(s, name))
		return false;
	value = blanks(eq + 1);
	len = strlen(value);
	while (len > 0 && strchr(" \t", value[len - 1]))
		len--;
	if (len > 1 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		value++;
		len -= 2;
	}
	*ret = (struct line){.kind = LINE_VARIABLE,
		.name = xstrndup(s, name),
		.value = xstrndup(value, len)};
	return true;
}

/* A nickname (@daily) or five fields, then a command. */
static bool read_entry(const char *s, struct line *ret)
{
	const struct schedule_context context = {.accepted = true};
	AUTO(schedule) *parsed = NULL;
	AUTO_TEXT schedule = NULL;
	const char *end = s, *command;

	for (int fields = *s == '@' ? 1 : 5; fields > 0; fields--) {
		end = blanks(end);
		end += strcspn(end, " \t");
	}
	command = blanks(end);
	schedule = xstrndup(s, (size_t)(end - s));
	if (!*command || command == end || !schedule_parse(schedule, &context, &parsed, NULL))
		return false;
	*ret = (struct line){.kind = LINE_ENTRY,
		.schedule = STEAL(schedule),
		.command = xstrdup(command)};
	return true;
}

/* Reads the line at *at and advances to the next; false: end of the text. */
static bool next_crontab_line(const char **at, struct line *ret)
{
	size_t len = strcspn(*at, "\n");
	AUTO_TEXT text = NULL;
	const char *s;

	line_done(ret);
	if (!**at)
		return false;
	text = xstrndup(*at, len > 0 && (*at)[len - 1] == '\r' ? len - 1 : len);
	*at += len + ((*at)[len] == '\n');
	s = blanks(text);
	if (*s && *s != '#' && !read_variable(s, ret) && !read_entry(s, ret))
		ret->kind = LINE_OTHER;
	return true;
}

bool crontab_is(const char *text)
{
	AUTO_DONE(line) l = {};
	size_t entries = 0;

	if (text_starts(text, "#!"))
		return false;
	while (next_crontab_line(&text, &l)) {
		if (l.kind == LINE_OTHER)
			return false;
		entries += l.kind == LINE_ENTRY;
	}
	return entries > 0;
}

/*
 * /etc/crontab and files in /etc/cron.d have a user before the command. A file is taken for one of
 * these if the first word of every command is a user and one of them is root.
 */
static bool has_users(const char *text)
{
	AUTO_DONE(line) l = {};
	bool root = false;

	while (next_crontab_line(&text, &l)) {
		AUTO_TEXT user = NULL;

		if (l.kind != LINE_ENTRY)
			continue;
		user = xstrndup(l.command, strcspn(l.command, " \t"));
		if (!l.command[strlen(user)] || !getpwnam(user))
			return false;
		root |= strcmp(user, "root") == 0;
	}
	return root;
}

/* Settings made by the lines before an entry. */
struct setting {
	bool users;         /* entries have a user before the command */
	struct buf options; /* for 'jobctl add' */
	char *shell;        /* NULL: /bin/sh */
};

static void setting_done(struct setting *s)
{
	buf_done(&s->options);
	free(s->shell);
}

/*
 * TZ, CRON_TZ and SHELL become options, MAILTO and the like are ignored, other variables go to the
 * environment.
 */
static void put_variable(const struct line *l, struct setting *s)
{
	struct buf *options = &s->options;
	AUTO_TEXT pair = xprintf("%s=%s", l->name, l->value);

	if (text_starts(l->name, "MAIL"))
		return;
	if (strcmp(l->name, "SHELL") == 0) {
		free(s->shell);
		s->shell = xstrdup(l->value);
		return;
	}
	if (strcmp(l->name, "CRON_TZ") == 0 || strcmp(l->name, "TZ") == 0) {
		buf_str(options, "--tz ");
		shell_quote(options, l->value);
	} else {
		buf_str(options, "-e ");
		shell_quote(options, pair);
	}
	buf_char(options, ' ');
}

/*
 * The command up to the first '%' without a backslash. cron passes the text after it as standard
 * input.
 */
static char *shell_part(const char *command)
{
	AUTO_DONE(buf) out = {};

	for (; *command && *command != '%'; command++) {
		command += *command == '\\' && command[1] == '%';
		buf_char(&out, *command);
	}
	buf_str(&out, "");
	return buf_steal(&out);
}

static bool has_input(const char *command)
{
	for (; *command; command++) {
		if (*command == '%')
			return true;
		command += *command == '\\' && command[1] == '%';
	}
	return false;
}

static void put_add_command(const struct line *l, const struct setting *s, struct buf *out)
{
	const char *command = l->command;
	AUTO_TEXT words = NULL;

	buf_str(out, "jobctl add ");
	if (strcmp(l->schedule, "@reboot") == 0) {
		buf_str(out, "--on boot ");
	} else {
		buf_str(out, "--cron ");
		shell_quote(out, l->schedule);
		buf_char(out, ' ');
	}
	buf_str(out, s->options.data ? s->options.data : "");
	if (s->users) {
		buf_printf(out, "--as %.*s ", (int)strcspn(command, " \t"), command);
		command = blanks(command + strcspn(command, " \t"));
	}
	buf_str(out, "-- ");
	if (s->shell && strcmp(s->shell, "/bin/sh") != 0) {
		shell_quote(out, s->shell);
		buf_str(out, " -c ");
	}
	words = shell_part(command);
	shell_quote(out, words);
	buf_str(out, has_input(command) ? " # and --stdin FILE with the text after '%'\n" : "\n");
}

size_t crontab_commands(const char *text, size_t max, struct buf *out)
{
	AUTO_DONE(setting) s = {.users = has_users(text)};
	AUTO_DONE(line) l = {};
	size_t n = 0;

	while (next_crontab_line(&text, &l)) {
		if (l.kind == LINE_VARIABLE)
			put_variable(&l, &s);
		else if (l.kind == LINE_ENTRY && n++ < max)
			put_add_command(&l, &s, out);
	}
	return n;
}
