/* SPDX-License-Identifier: Apache-2.0 */
/* A run's output on its way to standard output. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

struct ctl;
struct err;

struct output {
	bool raw;        /* bytes as they are */
	int64_t bytes;   /* taken so far */
	struct buf part; /* the start of a character whose rest is still to come */
	struct buf out;
};
void output_done(struct output *o);
void run_output_put(struct output *o, const char *data, size_t len); /* into o->out, escaped unless raw */
void run_output_end(struct output *o);                               /* what was left half-finished */

/* Where to read. */
struct run_output_range {
	int64_t run;
	int64_t attempt;  /* 0: the newest */
	int64_t from;     /* offset */
	bool follow;
};
/* Says what the daemon notes about the last answer, if it does. */
bool run_output_say_note(struct ctl *c);
/* Streams to standard output. *ret_total: bytes the command has written, *ret_dropped: of these not kept. */
bool run_output_copy(struct ctl *c, struct output *o, const struct run_output_range *p, int64_t *ret_total,
	int64_t *ret_dropped, struct err *e);
/* The same into memory, without following. */
bool run_output_fetch(struct ctl *c, const struct run_output_range *p, struct buf *ret, int64_t *ret_total,
	int64_t *ret_dropped, struct err *e);
