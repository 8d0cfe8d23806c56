/* SPDX-License-Identifier: Apache-2.0 */
/* The file 'ends' in the output directory: ends of workers that the daemon has not acknowledged. */
#pragma once
#include <stdbool.h>

struct buf;
struct worker;
struct workers;

#define ENDS_FILE_MAX 65536 /* ends in the file; the spawner has no more workers at a time */

void ends_file_add(struct buf *to, const struct worker *w);
/* 0 or -errno; replaces the whole file; without frames removes it */
int ends_file_write(int dir, const struct buf *frames);
bool ends_file_exists(int dir);
void ends_file_save(struct workers *ws); /* writes all unacknowledged ends when the spawner stops */
/* adds the ends of an earlier spawner; the file stays until they are acknowledged */
void ends_file_load(struct workers *ws);
