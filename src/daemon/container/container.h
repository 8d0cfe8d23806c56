/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one crontab in the foreground, without a store or spawner, as the only service of a container. */
#pragma once
#include "base/log.h"
#include "core/crontab/crontab.h"
#include <stdbool.h>

struct clock;

struct container_options {
	const struct clock *clock;
	const char *file;       /* the crontab */
	enum crontab_mode mode;
	const char *metrics;    /* address of GET /metrics; NULL: not served */
	bool json;              /* log lines are JSON objects */
	enum log_level level;   /* of messages; the output of commands is always written */
};

/* Runs until SIGTERM or SIGINT. Returns the exit status of the process; the reason has been logged. */
int container_run(const struct container_options *o);
