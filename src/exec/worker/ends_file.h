/* SPDX-License-Identifier: Apache-2.0 */
/* The file 'ends' in the output directory: ends of workers that the daemon has not acknowledged. */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>

struct worker;
struct workers;

#define ENDS_FILE_MAX 65536 /* ends in the file; the spawner has no more workers at a time */

/* The frames of all ends, followed by those of their results. */
struct ends_frames {
	struct buf ends, results;
	size_t n; /* ends */
};
void ends_frames_done(struct ends_frames *f);
void ends_frames_add(struct ends_frames *to, const struct worker *w);
/* Moves the results behind the ends; the bytes of the file. */
const struct buf *ends_frames_join(struct ends_frames *f);
/* 0 or -errno; replaces the whole file; without frames removes it */
int ends_file_write(int dir, const struct buf *frames);
bool ends_file_exists(int dir);
void ends_file_save(struct workers *ws); /* writes all unacknowledged ends when the spawner stops */
/* adds the ends of an earlier spawner; the file stays until they are acknowledged */
void ends_file_load(struct workers *ws);
