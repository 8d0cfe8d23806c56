/* SPDX-License-Identifier: Apache-2.0 */
/* Archives expired history as compressed JSON lines before it is deleted. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct buf;
struct err;
struct prune_candidates;
struct store;

/* Appends one line for each run (with its attempts) and job of the list. */
bool archive_describe(struct store *s, const struct prune_candidates *list, struct buf *ret,
	struct err *e);

/*
 * Appends the lines to DIR/NAME.jsonl.gz as one gzip member, and calls fsync(). A member that a
 * crash left incomplete is the last one of its file, because each pass uses a new file.
 */
bool archive_append(const char *dir, const char *name, const struct buf *lines, struct err *e);
char *archive_name(usec_t now); /* file name for a pass that begins now; caller frees */
