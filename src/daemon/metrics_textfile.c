/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the file in one step, on a reader thread of the store. */
#include "daemon/metrics_textfile.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/store_outage.h"
#include "daemon/loop/store_thread.h"
#include "daemon/metrics/metrics_scrape.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <unistd.h>

struct metrics_textfile {
	struct store_thread *store;
	const struct store_outage *outage;
	const struct metrics_source *from;
	char *path, *fresh; /* owned: the file, and the name under which it is written */
	usec_t interval;
	sd_event_source *timer;
	bool writing, stopped;
	struct log_repeat failed;
};

/* A write under way. */
struct textfile_task {
	struct read_task task;
	struct metrics_textfile *owner; /* borrowed */
	struct metrics_scrape *scrape;  /* owned */
	const char *path, *fresh;       /* borrowed */
	struct err err;
	bool ok;
};

/* Readers see the old file or the new one. A lost file is written again, so nothing is synchronised. */
static bool replace_file(const char *path, const char *fresh, const struct buf *text, struct err *e)
{
	AUTO_FD fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

	/* the umask of the unit would hide it from node_exporter */
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return err_errno(e, errno, "could not write '%s'", fresh);
	if (io_write_all(fd, text->data, text->len) < 0)
		return err_errno(e, errno, "could not write '%s'", fresh);
	if (rename(fresh, path) < 0)
		return err_errno(e, errno, "could not replace '%s'", path);
	return true;
}

static void on_textfile_work(struct store *s, struct read_task *task)
{
	struct textfile_task *t = (struct textfile_task *)task;
	AUTO_DONE(buf) out = {};

	t->ok = metrics_scrape_write(t->scrape, s, &out, &t->err) && replace_file(t->path, t->fresh, &out, &t->err);
}

static void on_textfile_done(struct read_task *task)
{
	struct textfile_task *t = (struct textfile_task *)task;
	struct metrics_textfile *f = t->owner;

	f->writing = false;
	if (!t->ok)
		log_line(log_repeat(&f->failed, clock_boot(&clock_system)), NULL,
			"%s; the user of the daemon needs write access to the directory, and the unit 'ReadWritePaths=' for it",
			t->err.msg);
	else
		f->failed = (struct log_repeat){};
	if (f->stopped)
		unlink(f->path);
	metrics_scrape_free(t->scrape);
	free(t);
}

/* While the store does not answer, the file is not written: its age shows that. */
static void textfile_write(struct metrics_textfile *f)
{
	struct textfile_task *t;

	if (f->writing || f->stopped || store_outage_since(f->outage, NULL))
		return;
	f->writing = true;
	t = xcalloc(1, sizeof(*t));
	t->task.work = on_textfile_work;
	t->task.done = on_textfile_done;
	t->owner = f;
	t->path = f->path;
	t->fresh = f->fresh;
	t->scrape = metrics_scrape_new(f->from, METRICS_TEXT);
	store_thread_read(f->store, &t->task);
}

static int on_textfile_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct metrics_textfile *f = arg;

	(void)usec;
	textfile_write(f);
	sd_event_source_set_time_relative(source, (uint64_t)f->interval);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

bool metrics_textfile_start(struct sd_event *ev, struct store_thread *store, const struct store_outage *outage,
	const struct metrics_source *from, const char *path, usec_t interval, struct metrics_textfile **ret, struct err *e)
{
	struct metrics_textfile *f;
	size_t len = strlen(path);
	int r;

	if (path[0] != '/' || len < 6 || strcmp(path + len - 5, ".prom") != 0)
		return err_set(e, ERR_INVALID, "'metrics-textfile' is '%.200s', not an absolute path that ends with .prom", path);
	f = xcalloc(1, sizeof(*f));
	f->store = store;
	f->outage = outage;
	f->from = from;
	f->interval = interval;
	f->path = xstrdup(path);
	f->fresh = xprintf("%s.new", path); /* node_exporter reads only names that end with .prom */
	r = sd_event_add_time_relative(ev, &f->timer, CLOCK_MONOTONIC, 0, (uint64_t)USEC_SEC / 10, on_textfile_timer, f);
	if (r < 0) {
		metrics_textfile_free(f);
		return err_errno(e, -r, "could not set up 'metrics-textfile'");
	}
	*ret = f;
	return true;
}

void metrics_textfile_stop(struct metrics_textfile *t)
{
	if (!t || t->stopped)
		return;
	t->stopped = true;
	t->timer = sd_event_source_disable_unref(t->timer);
	unlink(t->path);
}

void metrics_textfile_free(struct metrics_textfile *t)
{
	if (!t)
		return;
	sd_event_source_disable_unref(t->timer);
	free(t->path);
	free(t->fresh);
	free(t);
}
