/* SPDX-License-Identifier: Apache-2.0 */
/* jobschedd --restore: replaces a SQLite store by a backup. */
#pragma once
#include <stdbool.h>

struct clock;
struct config;
struct paths;

struct restore_command {
	const struct clock *clock;
	const char *backup;
	const char *instance; /* NULL: the unnamed instance */
	bool from_now;
};

/*
 * Returns the exit status of the process; the reason has been logged. Root becomes the owner of the
 * store directory.
 */
int restore_run(const struct restore_command *c, const struct paths *p,
	const struct config *config);
