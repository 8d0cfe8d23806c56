/* SPDX-License-Identifier: Apache-2.0 */
/* The kept output of one attempt: its start and its end within a limit, readable while it grows. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/*
 * The file RUN.ATTEMPT: a head of OUTPUT_FILE_HEAD bytes, room for the first 'head' bytes, then a ring for 'tail' more.
 * Byte o of what the command wrote lies at OUTPUT_FILE_HEAD + o, or in the ring at (o - head) modulo tail; the part
 * [gap_from, gap_to) is not kept. Before the ring is written over, gap_to is moved past what goes; after the bytes are
 * there, total is. So a reader that looks at the head again after reading knows which bytes it may believe.
 */
#define OUTPUT_FILE_HEAD 64
#define OUTPUT_FILE_NAME_MAX 48
char *output_file_name(int64_t run, int64_t attempt, char out[OUTPUT_FILE_NAME_MAX]);

struct output_file_head {
	char magic[8];
	int64_t head, tail;  /* bytes kept of the start and of the end */
	int64_t total;       /* written by the command */
	int64_t gap_from, gap_to;
	uint64_t reserved;
	uint64_t sum;        /* of the rest: a head read while it was written does not match */
};
uint64_t output_file_head_sum(const struct output_file_head *h);

/* ---- writing, by the spawner; no file exists before the first byte ---- */
struct output_file_writer {
	int dir;             /* borrowed */
	int fd;              /* -1: nothing written yet */
	int64_t run, attempt;
	struct output_file_head h;
	int64_t told;        /* the gap_to that readers can see */
	int failed;          /* errno of the first bytes that could not be written; 0: all could */
};
void output_file_writer_init(struct output_file_writer *w, int dir, int64_t run, int64_t attempt, int64_t limit);
void output_file_writer_resume(struct output_file_writer *w, int dir, int64_t run, int64_t attempt); /* numbers and fd are there */
void output_file_writer_done(struct output_file_writer *w);
void output_file_write(struct output_file_writer *w, const void *data, size_t len); /* never fails the job */
int64_t output_file_total(const struct output_file_writer *w);
int64_t output_dropped(const struct output_file_writer *w); /* not kept: over the limit, or the disk was full */

bool output_file_remove(int dir, int64_t run, int64_t attempt, struct err *e); /* none there is fine */

/* ---- reading, by the engine ---- */
struct output_file_extent {
	int64_t total;       /* bytes the command has written so far */
	int64_t gap_from;    /* [gap_from, gap_to) of these is not kept; equal when all is */
	int64_t gap_to;
};
/* A descriptor, or -errno; -ENOENT: silent so far. */
int output_file_open(int dir, int64_t run, int64_t attempt);
bool output_file_stat(int fd, struct output_file_extent *ret, struct err *e);
/*
 * Reads from 'offset' (an offset in what the command wrote), at most len bytes, never across the gap: an offset
 * inside it is moved to its end, *ret_offset says where the bytes are from. 0 bytes: nothing there yet.
 */
bool output_file_read(int fd, int64_t offset, void *buf, size_t len, int64_t *ret_offset, size_t *ret_len,
	struct err *e);
