/* SPDX-License-Identifier: Apache-2.0 */
/* Describes pauses; parses the end time of one. */
#pragma once
#include "base/clock.h"
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct ctl;
struct err;

/* Parses --until: a time as for 'jobctl add --at', or a duration from now. */
bool pause_until_read(const struct ctl *c, const char *text, usec_t *ret, struct err *e);

/* "paused by ann since … until …: reason" */
void pause_describe(const struct ctl *c, const json_t *pause, struct buf *out);
/* "everything", "queue 'slow'", "everything of uid 1000" */
void pause_describe_scope(const json_t *pause, struct buf *out);

/*
 * Prints a line to standard error for each freeze and each pause of a queue, tag, owner or of
 * everything. A daemon of a version without pauses is not an error.
 */
bool pauses_say(struct ctl *c, struct err *e);
