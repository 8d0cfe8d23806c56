/* SPDX-License-Identifier: Apache-2.0 */
/* Stores unacknowledged ends in a file of frames, which is always replaced as a whole. */
#include "exec/worker/ends_file.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/proto/frame.h"
#include "exec/worker/ends_spool.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_results.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "ends"
#define NAME_NEW "ends.new"
#define FRAME_SIZE (FRAME_HEAD + sizeof(struct frame_ended))
#define RESULT_SIZE (FRAME_HEAD + sizeof(struct frame_result))

void ends_frames_done(struct ends_frames *f)
{
	buf_done(&f->ends);
	buf_done(&f->results);
}

/* An older spawner reads the ends and stops at the first result. */
void ends_frames_add(struct ends_frames *to, const struct worker *w)
{
	struct frame f;
	size_t at = 0;

	if (to->n >= ENDS_FILE_MAX)
		return;
	to->n++;
	frame_init(&f, FRAME_ENDED, FRAME_VERSION_STORED);
	worker_end_frame(&f, w);
	buf_add(&to->ends, &f, FRAME_SIZE);
	frame_init(&f, FRAME_RESULT, FRAME_VERSION_STORED_RESULT);
	while (worker_results_frame(&f, w, &at))
		buf_add(&to->results, &f, RESULT_SIZE);
}

const struct buf *ends_frames_join(struct ends_frames *f)
{
	if (f->results.len)
		buf_add(&f->ends, f->results.data, f->results.len);
	f->results.len = 0;
	return &f->ends;
}

/*
 * The new file is always a new inode: a killed writer may still be inside a write() to the previous
 * one.
 */
static int ends_file_replace(int dir, const struct buf *frames)
{
	AUTO_FD fd = -1;
	int r;

	unlinkat(dir, NAME_NEW, 0);
	fd = openat(dir, NAME_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, frames->data, frames->len);
	if (r < 0)
		return r;
	if (failpoint(FP_ENDS_RENAME))
		return -EIO;
	return fsync(fd) < 0 || renameat(dir, NAME_NEW, dir, NAME) < 0 ? -errno : 0;
}

int ends_file_write(int dir, const struct buf *frames)
{
	int r = 0;

	if (frames->len)
		r = ends_file_replace(dir, frames);
	else if (unlinkat(dir, NAME, 0) < 0 && errno != ENOENT)
		r = -errno;
	return r < 0 ? r : fsync(dir) < 0 ? -errno : 0;
}

bool ends_file_exists(int dir)
{
	return faccessat(dir, NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void ends_file_save_worker(struct worker *w, void *arg)
{
	if (w->phase == WORKER_ENDED)
		ends_frames_add(arg, w);
}

void ends_file_save(struct workers *ws)
{
	AUTO_DONE(ends_frames) frames = {};
	int r;

	ends_spool_stop(ws, true);
	workers_each(ws, ends_file_save_worker, &frames);
	r = frames.n || ends_file_exists(ws->output_dir) ? ends_file_write(ws->output_dir, ends_frames_join(&frames)) : 0;
	if (r < 0)
		log_error("could not save the ends of %zu workers: %s", frames.n, strerror(-r));
	else if (frames.n)
		log_info("saved the ends of %zu workers for the next spawner", frames.n);
}

/* Reads one frame of the file. 1: read; 0: the end of the file; negative: it is damaged. */
static int saved_frame_read(int fd, struct frame *f, struct err *e)
{
	ssize_t n = read(fd, f, FRAME_HEAD), rest;
	bool result;

	if (n == 0)
		return 0;
	if (n < 0)
		return err_errno(e, errno, "could not read them") - 1;
	result = n == (ssize_t)FRAME_HEAD && f->type == FRAME_RESULT;
	rest = read(fd, (char *)f + FRAME_HEAD, (result ? RESULT_SIZE : FRAME_SIZE) - FRAME_HEAD);
	if (rest < 0)
		return err_errno(e, errno, "could not read them") - 1;
	if (!frame_check(f, (size_t)(n + rest), 0, FRAME_FROM_SPAWNER, result ? FRAME_VERSION_STORED_RESULT : FRAME_VERSION_STORED, e))
		return -1;
	if (f->type != FRAME_ENDED && f->type != FRAME_RESULT)
		return err_set(e, ERR_INVALID, "a frame of another type") - 1;
	return 1;
}

/* Results of an end that this spawner already has are in its memory. */
static void saved_frame_apply(struct workers *ws, const struct frame *f, size_t *loaded)
{
	struct worker *w = f->type == FRAME_ENDED ? workers_find(ws, f->ended.run, f->ended.fence)
						  : workers_find(ws, f->result.run, f->result.fence);

	if (f->type == FRAME_ENDED && !w) {
		workers_add_ended(ws, &f->ended);
		++*loaded;
	} else if (f->type == FRAME_RESULT && w && w->told) {
		worker_results_add(w, f->result.text);
	}
}

void ends_file_load(struct workers *ws)
{
	AUTO_FD fd = openat(ws->output_dir, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct frame f = {};
	struct err e = {};
	size_t loaded = 0;
	int r = 0;

	if (fd < 0)
		return;
	while (loaded < ENDS_FILE_MAX && (r = saved_frame_read(fd, &f, &e)) > 0)
		saved_frame_apply(ws, &f, &loaded);
	if (r < 0)
		log_warning("the saved ends of workers are damaged: %s", e.msg);
	if (loaded)
		log_info("reporting %zu ends of an earlier spawner", loaded);
}
