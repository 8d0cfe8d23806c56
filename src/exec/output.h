/* SPDX-License-Identifier: Apache-2.0 */
/* The kept output of one attempt: its start and its end within a limit, readable while it grows. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* ---- writing, by the spawner; no file exists before the first byte ---- */
struct output_writer {
	int dir;              /* borrowed */
	int fd;               /* -1: nothing written yet */
	int64_t run, attempt;
	int64_t head, tail;   /* bytes kept of the start and of the end */
	int64_t total;        /* written by the command */
	int64_t failed;       /* of these, lost because the disk was full or the like */
};
void output_writer_init(struct output_writer *w, int dir, int64_t run, int64_t attempt, int64_t limit);
void output_writer_done(struct output_writer *w);
void output_write(struct output_writer *w, const void *data, size_t len); /* never fails the job */
int64_t output_dropped(const struct output_writer *w);

/* ---- reading, by the engine ---- */
struct output_state {
	int64_t total;       /* bytes the command has written so far */
	int64_t gap_from;    /* [gap_from, gap_to) of these is not kept; equal when all is */
	int64_t gap_to;
};
/* A descriptor, or -errno; -ENOENT: silent so far. */
int output_open(int dir, int64_t run, int64_t attempt);
bool output_stat(int fd, struct output_state *ret, struct err *e);
/*
 * Reads from 'offset' (an offset in what the command wrote), at most len bytes, never across the gap: an offset
 * inside it is moved to its end, *ret_offset says where the bytes are from. 0 bytes: nothing there yet.
 */
bool output_read(int fd, int64_t offset, void *buf, size_t len, int64_t *ret_offset, size_t *ret_len,
	struct err *e);
