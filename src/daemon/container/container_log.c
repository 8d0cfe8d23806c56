/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the log of container mode. */
#include "daemon/container/container_log.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX 2048

static const char *level_word(enum log_level level)
{
	return level <= LOG_LEVEL_ERROR   ? "error" :
	       level == LOG_LEVEL_WARNING ? "warning" :
	       level == LOG_LEVEL_INFO    ? "info" :
					    "debug";
}

/* JSON is UTF-8; other bytes are written as \xNN. */
static void put_json_text(const char *text, size_t len, struct buf *out)
{
	AUTO_DONE(buf) safe = {};

	if (text_utf8_valid(text, len) && !memchr(text, '\0', len))
		buf_add(&safe, text, len);
	else
		text_escape(&safe, text, len);
	buf_str(&safe, "");
	buf_json_str(out, safe.data);
}

static void put_json_about(const struct container_about *a, struct buf *out)
{
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = { { "line", (int64_t)a->line }, { "column", (int64_t)a->column }, { "run", a->run }, { "pid", a->pid } };

	if (a->job) {
		buf_str(out, ",\"job\":");
		put_json_text(a->job, strlen(a->job), out);
	}
	for (size_t i = 0; i < ELEMENTS(numbers); i++)
		if (numbers[i].value)
			buf_printf(out, ",\"%s\":%" PRId64, numbers[i].name, numbers[i].value);
	if (a->stream)
		buf_printf(out, ",\"stream\":\"%s\"", a->stream);
}

static void put_json(const struct container_about *a, const char *time, const char *level, const char *text, size_t len,
	struct buf *out)
{
	buf_printf(out, "{\"time\":\"%s\",\"level\":\"%s\"", time, level);
	put_json_about(a, out);
	buf_str(out, a->stream ? ",\"output\":" : ",\"message\":");
	put_json_text(text, len, out);
	buf_str(out, "}\n");
}

static void put_text(const struct container_about *a, const char *time, const char *level, const char *text, size_t len,
	struct buf *out)
{
	buf_printf(out, "%s %s", time, a->stream ? a->stream : level);
	if (a->line)
		buf_printf(out, " line=%zu", a->line);
	if (a->column)
		buf_printf(out, " column=%zu", a->column);
	if (a->job)
		buf_printf(out, " job=%s", a->job);
	if (a->run)
		buf_printf(out, " run=%" PRId64, a->run);
	if (a->pid)
		buf_printf(out, " pid=%" PRId64, a->pid);
	buf_str(out, ": ");
	text_escape(out, text, len);
	buf_char(out, '\n');
}

static void write_line(const struct container_log *l, enum log_level level, const struct container_about *about,
	const char *text, size_t len)
{
	static const struct container_about nothing;
	AUTO_DONE(buf) out = {};
	char time[RFC3339_MAX];

	rfc3339_format(clock_now(l->clock), time);
	(l->json ? put_json : put_text)(about ? about : &nothing, time, level_word(level), text, len, &out);
	/* nobody can be told that standard output cannot be written */
	(void)io_write_all(STDOUT_FILENO, out.data, out.len);
}

void container_log_message(const struct container_log *l, enum log_level level, const struct container_about *about,
	const char *fmt, ...)
{
	char text[MESSAGE_MAX];
	va_list ap;
	int n;

	if (level > l->level)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	write_line(l, level, about, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

void container_log_output(const struct container_log *l, const struct container_about *about, const char *text, size_t len)
{
	write_line(l, LOG_LEVEL_INFO, about, text, len);
}
