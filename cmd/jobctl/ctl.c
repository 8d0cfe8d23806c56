/* SPDX-License-Identifier: Apache-2.0 */
/* Prints messages to standard error; asks questions there. */
#include "jobctl/ctl.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "wire/http_client.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void ctl_done(struct ctl *c)
{
	http_client_free(c->client);
	free(c->socket);
	c->client = NULL;
	c->socket = NULL;
}

static void say_line(const char *prefix, const char *text)
{
	AUTO_DONE(buf) line = {};

	buf_str(&line, prefix);
	text_escape(&line, text, strlen(text));
	buf_char(&line, '\n');
	(void)io_write_all(STDERR_FILENO, line.data, line.len);
}

void ctl_say(const char *fmt, ...)
{
	AUTO_TEXT text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvprintf(fmt, ap);
	va_end(ap);
	say_line("", text);
}

int ctl_fail(const struct err *e)
{
	say_line("jobctl: ", e->msg);
	return err_kind_info(e->kind)->exit_code;
}

bool ctl_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool ctl_ask(const char *question)
{
	char line[16];

	fprintf(stderr, "%s [y/N] ", question);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}
