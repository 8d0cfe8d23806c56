/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an output file while the spawner may be writing it. */
#include "base/err.h"
#include "exec/proto/output_file.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_file_open(int dir, int64_t run, int64_t attempt)
{
	char name[OUTPUT_FILE_NAME_MAX];
	int fd = openat(dir, output_file_name(run, attempt, name),
		O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -errno;
	/* 0 links: removed meanwhile. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink <= 1)
		return fd;
	close(fd);
	return -EPERM; /* not created by the spawner */
}

static bool output_pread(int fd, void *to, size_t len, int64_t at, size_t *ret, struct err *e)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, (char *)to + got, len - got, at + (int64_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, errno, "could not read the output file");
		if (n == 0)
			break;
		got += (size_t)n;
	}
	*ret = got;
	return true;
}

static bool output_head_valid(const struct output_file_head *h)
{
	return memcmp(h->magic, "jobout1\n", sizeof(h->magic)) == 0 && h->sum == output_file_head_sum(h) &&
	       h->head >= 0 && h->tail >= 0 && h->gap_from >= 0 && h->gap_from <= h->head &&
	       h->gap_to >= h->gap_from && h->total >= 0 &&
	       (h->gap_to <= h->total || h->gap_to == h->gap_from);
}

/* A file without a header has no output yet: the result is an empty header. */
static bool output_head_read(int fd, struct output_file_head *h, struct err *e)
{
	static const char nothing[sizeof(h->magic)];

	for (int tries = 0; tries < 1000; tries++) {
		size_t n;

		if (!output_pread(fd, h, sizeof(*h), 0, &n, e))
			return false;
		if (n == sizeof(*h) && output_head_valid(h))
			return true;
		if (n == 0 || memcmp(h->magic, nothing, sizeof(nothing)) == 0) {
			*h = (struct output_file_head){};
			return true;
		}
		sched_yield(); /* the header is being written */
	}
	return err_set(e, ERR_INTERNAL,
		"the output file is damaged: the checksum of its header is wrong");
}

bool output_file_stat(int fd, struct output_file_extent *ret, struct err *e)
{
	struct output_file_head h;

	if (!output_head_read(fd, &h, e))
		return false;
	*ret = (struct output_file_extent){.total = h.total, .gap_from = h.gap_from, .gap_to = h.gap_to};
	if (h.gap_to == h.gap_from)
		ret->gap_from = ret->gap_to = h.total < h.head ? h.total : h.head;
	return true;
}

/*
 * The number of bytes from 'offset' on that are contiguous in the file; *ret_at is their position
 * in the file.
 */
static size_t contiguous_bytes(const struct output_file_head *h, int64_t offset, size_t len,
	int64_t *ret_at)
{
	int64_t end = h->total, room;

	if (offset < h->gap_from && h->gap_to > h->gap_from)
		end = h->gap_from;
	if (offset < h->head) {
		*ret_at = OUTPUT_FILE_HEAD + offset;
		room = h->head - offset;
	} else {
		int64_t o = (offset - h->head) % h->tail;

		*ret_at = OUTPUT_FILE_HEAD + h->head + o;
		room = h->tail - o;
	}
	if (room > end - offset)
		room = end - offset;
	return room < 0 ? 0 : (uint64_t)room < len ? (size_t)room : len;
}

static int64_t offset_past_gap(const struct output_file_head *h, int64_t offset)
{
	return offset >= h->gap_from && offset < h->gap_to ? h->gap_to : offset;
}

bool output_file_read(int fd, int64_t offset, void *buf, size_t len, int64_t *ret_offset,
	size_t *ret_len, struct err *e)
{
	struct output_file_head h;

	if (!output_head_read(fd, &h, e))
		return false;
	if (offset < 0)
		offset = 0;
	for (int tries = 0;; tries++) {
		int64_t at, valid_from;
		size_t want, got = 0;

		offset = offset_past_gap(&h, offset);
		want = offset < h.total && h.head + h.tail > 0 ? contiguous_bytes(&h, offset, len, &at) : 0;
		if (want && !output_pread(fd, buf, want, at, &got, e))
			return false;
		if (got < want)
			return err_set(e, ERR_INTERNAL,
				"the output file is damaged: it is shorter than its header says");
		if (want && !output_head_read(fd, &h, e))
			return false;
		/* Earlier bytes may have been overwritten during the read. */
		valid_from = offset_past_gap(&h, offset);
		if (valid_from >= offset + (int64_t)got && got) {
			offset = valid_from;
			/* The writer is faster than this reader: this call returns no bytes. */
			if (tries < 100)
				continue;
			got = 0;
		}
		memmove(buf, (char *)buf + (valid_from - offset),
			got - (size_t)(valid_from - offset));
		*ret_offset = valid_from;
		*ret_len = got - (size_t)(valid_from - offset);
		return true;
	}
}

bool output_file_segments(int fd, struct output_file_segment ret[OUTPUT_FILE_SEGMENTS], size_t *ret_n, struct err *e)
{
	struct output_file_head h;
	int64_t offset = 0;
	size_t n = 0;

	if (!output_head_read(fd, &h, e))
		return false;
	for (;;) {
		size_t len;

		offset = offset_past_gap(&h, offset);
		if (offset >= h.total || h.head + h.tail == 0)
			break;
		if (n == OUTPUT_FILE_SEGMENTS)
			return err_set(e, ERR_INTERNAL, "the output file has more parts than it can have");
		len = contiguous_bytes(&h, offset, SIZE_MAX >> 1, &ret[n].at);
		if (len == 0)
			break;
		ret[n++].length = (int64_t)len;
		offset += (int64_t)len;
	}
	*ret_n = n;
	return true;
}
