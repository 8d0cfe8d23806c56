/* SPDX-License-Identifier: Apache-2.0 */
/* Entry point of the engine, which connects the parts of the daemon. */
#pragma once
#include "base/auto.h"
#include "base/file/paths.h"
#include "daemon/loop/config.h"
#include <stdbool.h>

struct engine;
struct err;

struct engine_options {
	const struct clock *clock;        /* of this host */
	bool takeover;            /* accept a store of another machine */
	bool user_mode;
	const char *instance;     /* borrowed; NULL: the unnamed instance */
	const struct paths *paths;        /* borrowed */
	struct config *config;            /* borrowed; a reload changes it */
	const char *node_name;            /* borrowed */
	/* Reads the configuration again, into an initialised struct. */
	bool (*read_config)(struct config *fresh, void *arg, struct err *e);
	void *arg;
};

/* The configured store; a file as an absolute path without symbolic links. Caller frees. */
char *engine_store_where(const struct config *c, const struct paths *p);

/* Runs until a signal. Returns the exit status of the process; the reason has been logged. */
int engine_run(const struct engine_options *o);
