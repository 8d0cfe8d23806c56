/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses in the words people read, and the moment until which one lasts. */
#pragma once
#include "base/clock.h"
#include <jansson.h>
#include <stdbool.h>

struct buf;
struct ctl;
struct err;

/* --until: what --at takes, or a duration from now. */
bool pause_until_read(const struct ctl *c, const char *text, usec_t *ret, struct err *e);

/* "paused by ann since … until …: reason", of a pause object */
void pause_describe(const struct ctl *c, const json_t *pause, struct buf *out);
/* "everything", "queue 'slow'", "the jobs of uid 1000" … */
void pause_describe_scope(const json_t *pause, struct buf *out);

/* What is paused or frozen beside single jobs, one line each on standard error; a daemon that does not know is quiet. */
bool pauses_say(struct ctl *c, struct err *e);
