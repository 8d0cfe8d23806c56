/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the script of an at job: umask, environment, directory and commands. */
#include "at/at_script.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdbool.h>
#include <string.h>

#define LETTERS_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/*
 * Variables of the terminal and the shell. As in Debian's at, a name that one of them begins with
 * is left out, too: SHELL, for example.
 */
static bool name_excluded(const char *name, size_t len)
{
	static const char *const excluded[] = {"TERM", "DISPLAY", "_", "SHELLOPTS", "BASH_VERSINFO",
		"EUID", "GROUPS", "PPID", "UID"};

	for (size_t i = 0; i < ELEMENTS(excluded); i++)
		if (strncmp(name, excluded[i], len) == 0)
			return true;
	return false;
}

/* A newline cannot be escaped by a backslash. */
static void put_quoted(struct buf *out, const char *value, const char *plain)
{
	for (; *value; value++) {
		if (*value == '\n') {
			buf_str(out, "\"\n\"");
			continue;
		}
		if (!strchr(plain, *value))
			buf_char(out, '\\');
		buf_char(out, *value);
	}
}

static void put_variable(struct buf *out, const char *pair)
{
	const char *eq = strchr(pair, '=');
	size_t len = eq ? (size_t)(eq - pair) : 0;

	if (!eq || !text_is_name(pair, len) || name_excluded(pair, len))
		return;
	buf_add(out, pair, len + 1);
	put_quoted(out, eq + 1, LETTERS_DIGITS "%/{[]=}@+#,.:-_");
	buf_printf(out, "; export %.*s\n", (int)len, pair);
}

void at_script_write(const struct at_script *s, struct buf *out)
{
	buf_printf(out, "#!/bin/sh\n# atrun uid=%u gid=%u\n# mail %s %d\numask %lo\n",
		(unsigned)s->uid, (unsigned)s->gid, s->mail_to, s->mail, (unsigned long)s->umask);
	for (char *const *e = s->env; *e; e++)
		put_variable(out, *e);
	buf_str(out, "cd ");
	put_quoted(out, s->cwd, LETTERS_DIGITS "/");
	buf_str(out, " || {\n\t echo 'Execution directory inaccessible' >&2\n\t exit 1\n}\n");
	buf_add(out, s->commands, s->len);
	buf_char(out, '\n');
}
