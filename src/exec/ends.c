/* SPDX-License-Identifier: Apache-2.0 */
/* Ends that no engine has heard of when the spawner is stopped: kept in a file for the next life to report. */
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/frame.h"
#include "exec/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "ends"
#define NAME_NEW "ends.new"
#define FRAME_SIZE (FRAME_HEAD + sizeof(struct frame_ended))
#define ENDS_MAX 65536

struct saving {
	struct buf frames;
	size_t n;
};

static void save_one(struct worker *w, void *arg)
{
	struct saving *s = arg;
	struct frame f;

	if (w->phase != WORKER_ENDED || s->n == ENDS_MAX)
		return;
	frame_init(&f, FRAME_ENDED, FRAME_VERSION);
	worker_end_frame(&f, w);
	buf_add(&s->frames, &f, FRAME_SIZE);
	s->n++;
}

static int write_file(int dir, const struct buf *b)
{
	AUTO_FD fd = openat(dir, NAME_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, b->data, b->len);
	if (r < 0)
		return r;
	if (failpoint(FP_ENDS_RENAME))
		return -EIO;
	return fsync(fd) < 0 || renameat(dir, NAME_NEW, dir, NAME) < 0 || fsync(dir) < 0 ? -errno : 0;
}

void ends_save(struct workers *ws)
{
	struct saving s = {};
	int r;

	workers_each(ws, save_one, &s);
	r = s.n ? write_file(ws->output_dir, &s.frames) : 0;
	if (r < 0)
		log_error("the ends of %zu workers could not be kept: %s", s.n, strerror(-r));
	else if (s.n)
		log_info("kept the ends of %zu workers for the next spawner", s.n);
	buf_done(&s.frames);
}

void ends_load(struct workers *ws)
{
	AUTO_FD fd = openat(ws->output_dir, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct frame f = {};
	struct err e = {};
	ssize_t n = 0;
	size_t loaded = 0;

	if (fd < 0)
		return;
	while (loaded < ENDS_MAX && (n = read(fd, &f, FRAME_SIZE)) > 0) {
		if (!frame_check(&f, (size_t)n, 0, FRAME_FROM_SPAWNER, FRAME_VERSION, &e) || f.type != FRAME_ENDED) {
			log_warning("the kept ends of workers are damaged: %s", e.msg);
			break;
		}
		workers_add_ended(ws, &f.ended);
		loaded++;
	}
	if (n < 0)
		log_error("the kept ends of workers could not be read: %s", strerror(errno));
	unlinkat(ws->output_dir, NAME, 0);
	if (loaded)
		log_info("%zu ends of an earlier spawner are to be reported", loaded);
}
