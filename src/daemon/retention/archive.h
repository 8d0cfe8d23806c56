/* SPDX-License-Identifier: Apache-2.0 */
/* History on its way out: JSON lines, compressed, on disk before anything is deleted. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct buf;
struct err;
struct prune_candidates;
struct store;

/* Appends one line for each run (with its attempts) and job of the list. */
bool archive_describe(struct store *s, const struct prune_candidates *list, struct buf *ret, struct err *e);

/*
 * Adds the lines to DIR/NAME.jsonl.gz as one more member; durable when it returns. What a crash left half is at the end
 * of a file, because each pass begins a file of its own.
 */
bool archive_append(const char *dir, const char *name, const struct buf *lines, struct err *e);
char *archive_name(usec_t now); /* of a pass that begins now; caller frees */
