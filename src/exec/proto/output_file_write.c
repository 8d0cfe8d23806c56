/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a command's output to a file of bounded size. */
#include "base/err.h"
#include "exec/proto/output_file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *output_file_name(int64_t run, int64_t attempt, char out[OUTPUT_FILE_NAME_MAX])
{
	snprintf(out, OUTPUT_FILE_NAME_MAX, "%" PRId64 ".%" PRId64, run, attempt);
	return out;
}

uint64_t output_file_head_sum(const struct output_file_head *h)
{
	const uint64_t words[] = {(uint64_t)h->head, (uint64_t)h->tail, (uint64_t)h->total,
		(uint64_t)h->gap_from, (uint64_t)h->gap_to};
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sum = ((sum ^ words[i]) * UINT64_C(0x100000001b3)) ^ (sum >> 29);
	return sum;
}

void output_file_writer_resume(struct output_file_writer *w, int dir, int64_t run, int64_t attempt)
{
	w->dir = dir;
	w->run = run;
	w->attempt = attempt;
	memcpy(w->h.magic, "jobout1\n", sizeof(w->h.magic));
}

void output_file_writer_init(struct output_file_writer *w, int dir, int64_t run, int64_t attempt,
	int64_t limit)
{
	*w = (struct output_file_writer){.fd = -1};
	output_file_writer_resume(w, dir, run, attempt);
	w->h.head = limit / 10;
	w->h.tail = limit - w->h.head;
	w->h.gap_from = w->h.gap_to = w->told = w->h.head;
}

void output_file_writer_done(struct output_file_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

int64_t output_file_total(const struct output_file_writer *w)
{
	return w->h.total;
}

int64_t output_file_dropped(const struct output_file_writer *w)
{
	return w->h.gap_to - w->h.gap_from;
}

size_t output_file_end(const struct output_file_writer *w, char *out, size_t max)
{
	int64_t first = w->h.total > w->h.head ? w->h.gap_to : 0, from = w->h.total - (int64_t)max, o, at;
	size_t n, before_wrap;

	from = from < first ? first : from;
	if (w->fd < 0 || w->failed || from >= w->h.total)
		return 0;
	n = before_wrap = (size_t)(w->h.total - from);
	o = w->h.total > w->h.head ? (from - w->h.head) % w->h.tail : from;
	at = OUTPUT_FILE_HEAD + (w->h.total > w->h.head ? w->h.head : 0);
	if (w->h.total > w->h.head && (int64_t)n > w->h.tail - o)
		before_wrap = (size_t)(w->h.tail - o);
	if (pread(w->fd, out, before_wrap, at + o) != (ssize_t)before_wrap ||
		pread(w->fd, out + before_wrap, n - before_wrap, at) != (ssize_t)(n - before_wrap))
		return 0;
	return n;
}

bool output_file_remove(int dir, int64_t run, int64_t attempt, struct err *e)
{
	char name[OUTPUT_FILE_NAME_MAX];

	if (unlinkat(dir, output_file_name(run, attempt, name), 0) < 0 && errno != ENOENT)
		return err_errno(e, errno, "could not remove the output '%s'", name);
	return true;
}

static int output_file_create(int dir, const char *name)
{
	return openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
}

static bool output_pwrite(int fd, const void *data, size_t len, int64_t at)
{
	const char *p = data;

	while (len) {
		ssize_t n = pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return false;
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static bool output_head_write(struct output_file_writer *w)
{
	w->h.sum = output_file_head_sum(&w->h);
	if (!output_pwrite(w->fd, &w->h, sizeof(w->h), 0))
		return false;
	w->told = w->h.gap_to;
	return true;
}

/*
 * Creates the file with the first byte. An existing file of this name is left over from another
 * store; it is removed.
 */
static bool output_file_ensure_open(struct output_file_writer *w)
{
	char name[OUTPUT_FILE_NAME_MAX];

	if (w->fd >= 0)
		return true;
	w->fd = output_file_create(w->dir, output_file_name(w->run, w->attempt, name));
	if (w->fd < 0 && errno == EEXIST && unlinkat(w->dir, name, 0) == 0)
		w->fd = output_file_create(w->dir, name);
	return w->fd >= 0;
}

/*
 * Writes bytes at offset 'total', which are all in the head or all in the ring, and fit into the
 * ring.
 */
static bool output_chunk_write(struct output_file_writer *w, const char *data, size_t len)
{
	int64_t o = w->h.total - w->h.head;
	size_t first;

	if (o < 0)
		return output_pwrite(w->fd, data, len, OUTPUT_FILE_HEAD + w->h.total);
	o %= w->h.tail;
	first = (int64_t)len < w->h.tail - o ? len : (size_t)(w->h.tail - o);
	return output_pwrite(w->fd, data, first, OUTPUT_FILE_HEAD + w->h.head + o) &&
	       output_pwrite(w->fd, data + first, len - first, OUTPUT_FILE_HEAD + w->h.head);
}

/* Moves the end of the gap to 'to': the bytes before are no longer kept. */
static void gap_extend(struct output_file_writer *w, int64_t to)
{
	if (w->h.gap_to == w->h.gap_from && w->h.total < w->h.head)
		/* A write failed before the head was full. */
		w->h.gap_from = w->h.gap_to = w->h.total;
	if (w->h.gap_to < to)
		w->h.gap_to = to;
}

static void output_chunk_append(struct output_file_writer *w, const char *data, size_t len)
{
	int64_t end = w->h.total + (int64_t)len;
	bool ok = output_file_ensure_open(w);

	if (end - w->h.tail > w->h.gap_to)
		gap_extend(w, end - w->h.tail);
	if (ok && w->h.gap_to > w->told)
		/* Otherwise readers would take the new bytes for the old ones. */
		ok = output_head_write(w);
	ok = ok && output_chunk_write(w, data, len);
	if (!ok && !w->failed)
		w->failed = errno;
	if (!ok)
		gap_extend(w, end);
	w->h.total = end;
	if (w->fd >= 0)
		(void)output_head_write(w); /* a failure is repaired by the next call */
}

void output_file_write(struct output_file_writer *w, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		int64_t head_room = w->h.head - w->h.total;
		size_t n = head_room > 0 && (int64_t)len > head_room ? (size_t)head_room : len;

		/* Larger than the ring: only its end is kept. */
		if (head_room <= 0 && (int64_t)n > w->h.tail) {
			size_t skip = n - (size_t)w->h.tail;

			gap_extend(w, w->h.total + (int64_t)skip);
			w->h.total += (int64_t)skip;
			p += skip;
			len -= skip;
			continue;
		}
		output_chunk_append(w, p, n);
		p += n;
		len -= n;
	}
}
