/* SPDX-License-Identifier: Apache-2.0 */
/* Output file of an attempt: limited in size, readable while it grows. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/*
 * Format of the file RUN.ATTEMPT: a header of OUTPUT_FILE_HEAD bytes, the first 'head' bytes of the
 * output, then a ring buffer for the last 'tail' bytes. Byte o of the output is at OUTPUT_FILE_HEAD
 * + o or, if o >= head, in the ring at (o - head) modulo tail. The range [gap_from, gap_to) is not
 * kept. The writer advances gap_to before it overwrites bytes of the ring, and total after it has
 * written new bytes. A reader reads the header again after the data: bytes before the new gap_to
 * may have been overwritten and are discarded.
 */
#define OUTPUT_FILE_HEAD 64
#define OUTPUT_FILE_NAME_MAX 48
char *output_file_name(int64_t run, int64_t attempt, char out[OUTPUT_FILE_NAME_MAX]);

struct output_file_head {
	char magic[8];
	int64_t head, tail;  /* bytes kept from the start and from the end */
	int64_t total;       /* bytes that the command has written */
	int64_t gap_from, gap_to;
	uint64_t reserved;
	/* Checksum of the other members; detects a header that was read during a write. */
	uint64_t sum;
};
uint64_t output_file_head_sum(const struct output_file_head *h);

/* ---- writing, by the spawner; the file is created with the first byte ---- */
struct output_file_writer {
	int dir;             /* borrowed */
	int fd;              /* owned; -1: nothing written yet */
	int64_t run, attempt;
	struct output_file_head h;
	int64_t told;        /* the gap_to in the file */
	int failed;          /* errno of the first failed write; 0: none failed */
};
void output_file_writer_init(struct output_file_writer *w, int dir, int64_t run, int64_t attempt,
	int64_t limit);
/* After a re-exec: 'h' and 'fd' are already set. */
void output_file_writer_resume(struct output_file_writer *w, int dir, int64_t run, int64_t attempt);
void output_file_writer_done(struct output_file_writer *w);
/* A failed write counts as dropped bytes. */
void output_file_write(struct output_file_writer *w, const void *data, size_t len);
int64_t output_file_total(const struct output_file_writer *w);
/* Reads up to 'max' of the last bytes, not across the end of the head. Returns their number; 0 after a failed write. */
size_t output_file_end(const struct output_file_writer *w, char *out, size_t max);
/* Bytes not kept: over the limit, or a write failed. */
int64_t output_file_dropped(const struct output_file_writer *w);

/* A missing file is not an error. */
bool output_file_remove(int dir, int64_t run, int64_t attempt, struct err *e);

/* ---- reading, by the daemon ---- */
struct output_file_extent {
	int64_t total;       /* bytes the command has written so far */
	int64_t gap_from;    /* [gap_from, gap_to) is not kept; equal if nothing is missing */
	int64_t gap_to;
};
/* Returns a descriptor, or -errno; -ENOENT: no output so far. */
int output_file_open(int dir, int64_t run, int64_t attempt);
bool output_file_stat(int fd, struct output_file_extent *ret, struct err *e);
/*
 * Reads at most len bytes from 'offset' in the output, never across the gap. An offset inside the
 * gap is moved to its end; *ret_offset is the offset of the first byte read. *ret_len 0: nothing
 * there yet.
 */
bool output_file_read(int fd, int64_t offset, void *buf, size_t len, int64_t *ret_offset,
	size_t *ret_len, struct err *e);

/* The kept bytes of a file that is not written any more, as parts of the file in the order of the output. */
#define OUTPUT_FILE_SEGMENTS 4
struct output_file_segment {
	int64_t at, length; /* in the file */
};
bool output_file_segments(int fd, struct output_file_segment ret[OUTPUT_FILE_SEGMENTS], size_t *ret_n, struct err *e);
