/* SPDX-License-Identifier: Apache-2.0 */
/* Consistency check, online backup and restore of the store. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct store;
struct strv;

/*
 * Copies a consistent snapshot into a new file while the store is in use. ERR_INVALID: the database
 * server has its own tools for backups.
 */
bool backup_create(struct store *s, const char *path, struct err *e);
/* Reads the whole store, which may take long; one line per problem. */
bool check_store(struct store *s, struct strv *ret_problems, struct err *e);

/* Names of settings of the database with which a crash of its machine can lose committed work. */
bool check_unsafe_settings(struct store *s, struct strv *ret, struct err *e);
/*
 * The way in which settings of the database server can lose acknowledged work; *ret is a constant
 * text, or NULL if there is none.
 */
bool check_durability(struct store *s, const char **ret, struct err *e);

struct restore_options {
	const char *backup, *where; /* 'backup' is only used in messages */
	int backup_fd;              /* open for reading, before privileges were dropped */
	bool from_now; /* slots before now are not caught up */
	usec_t now;
};
/*
 * Replaces the store with the backup and keeps the old store beside it (*ret_kept, caller frees;
 * NULL: there was none). No daemon may use the store. Runs that were active when the backup was
 * made are recorded as lost.
 */
bool restore_store(const struct restore_options *o, char **ret_kept, struct err *e);
/*
 * Resets the rows of a restored store: its active runs are lost, no node is open, the counters are
 * computed again.
 */
bool restore_reset(struct store *s, bool from_now, usec_t now, struct err *e);
