/* SPDX-License-Identifier: Apache-2.0 */
/* The content of the archive: JSON lines, in a local directory compressed. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>

struct attempt_list;
struct buf;
struct err;
struct job;
struct run;

/* The archived output of an attempt. */
struct archive_output {
	bool archived; /* an object of its own */
	char *end;     /* owned: the end that is in the store, as base64; NULL: none */
};
/* Appends one line with the run and its attempts. 'outputs' has an element per attempt; NULL: output is not archived. */
void archive_describe_run(const struct run *run, const struct attempt_list *attempts, const struct archive_output *outputs,
	struct buf *out);
bool archive_describe_job(const struct job *job, struct buf *out); /* false: its definition cannot be read */

/*
 * Appends the lines to DIR/NAME.jsonl.gz as one gzip member, and calls fsync(). A member that a
 * crash left incomplete is the last one of its file, because each pass uses a new file.
 */
bool archive_append(const char *dir, const char *name, const struct buf *lines, struct err *e);
char *archive_name(usec_t now); /* file name for a pass that begins now; caller frees */
