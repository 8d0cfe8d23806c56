/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: its parts started in order, woken together, and ended in reverse. */
#pragma once
#include "base/auto.h"
#include "base/paths.h"
#include "daemon/loop/config.h"
#include <stdbool.h>

struct engine;
struct err;

struct engine_options {
	const struct clock *clock;        /* of this host */
	bool takeover;            /* the store becomes this machine's */
	bool user_mode;
	const char *instance;     /* borrowed; NULL: the one without a name */
	const struct paths *paths;        /* borrowed */
	struct config *config;            /* borrowed; changed by a reload */
	const char *node_name;            /* borrowed */
	/* Reads the configuration again into an initialised one. */
	bool (*read_config)(struct config *fresh, void *arg, struct err *e);
	void *arg;
};

/* The store as configured; a file as an absolute path without symbolic links. Caller frees. */
char *engine_store_where(const struct config *c, const struct paths *p);

/* Runs until a signal ends it. Returns the exit status of the process; the reason has been logged. */
int engine_run(const struct engine_options *o);
