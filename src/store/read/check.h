/* SPDX-License-Identifier: Apache-2.0 */
/* The store as a whole: copied, checked, and put back from a copy. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct err;
struct store;
struct strv;

/*
 * A copy in a new file, as of one moment, while others go on. ERR_INVALID: the engine has tools of
 * its own for that.
 */
bool backup_create(struct store *s, const char *path, struct err *e);
/* Everything is looked at, so it may take long; one line for each thing that is wrong. */
bool check_store(struct store *s, struct strv *ret_problems, struct err *e);

struct restore_options {
	const char *backup, *where; /* the backup's name is for messages */
	int backup_fd;              /* open for reading, before privileges were dropped */
	bool from_now; /* slots before now are not made up for */
	usec_t now;
};
/*
 * With no daemon on the store: puts the backup in its place and keeps what was there beside it
 * (*ret_kept, caller frees; NULL: nothing was). What went on when the backup was made is lost: it
 * is not run again.
 */
bool restore_store(const struct restore_options *o, char **ret_kept, struct err *e);
/* Resets the rows of a restored store: its active runs are lost, no node is open, the counters are computed again. */
bool restore_reset(struct store *s, bool from_now, usec_t now, struct err *e);
