/* SPDX-License-Identifier: Apache-2.0 */
/* jobschedd --restore: puts a backup in the place of a SQLite store. */
#pragma once
#include <stdbool.h>

struct clock;
struct config;
struct paths;

struct restore_command {
	const struct clock *clock;
	const char *backup;
	const char *instance; /* NULL: the one without a name */
	bool from_now;
};

/* Returns the exit status of the process; the reason has been logged. As root it becomes the owner of the store's directory. */
int restore_run(const struct restore_command *c, const struct paths *p, const struct config *config);
