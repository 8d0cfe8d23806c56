/* SPDX-License-Identifier: Apache-2.0 */
/* The log. Lines go to a sink (the journal, with fields) or to standard error. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* Fields of a log line; members that are 0 are omitted. */
struct log_about {
	int64_t job, run;
	const char *node;  /* filled in from log_set_node() */
	const char *trace; /* id of the trace of the run; NULL or empty: none */
};

typedef void log_sink_fn(enum log_level level, const struct log_about *about, const char *line);

/* Called once at start. A NULL sink writes "program: message" lines to stderr. */
void log_open(const char *program, enum log_level max, log_sink_fn *sink);
void log_set_level(enum log_level max);
bool log_wants(enum log_level level); /* lines of this level are written */
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
bool log_format_parse(const char *text, enum log_format *ret); /* "text" or "json" */
enum log_format log_get_format(void);
void log_set_format(enum log_format f); /* of lines on standard error; JSON: one object per line */
void log_set_node(const char *name /* borrowed until exit */);

void log_line(enum log_level level, const struct log_about *about, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* control characters are escaped, length is capped */

/*
 * The level of a repeated message: a warning for the first and then once a minute, debug for the
 * others.
 */
struct log_repeat {
	usec_t next; /* time of the next warning; 0: at once */
};
enum log_level log_repeat(struct log_repeat *r, usec_t now);

#define log_error(...) log_line(LOG_LEVEL_ERROR, NULL, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, NULL, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, NULL, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, NULL, __VA_ARGS__)
