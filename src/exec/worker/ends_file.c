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

void ends_file_add(struct buf *to, const struct worker *w)
{
	struct frame f;

	if (to->len >= ENDS_FILE_MAX * FRAME_SIZE)
		return;
	frame_init(&f, FRAME_ENDED, FRAME_VERSION);
	worker_end_frame(&f, w);
	buf_add(to, &f, FRAME_SIZE);
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
		ends_file_add(arg, w);
}

void ends_file_save(struct workers *ws)
{
	AUTO_DONE(buf) frames = {};
	size_t n;
	int r;

	ends_spool_stop(ws, true);
	workers_each(ws, ends_file_save_worker, &frames);
	n = frames.len / FRAME_SIZE;
	r = n || ends_file_exists(ws->output_dir) ? ends_file_write(ws->output_dir, &frames) : 0;
	if (r < 0)
		log_error("could not save the ends of %zu workers: %s", n, strerror(-r));
	else if (n)
		log_info("saved the ends of %zu workers for the next spawner", n);
}

void ends_file_load(struct workers *ws)
{
	AUTO_FD fd = openat(ws->output_dir, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct frame f = {};
	struct err e = {};
	ssize_t n = 0;
	size_t loaded = 0;

	if (fd < 0)
		return;
	while (loaded < ENDS_FILE_MAX && (n = read(fd, &f, FRAME_SIZE)) > 0) {
		if (!frame_check(&f, (size_t)n, 0, FRAME_FROM_SPAWNER, FRAME_VERSION, &e) ||
			f.type != FRAME_ENDED) {
			log_warning("the saved ends of workers are damaged: %s", e.msg);
			break;
		}
		if (workers_find(ws, f.ended.run, f.ended.fence))
			continue;
		workers_add_ended(ws, &f.ended);
		loaded++;
	}
	if (n < 0)
		log_error("could not read the saved ends of workers: %s", strerror(errno));
	if (loaded)
		log_info("reporting %zu ends of an earlier spawner", loaded);
}
