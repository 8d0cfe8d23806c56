/* SPDX-License-Identifier: Apache-2.0 */
/* The log of container mode: lines of text or JSON on standard output. */
#pragma once
#include "base/log.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;

struct container_log {
	const struct clock *clock;
	bool json;
	enum log_level level;
};

/* The subject of a log line; members that are 0 are omitted. */
struct container_about {
	const char *job;
	size_t line;         /* of the crontab */
	size_t column;
	int64_t run;         /* counted from 1 since the start */
	int64_t pid;
	const char *stream;  /* of output: "stdout" or "stderr" */
};

void container_log_message(const struct container_log *l, enum log_level level, const struct container_about *about,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* One line of the output of a command, without its newline. */
void container_log_output(const struct container_log *l, const struct container_about *about, const char *text,
	size_t len);
