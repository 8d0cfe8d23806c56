/* SPDX-License-Identifier: Apache-2.0 */
/* Starts one child per file or state, with the setup steps of a worker. */
#include "exec/spawner/open_file.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "exec/child/child.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include "exec/proto/epoll_source.h"
#include "exec/proto/frame.h"
#include "exec/proto/payload.h"
#include "exec/proto/run_state.h"
#include "exec/spawner/admission.h"
#include "exec/worker/orphans.h"
#include "exec/worker/worker_launch.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/worker_state.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHILD_TIMEOUT (10 * USEC_SEC)
#define STATE_TIMEOUT (60 * USEC_SEC)
#define FILES_MAX 1024 /* requests waiting or with a running child */

struct open_file {
	struct open_files *all; /* borrowed */
	int64_t uid;
	char *owner, *path;     /* owned; path NULL: the state of a run */
	int64_t run;            /* of a state */
	enum run_state_verb verb;
	int data;               /* owned; archive of a state; -1: none */
	int socket;             /* owned; -1: the child has it */
	struct launcher_start *launching; /* the child is being started; NULL otherwise */
	int pidfd;              /* owned; -1: no child yet */
	/* Of the child, inside the group of the owner, so that the child counts for the owner. */
	struct cgroup group;
	struct deadline deadline;
	struct open_file *next;
};

static void open_file_free(struct open_file *f)
{
	if (f->launching)
		launcher_start_cancel(f->launching);
	if (f->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, f->pidfd, SIGKILL, NULL, 0);
	if (f->group.dir >= 0 && cgroup_populated(&f->group))
		cgroup_kill(&f->group);
	cgroup_release(f->all->workers->groups, &f->group);
	free(f->owner);
	free(f->path);
	auto_fd_close(&f->socket);
	auto_fd_close(&f->data);
	auto_fd_close(&f->pidfd);
	free(f);
}

static void open_file_send_error(const struct open_file *f, int error)
{
	const struct run_state_report report = {.error = error};
	int32_t word = error;

	if (!f->path)
		(void)!send(f->socket, &report, sizeof(report), MSG_NOSIGNAL | MSG_DONTWAIT);
	else
		(void)!send(f->socket, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void open_file_refuse(struct open_files *of, struct open_file *f /* freed */, int error)
{
	open_file_send_error(f, error);
	of->n--;
	open_file_free(f);
}

/* The child runs or could not be started. In both cases the entry is freed at its deadline. */
static void on_open_file_launched(enum launch_event event, const struct child_report *report,
	void *arg)
{
	struct open_file *f = arg;
	struct child child;

	if (event == LAUNCH_BLOCKED)
		return;
	f->launching = NULL;
	if (worker_launch_adopt(f->all->workers, report, &child) == 0) {
		f->pidfd = child.pidfd;
		orphans_add_helper(f->all->workers, child.pid);
	} else {
		open_file_send_error(f, EIO);
	}
	auto_fd_close(&f->socket);
	f->socket = -1;
}

static bool child_runs(const struct open_file *f)
{
	struct pollfd p = {.fd = f->pidfd, .events = POLLIN};

	return f->launching || (f->pidfd >= 0 && poll(&p, 1, 0) == 0);
}

/* Another child packs or unpacks the state of the run. */
static bool state_is_moving(const struct open_files *of, int64_t run)
{
	for (size_t i = 1; i <= of->deadlines.n; i++) {
		const struct open_file *f = CONTAINER_OF(of->deadlines.heap[i], struct open_file, deadline);

		if (!f->path && f->run == run && child_runs(f))
			return true;
	}
	return false;
}

/* Standard input of the child: a file with the path, or the directory of the run. Returns a descriptor or -errno. */
static int open_file_input(const struct open_files *of, const struct open_file *f, const struct user *owner)
{
	int in = -1, r;

	if (f->path) {
		in = io_memfd_sealed("jobsched-file", f->path, strlen(f->path) + 1);
		if (in >= 0 && lseek(in, 0, SEEK_SET) < 0) {
			r = -errno;
			close(in);
			return r;
		}
		return in;
	}
	if (state_is_moving(of, f->run))
		return -EBUSY;
	r = worker_state_open_idle(of->workers, f->run, owner, f->verb != RUN_STATE_PACK, &in);
	return r < 0 ? r : in;
}

static int open_file_launch(struct open_files *of, struct open_file *f, const struct user *owner)
{
	static const char *const verbs[RUN_STATE_VERB_MAX] = {
		[RUN_STATE_PACK] = "pack", [RUN_STATE_FILL] = "fill", [RUN_STATE_REPLACE] = "replace"};
	char *const argv[] = {(char *)"/proc/self/exe", (char *)(f->path ? "--open-file" : "--state"),
		f->path ? NULL : (char *)verbs[f->verb], NULL};
	char *const none[] = {NULL};
	struct workers *ws = of->workers;
	AUTO_FD in = open_file_input(of, f, owner);
	/*
	 * The child has exactly the rights of the owner, independent of the sandbox profile of the
	 * job.
	 */
	const struct sandbox_prepared plain = {.all = ws->sandboxes,
		.profile = {.capabilities = SANDBOX_CAPS_ALL, .part[SANDBOX_PRIVILEGES] = 1}};
	const struct child_limits limits = {.v = {{RLIMIT_CORE, {0, 0}, true},
		{RLIMIT_NOFILE, ws->nofile, true}}, .n = 2};
	int error;

	if (in < 0)
		return in;
	error = worker_start_cgroup(ws, owner->uid, &(struct cgroup_limits){}, &f->group);
	if (error < 0)
		return error;
	return launchers_start(&ws->launchers, owner->uid, &(struct child_plan){.user = ws->change_user ? owner : NULL, .argv = argv,
		.envp = none, .cwd = "/", .in = in, .out = f->socket, .extra_fds = &f->data, .extra_fds_n = f->data >= 0, .umask = 077, .limits = &limits, .parent = getpid(),
		.cgroup = f->group.dir >= 0 ? &f->group.dir : NULL, .cgroup_clone = ws->groups->can_clone_into, .sandbox = &plain, .home = "/",
		.artifact = -1}, on_open_file_launched, f, &f->launching);
}

/*
 * The entry is kept until its deadline, so that a child that the owner has stopped with a signal is
 * killed.
 */
static void open_file_proceed(struct open_files *of, struct open_file *f,
	const struct user_answer *a)
{
	const struct user *u = a->user;
	int r = 0;

	if (!u || (int64_t)u->uid != f->uid || (!u->unnamed && strcmp(u->name, f->owner) != 0))
		open_file_refuse(of, f, EACCES);
	else if ((r = open_file_launch(of, f, u)) < 0)
		open_file_refuse(of, f, f->path ? EIO : -r);
	else
		deadline_set(&of->deadlines, &f->deadline,
			clock_boot(&clock_system) + (f->path ? CHILD_TIMEOUT : STATE_TIMEOUT));
}

static bool open_file_payload_parse(int fd, struct open_file *f, struct err *e)
{
	AUTO_DONE(buf) text = {};
	size_t size, owner;
	int r;

	if (!payload_sealed(fd, OPEN_FILE_PAYLOAD_MAX, &size, e))
		return false;
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_read_all(fd, &text, size);
	if (r < 0)
		return err_errno(e, -r, "could not read the owner and path of open_file");
	owner = text.len ? strnlen(text.data, text.len) : 0;
	if (owner + 2 > text.len || text.data[text.len - 1] != '\0' || strlen(text.data + owner + 1) + owner + 2 != text.len ||
		text.data[owner + 1] != '/')
		return err_set(e, ERR_INVALID,
			"invalid open_file: not an owner and an absolute path");
	f->owner = xstrdup(text.data);
	f->path = xstrdup(text.data + owner + 1);
	return true;
}

static struct open_file *open_file_new(struct open_files *of, int64_t uid, int socket)
{
	struct open_file *f = xcalloc(1, sizeof(*f));

	*f = (struct open_file){.all = of, .uid = uid, .socket = fcntl(socket, F_DUPFD_CLOEXEC, 3), .pidfd = -1, .data = -1,
		.group = {.dir = -1, .events.fd = -1}};
	return f;
}

/* Looks the owner up if needed. Jobs that need a warrant are refused: nothing proves that the daemon has not changed a state. */
static void open_file_submit(struct open_files *of, struct open_file *f)
{
	struct user_answer a = {.user = admission_self(of->admission)};

	of->n++;
	if (!admission_check_file(of->admission, f->uid)) {
		open_file_refuse(of, f, EACCES);
	} else if (f->socket < 0 || of->n > FILES_MAX) {
		open_file_refuse(of, f, EIO);
	} else if (!a.user && !user_cache_get(of->users, (uid_t)f->uid, &a)) {
		f->next = of->waiting;
		of->waiting = f;
	} else {
		open_file_proceed(of, f, &a);
	}
}

bool open_files_add(struct open_files *of, int64_t uid, int payload, int socket, struct err *e)
{
	struct open_file *f = open_file_new(of, uid, socket);

	if (!open_file_payload_parse(payload, f, e)) {
		open_file_free(f);
		return false;
	}
	open_file_submit(of, f);
	return true;
}

bool open_files_add_state(struct open_files *of, const struct frame_state *s, int data, int socket, struct err *e)
{
	struct open_file *f;
	size_t size;

	if (s->verb != RUN_STATE_PACK && !payload_sealed(data, RUN_STATE_MAX, &size, e))
		return false;
	f = open_file_new(of, s->uid, socket);
	f->owner = xstrdup(s->owner);
	f->run = s->run;
	f->verb = (enum run_state_verb)s->verb;
	f->data = fcntl(data, F_DUPFD_CLOEXEC, 3);
	if (f->data < 0)
		auto_fd_close(&f->socket);
	open_file_submit(of, f);
	return true;
}

void open_files_user_found(struct open_files *of, uid_t uid, const struct user_answer *a)
{
	for (struct open_file **at = &of->waiting, *f; (f = *at);) {
		if ((uid_t)f->uid != uid) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		open_file_proceed(of, f, a);
	}
}

void open_files_timeouts(struct open_files *of, usec_t now)
{
	struct deadline *d;

	while ((d = deadlines_take(&of->deadlines, now))) {
		of->n--;
		open_file_free(CONTAINER_OF(d, struct open_file, deadline));
	}
}

usec_t open_files_next_timeout(const struct open_files *of)
{
	return deadlines_next(&of->deadlines);
}

void open_files_done(struct open_files *of)
{
	open_files_timeouts(of, USEC_NEVER);
	while (of->waiting) {
		struct open_file *f = of->waiting;

		of->waiting = f->next;
		open_file_refuse(of, f, EIO);
	}
	deadlines_done(&of->deadlines);
}
