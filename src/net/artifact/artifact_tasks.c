/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of the artifact cache: each makes one entry or one private copy, in child processes. */
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "net/artifact/artifact_cache_private.h"
#include "net/artifact/artifact_download.h"
#include "net/aws/aws_credentials.h"
#include "net/child.h"
#include "net/unpack/quota.h"
#include "net/request.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#define TASKS_MAX 8           /* at a time */
#define TASKS_OF_OWNER_MAX 4  /* of these */
#define KILL_MARGIN (30 * USEC_SEC)

static void task_report_apply(struct artifact_task *t, const struct quota_report *w);

static void task_child_end(struct artifact_task *t)
{
	t->source = sd_event_source_disable_unref(t->source);
	t->timer = sd_event_source_disable_unref(t->timer);
	auto_fd_close(&t->control);
	t->control = -1;
	if (t->pid > 0) {
		kill(t->pid, SIGKILL); /* the child has reported, or is given up */
		waitpid(t->pid, NULL, 0);
	}
	t->pid = 0;
}

/* Also removes its directory, unless that has become an entry. */
void artifact_task_free(struct artifact_task *t)
{
	for (struct artifact_task **at = &t->cache->tasks; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
	if (t->s3_url)
		aws_credentials_cancel(t->cache->o.aws, t);
	task_child_end(t);
	if (t->name[0])
		artifact_entry_remove(t->cache, t->name);
	auto_fd_close(&t->dir);
	free(t->url);
	free(t->sha256);
	free(t->s3_url);
	free(t->s3_region);
	free(t);
}

bool artifact_task_serves(const struct artifact_task *t, const struct request *r)
{
	return r->stage == REQUEST_UNDER_WAY &&
		(t->copy_for ? r == t->copy_for : strcmp(r->key, t->key) == 0);
}

static void task_failed(struct artifact_task *t, enum err_kind kind, const char *why)
{
	enum net_outcome outcome = kind == ERR_BUSY ? NET_BUSY : NET_FAILED;

	for (struct request *r = *t->cache->o.requests; r; r = r->next)
		if (artifact_task_serves(t, r))
			request_end(r, outcome, why, -1);
}

static int on_task_report(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct artifact_task *t = arg;
	struct quota_report w = {};
	ssize_t n = recv(fd, &w, sizeof(w), MSG_DONTWAIT);
	int64_t answer;

	(void)source;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	w.text[sizeof(w.text) - 1] = '\0';
	if (n == (ssize_t)sizeof(w) && w.kind == QUOTA_MORE) {
		answer = artifact_budget_grant(t, w.bytes);
		(void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
		return 0;
	}
	if (n != (ssize_t)sizeof(w)) {
		w = (struct quota_report){.kind = QUOTA_FAILED, .error = ERR_INVALID};
		snprintf(w.text, sizeof(w.text),
			"the process that handles the artifact ended early; it may have needed too much memory");
	}
	task_report_apply(t, &w);
	return 0;
}

static int on_task_timeout(sd_event_source *source, uint64_t usec, void *arg)
{
	struct artifact_task *t = arg;
	struct artifact_cache *c = t->cache;

	(void)source;
	(void)usec;
	task_failed(t, ERR_INVALID,
		"the artifact could not be fetched and unpacked in time (see artifact-timeout in jobschedd.conf(5))");
	artifact_task_free(t);
	artifact_tasks_start(c);
	return 0;
}

static bool task_child_start(struct artifact_task *t, const struct child_request *o, struct err *e)
{
	usec_t timeout =
		(o->task == CHILD_DOWNLOAD ? ARTIFACT_DOWNLOAD_TRIES * t->timeout : t->timeout) +
		KILL_MARGIN;
	int r;

	t->granted = 0;
	if (!child_start(o, &t->pid, &t->control, e)) {
		t->pid = 0;
		return false;
	}
	r = sd_event_add_io(t->cache->ev, &t->source, t->control, EPOLLIN, on_task_report, t);
	if (r >= 0)
		r = sd_event_add_time_relative(t->cache->ev, &t->timer, CLOCK_BOOTTIME,
			(uint64_t)timeout, 1, on_task_timeout, t);
	return r >= 0 || err_errno(e, -r, "could not watch the process that handles the artifact");
}

/* ---- results ---- */

static bool task_unpack_begin(struct artifact_task *t, int file, bool check, struct err *e)
{
	AUTO_FD tree = -1;

	if (mkdirat(t->dir, "tree", 0700) < 0 ||
		(tree = openat(t->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_errno(e, errno, "could not write to the artifact cache");
	t->stage = TASK_UNPACKING;
	return task_child_start(t,
		&(struct child_request){.task = CHILD_UNPACK,
			.url = t->url,
			.sha256 = check ? t->sha256 : "",
			.limit = t->limit,
			.timeout = t->timeout,
			.file = file,
			.other = tree},
		e);
}

static bool task_dir(struct artifact_task *t, struct err *e)
{
	if (mkdirat(t->cache->dir, t->name, 0700) < 0 ||
		(t->dir = openat(t->cache->dir, t->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_errno(e, errno, "could not write to the artifact cache");
	return true;
}

static bool task_write_size(const struct artifact_task *t, int64_t bytes, struct err *e)
{
	AUTO_TEXT text = xprintf("%" PRId64 "\n", bytes);
	AUTO_FD fd = openat(t->dir, "size", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
		return err_errno(e, errno, "could not write to the artifact cache");
	return true;
}

/* The directory of the task becomes an entry. */
static bool task_publish(struct artifact_task *t, const char *name, int64_t bytes, struct err *e)
{
	if (!task_write_size(t, bytes, e))
		return false;
	if (renameat(t->cache->dir, t->name, t->cache->dir, name) < 0)
		return err_errno(e, errno, "could not write to the artifact cache");
	t->name[0] = '\0';
	return true;
}

static bool task_fetched(struct artifact_task *t, int64_t bytes, struct err *e)
{
	struct artifact_cache *c = t->cache;
	AUTO_FD file = -1;

	task_child_end(t);
	if (c->o.private_copies) {
		if (!task_publish(t, t->key, bytes, e))
			return false;
		for (struct request *r = *c->o.requests; r; r = r->next)
			if (artifact_task_serves(t, r))
				artifact_task_add(c, r, r);
		artifact_task_free(t);
		return true;
	}
	file = openat(t->dir, "file", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_errno(e, errno, "could not read the artifact cache");
	t->file_bytes = bytes;
	return task_unpack_begin(t, file, false, e);
}

static bool task_unpacked(struct artifact_task *t, int64_t bytes, struct err *e)
{
	struct artifact_cache *c = t->cache;
	char name[NET_KEY_MAX];

	task_child_end(t);
	unlinkat(t->dir, "file", 0);
	if (t->copy_for)
		artifact_entry_copy_name(t->copy_for, name);
	else
		memcpy(name, t->key, sizeof(name));
	if (!task_publish(t, name, bytes, e))
		return false;
	for (struct request *r = *c->o.requests; r; r = r->next)
		if (artifact_task_serves(t, r))
			artifact_entry_answer(r, c, name);
	artifact_task_free(t);
	return true;
}

static void task_report_apply(struct artifact_task *t, const struct quota_report *w)
{
	struct artifact_cache *c = t->cache;
	struct err e = {};
	bool altered = w->kind == QUOTA_FAILED && w->error == ERR_CONFLICT && t->copy_for;

	if (w->kind == QUOTA_DONE &&
		(t->stage == TASK_FETCHING ? task_fetched(t, w->bytes, &e)
					   : task_unpacked(t, w->bytes, &e))) {
		artifact_tasks_start(c);
		return;
	}
	if (altered) { /* a job has written to the cache */
		struct request *r = t->copy_for;

		log_warning("artifact '%.16s': %s; downloading it again", t->key, w->text);
		artifact_entry_remove(c, t->key);
		artifact_task_free(t);
		if (!artifact_cache_start(r, c, &e))
			request_end(r, NET_FAILED, e.msg, -1);
		return;
	}
	if (w->kind == QUOTA_FAILED)
		task_failed(t,
			w->error == ERR_BUSY || w->error == ERR_UNREACHABLE
				? (enum err_kind)w->error
				: ERR_INVALID,
			w->text);
	else
		task_failed(t, e.kind, e.msg);
	artifact_task_free(t);
	artifact_tasks_start(c);
}

/* ---- start ---- */

static bool task_download_s3(struct artifact_task *t, const struct aws_keys *keys, struct err *e)
{
	AUTO_FD file = openat(t->dir, "file", O_RDWR | O_CLOEXEC);

	if (file < 0)
		return err_errno(e, errno, "could not write to the artifact cache");
	return task_child_start(t,
		&(struct child_request){.task = CHILD_DOWNLOAD,
			.url = t->url,
			.sha256 = t->sha256,
			.s3_url = t->s3_url,
			.s3_region = t->s3_region,
			.keys = keys,
			.limit = t->limit,
			.timeout = t->timeout,
			.file = file,
			.other = -1},
		e);
}

static void on_task_keys(const struct aws_keys *keys, const struct err *why, void *arg)
{
	struct artifact_task *t = arg;
	struct artifact_cache *c = t->cache;
	struct err own = {}, *e = t->asking ? t->asking_error : &own;

	if (keys ? task_download_s3(t, keys, e) : err_set(e, ERR_BUSY, "%s", why->msg))
		return;
	if (t->asking)
		return; /* the caller fails the task */
	task_failed(t, e->kind, e->msg);
	artifact_task_free(t);
	artifact_tasks_start(c);
}

/* The credentials may be there at once. */
static bool task_fetch_s3(struct artifact_task *t, struct err *e)
{
	t->asking = true;
	t->asking_error = e;
	aws_credentials_get(t->cache->o.aws, on_task_keys, t);
	t->asking = false;
	t->asking_error = NULL;
	return e->kind == ERR_NONE;
}

static bool task_fetch_begin(struct artifact_task *t, struct err *e)
{
	bool local = text_starts(t->url, "file:");
	struct child_request o = {.task = local ? CHILD_COPY : CHILD_DOWNLOAD,
		.url = t->url,
		.sha256 = t->sha256,
		.limit = t->limit,
		.timeout = t->timeout,
		.other = -1};
	AUTO_FD file = openat(t->dir, "file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	AUTO_FD mine = -1;
	struct request *r = *t->cache->o.requests;
	int pair[2];

	if (file < 0)
		return err_errno(e, errno, "could not write to the artifact cache");
	t->stage = TASK_FETCHING;
	o.file = file;
	if (t->s3_url)
		return task_fetch_s3(t, e);
	if (!local)
		return task_child_start(t, &o, e);
	while (r && !artifact_task_serves(t, r))
		r = r->next;
	if (!r || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, errno, "could not ask for the file");
	o.other = mine = pair[0];
	request_need_file(r, pair[1]);
	return task_child_start(t, &o, e);
}

static bool task_copy_begin(struct artifact_task *t, struct err *e)
{
	AUTO_TEXT path = xprintf("%s/file", t->key);
	AUTO_FD file = openat(t->cache->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (file < 0)
		return err_errno(e, errno, "could not read the artifact cache");
	return task_unpack_begin(t, file, true, e);
}

static bool task_may_start(const struct artifact_cache *c, const struct artifact_task *t)
{
	size_t all = 0, of_owner = 0;

	for (const struct artifact_task *o = c->tasks; o; o = o->next)
		if (o->stage != TASK_WAITING) {
			all++;
			of_owner += o->uid == t->uid;
		}
	return all < TASKS_MAX && of_owner < TASKS_OF_OWNER_MAX;
}

void artifact_tasks_start(struct artifact_cache *c)
{
	struct artifact_task *next;

	for (struct artifact_task *t = c->tasks; t; t = next) {
		struct err e = {};

		next = t->next;
		if (t->stage != TASK_WAITING || !task_may_start(c, t))
			continue;
		if (task_dir(t, &e) &&
			(t->copy_for ? task_copy_begin(t, &e) : task_fetch_begin(t, &e)))
			continue;
		task_failed(t, e.kind, e.msg);
		artifact_task_free(t);
	}
}

void artifact_task_add(struct artifact_cache *c, const struct request *r, struct request *copy_for)
{
	struct artifact_task *t = xcalloc(1, sizeof(*t)), **last = &c->tasks;
	char id[RANDOM_ID_LEN + 1];

	*t = (struct artifact_task){.cache = c,
		.copy_for = copy_for,
		.url = xstrdup(r->payload.texts[0]),
		.sha256 = xstrdup(r->payload.texts[1]),
		.s3_url = r->payload.n == 4 ? xstrdup(r->payload.texts[2]) : NULL,
		.s3_region = r->payload.n == 4 ? xstrdup(r->payload.texts[3]) : NULL,
		.uid = r->uid,
		.limit = r->limit,
		.timeout = r->timeout,
		.dir = -1,
		.control = -1};
	memcpy(t->key, r->key, sizeof(t->key));
	io_random_id(id);
	snprintf(t->name, sizeof(t->name), ".new-%s", id);
	while (*last) /* in the order of arrival */
		last = &(*last)->next;
	*last = t;
}
