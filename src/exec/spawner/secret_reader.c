/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's side of reading secrets: a process dropped to the owner by the steps of any worker, and its answer. */
#include "exec/spawner/secret_reader.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/exec_spec.h"
#include "exec/child/child.h"
#include "exec/child/sandbox.h"
#include "exec/worker/secrets.h"
#include "exec/proto/epoll_source.h"
#include "exec/child/user.h"
#include "exec/worker/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#define ANSWER_MAX (SECRETS_BYTES + SECRETS_MAX * 8)

struct secrets_reading {
	struct secrets_readers *all;
	const struct order *order;
	struct source pipe;
	struct deadline deadline;
	struct launching *launching; /* NULL: the process runs, or there is none */
	int pidfd;
	struct cgroup group;
	struct buf answer;
	secrets_read_fn *fn;
	void *arg;
};

void secrets_reading_free(struct secrets_reading *r)
{
	if (!r)
		return;
	deadline_clear(&r->all->deadlines, &r->deadline);
	source_close(&r->pipe);
	if (r->launching)
		launching_cancel(r->launching);
	if (r->group.dir >= 0 && cgroup_populated(&r->group))
		cgroup_kill(&r->group);
	cgroup_release(r->all->workers->groups, &r->group);
	if (r->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, r->pidfd, SIGKILL, NULL, 0);
		close(r->pidfd);
	}
	if (r->answer.data)
		explicit_bzero(r->answer.data, r->answer.cap);
	buf_done(&r->answer);
	free(r);
}

void secrets_readers_done(struct secrets_readers *rs)
{
	deadlines_done(&rs->deadlines);
}

/* NAME and what is wrong with its file. */
static char *error_of(const struct secrets_reading *r, size_t at, int error)
{
	const char *pair = at < r->order->secrets.n ? r->order->secrets.v[at] : "?=file:?";
	const char *path = strchr(pair, '=') + 1 + strlen("file:");
	int name = (int)strcspn(pair, "=");

	if (error == EINVAL)
		return xprintf("the secret '%.*s' is not a regular file: '%.120s'", name, pair, path);
	if (error == EFBIG)
		return xprintf("the secret '%.*s' is too large: all secrets of a job have up to %d KiB", name, pair,
			SECRETS_BYTES >> 10);
	return xprintf("the secret '%.*s' could not be read from '%.120s': %s", name, pair, path, strerror(error));
}

static void settle(struct secrets_reading *r, const char *why)
{
	struct secrets s = {};
	AUTO_TEXT error = NULL;
	int errnum = 0;
	size_t at = 0;

	if (why)
		error = xstrdup(why);
	else if (!secrets_parse(&s, r->answer.data, r->answer.len, &errnum, &at) && errnum)
		error = error_of(r, at, errnum);
	else if (s.n != r->order->secrets.n)
		error = xstrdup("the process that read the secrets ended without an answer");
	source_close(&r->pipe);
	r->fn(error ? NULL : &s, &r->group, error, r->arg); /* frees us */
	secrets_done(&s);
}

static void on_answer(struct source *source, uint32_t events)
{
	struct secrets_reading *r = SOURCE_OWNER(source, struct secrets_reading, pipe);
	ssize_t n;

	(void)events;
	if (source->fd < 0)
		return;
	n = read(source->fd, buf_room(&r->answer, ANSWER_MAX + 1 - r->answer.len), ANSWER_MAX + 1 - r->answer.len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		r->answer.len += (size_t)n;
	if (n <= 0 || r->answer.len > ANSWER_MAX)
		settle(r, NULL);
}

/* The paths go through memory, so that no list of processes shows them. */
static int paths_file(const struct order *o)
{
	AUTO_DONE(buf) paths = {};

	for (size_t i = 0; i < o->secrets.n; i++) {
		const char *path = strchr(o->secrets.v[i], '=') + 1 + strlen("file:");

		buf_add(&paths, path, strlen(path) + 1);
	}
	return io_memfd_sealed("jobsched-secrets", paths.data, paths.len);
}

/* Of the process that reads; what it reads comes through the pipe. */
static void on_launch(enum launch_news news, const struct child_word *word, void *arg)
{
	struct secrets_reading *r = arg;
	AUTO_TEXT error = NULL;
	struct child child;
	int result;

	if (news == LAUNCH_HELD)
		return;
	r->launching = NULL;
	result = worker_take(r->all->workers, word, &child);
	if (result == 0) {
		r->pidfd = child.pidfd;
		workers_know_helper(r->all->workers, child.pid);
		return;
	}
	error = xprintf("the secrets could not be read: no process could be made (%s): %s", child_stage_name(word), strerror(-result));
	settle(r, error);
}

static int launch(struct secrets_reading *r, const struct user *owner)
{
	char *const argv[] = {(char *)"/proc/self/exe", (char *)"--read-secrets", NULL}, *const none[] = {NULL};
	struct workers *ws = r->all->workers;
	AUTO_FD in = paths_file(r->order);
	AUTO_FD out = -1;
	/* whatever profile the job has: it sees the files of its owner, and gets no more rights than these */
	const struct fences plain = {.all = ws->sandboxes,
		.profile = {.capabilities = SANDBOX_CAPS_ALL, .part[SANDBOX_PRIVILEGES] = 1}};
	const struct child_limits limits = {.v = {{RLIMIT_CORE, {0, 0}, true}, {RLIMIT_NOFILE, ws->nofile, true}}, .n = 2};
	int pipe[2];

	if (in < 0 || lseek(in, 0, SEEK_SET) < 0 || pipe2(pipe, O_CLOEXEC) < 0)
		return in < 0 ? in : -errno;
	r->pipe.fd = pipe[0];
	out = pipe[1];
	io_set_nonblock(r->pipe.fd);
	if (source_watch(r->all->ep, &r->pipe, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return -errno;
	return launch_begin(&ws->launchers, owner->uid, &(struct child_plan){.user = ws->change_user ? owner : NULL, .argv = argv,
		.envp = none, .cwd = "/", .in = in, .out = out, .umask = 077, .limits = &limits, .parent = getpid(),
		.cgroup = r->group.dir >= 0 ? &r->group : NULL, .born = ws->groups->births,
		.fences = &plain, .home = "/", .artifact = -1}, on_launch, r, &r->launching);
}

/* The run's own: its owner pays for what reading takes. */
static int group_take(struct secrets_reading *r, const struct user *owner)
{
	__attribute__((cleanup(worker_limits_done))) struct worker_limits limits = {};
	struct err e = {};

	if (!worker_limits(r->all->workers, r->order, &limits, &e))
		return 0; /* the start of the worker is refused for it */
	return workers_group(r->all->workers, owner->uid, &limits.group, &r->group);
}

bool secrets_read(struct secrets_readers *rs, const struct order *order, const struct user *owner, secrets_read_fn *fn,
	void *arg, struct secrets_reading **ret, struct err *e)
{
	struct secrets_reading *r = xcalloc(1, sizeof(*r));
	int error;

	*r = (struct secrets_reading){.all = rs, .order = order, .pipe = {-1, on_answer}, .pidfd = -1, .group = {.dir = -1, .events.fd = -1},
		.fn = fn, .arg = arg};
	error = group_take(r, owner);
	if (error == 0)
		error = launch(r, owner);
	if (error < 0) {
		secrets_reading_free(r);
		return err_errno(e, -error, "could not start a process to read the secrets");
	}
	deadline_set(&rs->deadlines, &r->deadline, clock_boot(&clock_system) + SECRETS_PATIENCE);
	*ret = r;
	return true;
}

void secrets_readers_turn(struct secrets_readers *rs, usec_t now)
{
	struct deadline *d;

	while ((d = deadlines_take(&rs->deadlines, now)))
		settle(SOURCE_OWNER(d, struct secrets_reading, deadline), "the secrets could not be read within 5 seconds");
}

usec_t secrets_readers_next(const struct secrets_readers *rs)
{
	return deadlines_next(&rs->deadlines);
}
