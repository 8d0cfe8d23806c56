/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a run's output to standard output. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

struct ctl;
struct err;

struct run_output {
	bool raw;        /* control characters are not escaped */
	int64_t bytes;   /* received so far */
	struct buf part; /* the first bytes of a character whose rest has not arrived */
	struct buf out;  /* ready to be written */
};
void run_output_done(struct run_output *o);
/* Appends to o->out, escaped unless raw. */
void run_output_put(struct run_output *o, const char *data, size_t len);
void run_output_end(struct run_output *o); /* appends an incomplete last character */

/* The part of the output to read. */
struct run_output_range {
	int64_t run;
	int64_t attempt;  /* 0: the newest */
	int64_t from;     /* offset in bytes */
	bool follow;      /* until the attempt ends */
};
/* Prints the daemon's note about the last answer to standard error. False: there is none. */
bool run_output_say_note(struct ctl *c);
/*
 * Copies to standard output. *ret_total: bytes that the command has written; *ret_dropped: those
 * that were not kept.
 */
bool run_output_copy(struct ctl *c, struct run_output *o, const struct run_output_range *p,
	int64_t *ret_total, int64_t *ret_dropped, struct err *e);
/* The same for an archived run; 'name' is its archived_as, attempt 0 the newest. */
bool run_output_copy_archived(struct ctl *c, struct run_output *o, const char *name, int64_t attempt, struct err *e);
/* Reads into memory, without following. */
bool run_output_fetch(struct ctl *c, const struct run_output_range *p, struct buf *ret,
	int64_t *ret_total, int64_t *ret_dropped, struct err *e);
