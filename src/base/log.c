/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and escapes log lines. Its state is the only mutable global of the installed programs. */
#include "base/log.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

static struct {
	const char *program;
	enum log_level max;
	log_sink_fn *sink;
	const char *node;
	enum log_format format;
} the_log = {.program = "jobsched", .max = LOG_LEVEL_INFO};

void log_open(const char *program, enum log_level max, log_sink_fn *sink)
{
	the_log.program = program;
	the_log.sink = sink;
	log_set_level(max);
}

void log_set_level(enum log_level max)
{
	__atomic_store_n(&the_log.max, max, __ATOMIC_RELAXED);
}

bool log_format_parse(const char *text, enum log_format *ret)
{
	if (strcmp(text, "json") == 0)
		*ret = LOG_FORMAT_JSON;
	else if (strcmp(text, "text") == 0)
		*ret = LOG_FORMAT_TEXT;
	else
		return false;
	return true;
}

enum log_format log_get_format(void)
{
	return the_log.format;
}

void log_set_format(enum log_format f)
{
	the_log.format = f;
}

void log_set_node(const char *name)
{
	the_log.node = name;
}

/* One write, so that lines of several threads and processes do not mix. */
static void write_stderr(const struct log_about *about, const char *line)
{
	char out[LINE_MAX_BYTES * 4 + 256];
	int n = snprintf(out, sizeof(out), "%s: %s", the_log.program, line);

	if (about && about->job && n < (int)sizeof(out))
		n += snprintf(out + n, sizeof(out) - (size_t)n, " job=%lld", (long long)about->job);
	if (about && about->run && n < (int)sizeof(out))
		n += snprintf(out + n, sizeof(out) - (size_t)n, " run=%lld", (long long)about->run);
	if (n > (int)sizeof(out) - 2)
		n = (int)sizeof(out) - 2;
	out[n++] = '\n';
	(void)io_write_all(2, out, (size_t)n);
}

/* The text is escaped already: only quotes and backslashes are special in JSON. */
static void json_text(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ",\"%s\":\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_char(out, '\\');
		buf_char(out, *value);
	}
	buf_char(out, '"');
}

static void write_json(enum log_level level, const struct log_about *about, const char *line)
{
	static const char *const levels[] = {[LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning",
		[LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug"};
	char at[RFC3339_MAX];
	struct buf out = {};

	buf_printf(&out, "{\"time\":\"%s\",\"level\":\"%s\"", rfc3339_format(clock_now(&clock_system), at), levels[level]);
	json_text(&out, "program", the_log.program);
	json_text(&out, "message", line);
	if (about->job)
		buf_printf(&out, ",\"job\":%lld", (long long)about->job);
	if (about->run)
		buf_printf(&out, ",\"run\":%lld", (long long)about->run);
	if (about->node)
		json_text(&out, "node", about->node);
	if (about->trace && about->trace[0])
		json_text(&out, "trace_id", about->trace);
	buf_str(&out, "}\n");
	(void)io_write_all(2, out.data, out.len);
	buf_done(&out);
}

bool log_wants(enum log_level level)
{
	return level <= __atomic_load_n(&the_log.max, __ATOMIC_RELAXED);
}

void log_line(enum log_level level, const struct log_about *about, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	struct log_about full = about ? *about : (struct log_about){};
	struct buf shown = {};
	va_list ap;

	if (!log_wants(level))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	text_escape(&shown, line, strlen(line));
	full.node = the_log.node;
	if (the_log.sink)
		the_log.sink(level, &full, shown.data ? shown.data : "");
	else if (the_log.format == LOG_FORMAT_JSON)
		write_json(level, &full, shown.data ? shown.data : "");
	else
		write_stderr(about, shown.data ? shown.data : "");
	buf_done(&shown);
}

enum log_level log_repeat(struct log_repeat *r, usec_t now)
{
	if (r->next && now < r->next)
		return LOG_LEVEL_DEBUG;
	r->next = now + USEC_MIN;
	return LOG_LEVEL_WARNING;
}
