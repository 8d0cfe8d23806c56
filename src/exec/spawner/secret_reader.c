/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the child that reads secrets; collects its answer without blocking. */
#include "exec/spawner/secret_reader.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/start/exec_spec.h"
#include "exec/child/child.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include "exec/proto/epoll_source.h"
#include "exec/worker/orphans.h"
#include "exec/worker/output/secrets.h"
#include "exec/worker/worker_launch.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#define ANSWER_MAX (SECRETS_BYTES + SECRETS_MAX * 8)

struct secret_reader {
	struct secret_readers *all;
	const struct exec_spec *spec;
	struct epoll_source pipe;
	struct deadline deadline;
	struct launcher_start *launching; /* the child is being started; NULL otherwise */
	int pidfd;
	struct cgroup group;
	struct buf answer;
	secret_reader_fn *fn;
	void *arg;
};

void secret_reader_free(struct secret_reader *r)
{
	if (!r)
		return;
	deadline_clear(&r->all->deadlines, &r->deadline);
	epoll_source_close(&r->pipe);
	if (r->launching)
		launcher_start_cancel(r->launching);
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

void secret_readers_done(struct secret_readers *rs)
{
	deadlines_done(&rs->deadlines);
}

/* The error text for secret number 'at'. */
static char *secret_error_text(const struct secret_reader *r, size_t at, int error)
{
	const char *pair = at < r->spec->secrets.n ? r->spec->secrets.v[at] : "?=file:?";
	const char *path = strchr(pair, '=') + 1 + strlen("file:");
	int name = (int)strcspn(pair, "=");

	if (error == EINVAL)
		return xprintf("the secret '%.*s' is not a regular file: '%.120s'", name, pair, path);
	if (error == EFBIG)
		return xprintf("the secret '%.*s' is too large: all secrets of a job together can have up to %d KiB", name, pair,
			SECRETS_BYTES >> 10);
	return xprintf("the secret '%.*s' could not be read from '%.120s': %s", name, pair, path,
		strerror(error));
}

static void secret_reader_finish(struct secret_reader *r, const char *why)
{
	struct secrets s = {};
	AUTO_TEXT error = NULL;
	int errnum = 0;
	size_t at = 0;

	if (why)
		error = xstrdup(why);
	else if (!secrets_parse(&s, r->answer.data, r->answer.len, &errnum, &at) && errnum)
		error = secret_error_text(r, at, errnum);
	else if (s.n != r->spec->secrets.n)
		error = xstrdup("the process that reads the secrets ended without an answer");
	epoll_source_close(&r->pipe);
	r->fn(error ? NULL : &s, &r->group, error, r->arg); /* frees the reader */
	secrets_done(&s);
}

static void on_secrets_answer(struct epoll_source *source, uint32_t events)
{
	struct secret_reader *r = CONTAINER_OF(source, struct secret_reader, pipe);
	ssize_t n;

	(void)events;
	if (source->fd < 0)
		return;
	n = read(source->fd, buf_room(&r->answer, ANSWER_MAX + 1 - r->answer.len),
		ANSWER_MAX + 1 - r->answer.len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		r->answer.len += (size_t)n;
	if (n <= 0 || r->answer.len > ANSWER_MAX)
		secret_reader_finish(r, NULL);
}

/* The paths are passed in a memfd, because arguments are visible to all users in /proc. */
static int secret_paths_memfd(const struct exec_spec *o)
{
	AUTO_DONE(buf) paths = {};

	for (size_t i = 0; i < o->secrets.n; i++) {
		const char *path = strchr(o->secrets.v[i], '=') + 1 + strlen("file:");

		buf_add(&paths, path, strlen(path) + 1);
	}
	return io_memfd_sealed("jobsched-secrets", paths.data, paths.len);
}

/* The child runs or could not be started. Its answer comes through the pipe. */
static void on_secret_reader_launched(enum launch_event event, const struct child_report *report,
	void *arg)
{
	struct secret_reader *r = arg;
	AUTO_TEXT error = NULL;
	struct child child;
	int result;

	if (event == LAUNCH_BLOCKED)
		return;
	r->launching = NULL;
	result = worker_launch_adopt(r->all->workers, report, &child);
	if (result == 0) {
		r->pidfd = child.pidfd;
		orphans_add_helper(r->all->workers, child.pid);
		return;
	}
	error = xprintf("could not read the secrets: could not start a process (%s): %s",
		child_stage_name(report), strerror(-result));
	secret_reader_finish(r, error);
}

static int secret_reader_launch(struct secret_reader *r, const struct user *owner)
{
	char *const argv[] = {(char *)"/proc/self/exe", (char *)"--read-secrets", NULL}, *const none[] = {NULL};
	struct workers *ws = r->all->workers;
	AUTO_FD in = secret_paths_memfd(r->spec);
	AUTO_FD out = -1;
	/*
	 * Independent of the sandbox profile of the job: it must see the files of the owner, with
	 * the owner's rights only.
	 */
	const struct sandbox_prepared plain = {.all = ws->sandboxes,
		.profile = {.capabilities = SANDBOX_CAPS_ALL, .part[SANDBOX_PRIVILEGES] = 1}};
	const struct child_limits limits = {.v = {{RLIMIT_CORE, {0, 0}, true},
		{RLIMIT_NOFILE, ws->nofile, true}}, .n = 2};
	int pipe[2];

	if (in < 0 || lseek(in, 0, SEEK_SET) < 0 || pipe2(pipe, O_CLOEXEC) < 0)
		return in < 0 ? in : -errno;
	r->pipe.fd = pipe[0];
	out = pipe[1];
	io_set_nonblock(r->pipe.fd);
	if (epoll_source_watch(r->all->ep, &r->pipe, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return -errno;
	return launchers_start(&ws->launchers, owner->uid, &(struct child_plan){.user = ws->change_user ? owner : NULL, .argv = argv,
		.envp = none, .cwd = "/", .in = in, .out = out, .umask = 077, .limits = &limits, .parent = getpid(),
		.cgroup = r->group.dir >= 0 ? &r->group.dir : NULL, .cgroup_clone = ws->groups->can_clone_into,
		.sandbox = &plain, .home = "/", .artifact = -1}, on_secret_reader_launched, r, &r->launching);
}

/* The child runs in the control group of the run, so that it counts for the owner. */
static int secret_reader_group(struct secret_reader *r, const struct user *owner)
{
	__attribute__((cleanup(worker_limits_done))) struct worker_limits limits = {};
	struct err e = {};

	if (!worker_limits(r->all->workers, r->spec, &limits, &e))
		return 0; /* the start of the worker will be refused with the same error */
	return worker_start_cgroup(r->all->workers, owner->uid, &limits.group, &r->group);
}

bool secret_reader_start(struct secret_readers *rs, const struct exec_spec *spec,
	const struct user *owner, secret_reader_fn *fn, void *arg, struct secret_reader **ret,
	struct err *e)
{
	struct secret_reader *r = xcalloc(1, sizeof(*r));
	int error;

	*r = (struct secret_reader){.all = rs, .spec = spec, .pipe = {-1, on_secrets_answer}, .pidfd = -1, .group = {.dir = -1, .events.fd = -1},
		.fn = fn, .arg = arg};
	error = secret_reader_group(r, owner);
	if (error == 0)
		error = secret_reader_launch(r, owner);
	if (error < 0) {
		secret_reader_free(r);
		return err_errno(e, -error, "could not start a process to read the secrets");
	}
	deadline_set(&rs->deadlines, &r->deadline, clock_boot(&clock_system) + SECRETS_TIMEOUT);
	*ret = r;
	return true;
}

void secret_readers_timeouts(struct secret_readers *rs, usec_t now)
{
	struct deadline *d;

	while ((d = deadlines_take(&rs->deadlines, now)))
		secret_reader_finish(CONTAINER_OF(d, struct secret_reader, deadline),
			"the secrets could not be read within 5 seconds");
}

usec_t secret_readers_next_timeout(const struct secret_readers *rs)
{
	return deadlines_next(&rs->deadlines);
}
