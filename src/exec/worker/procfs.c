/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment of processes in /proc; kills processes of an earlier spawner. */
#include "exec/worker/procfs.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child/child.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_MAX (8 << 20)
#define CHILDREN_CHUNK 4096
#define CHILDREN_ENTRY 16 /* more than the longest pid with its space */
#define SWEEP_LIMIT (10 * USEC_SEC)

/* The value of the last variable of that name; NULL: none. */
static const char *find_variable(const struct buf *env, const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; i < env->len; i += strlen(env->data + i) + 1)
		if (strncmp(env->data + i, name, len) == 0 && env->data[i + len] == '=')
			found = env->data + i + len + 1;
	return found;
}

static bool read_environ(pid_t pid, struct buf *env)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	return io_read_file(path, env, ENVIRON_MAX) == 0 && env->len > 0;
}

bool procfs_owner(pid_t pid, const char *spawner, int64_t *ret_run, int64_t *ret_fence)
{
	AUTO_DONE(buf) env = {};
	const char *id, *run, *fence;

	if (!read_environ(pid, &env))
		return false;
	id = find_variable(&env, CHILD_VAR_SPAWNER);
	run = find_variable(&env, CHILD_VAR_RUN);
	fence = find_variable(&env, CHILD_VAR_FENCE);
	return id && run && fence && strcmp(id, spawner) == 0 &&
		text_parse_int(run, -INT64_MAX, INT64_MAX, ret_run) &&
		text_parse_int(fence, 0, INT64_MAX, ret_fence);
}

int procfs_children_open(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int children_file_read(int fd, struct buf *text)
{
	buf_clear(text);
	for (;;) {
		ssize_t n = pread(fd, buf_room(text, CHILDREN_CHUNK), CHILDREN_CHUNK, (off_t)text->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text->len += (size_t)n;
		text->data[text->len] = '\0';
		/* the kernel fills the buffer as long as another pid fits */
		if (n < CHILDREN_CHUNK - CHILDREN_ENTRY)
			return 0;
	}
}

int procfs_children(int fd, struct buf *text, pid_t **ret, size_t *ret_n, size_t *cap)
{
	int r = children_file_read(fd, text);
	size_t n = 0;
	char *end;

	if (r < 0)
		return r;
	for (char *p = text->data; *p && *p != '\n'; p = *end ? end + 1 : end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (n == *cap) {
			*cap = *cap ? *cap * 2 : 64;
			*ret = xrealloc(*ret, *cap * sizeof(**ret));
		}
		(*ret)[n++] = (pid_t)pid;
	}
	*ret_n = n;
	return 0;
}

/*
 * The pidfd is opened before the environment is read. If the pid is reused in between, the
 * environment is that of the new process, but the signal goes to the old one, which has exited.
 */
static int pidfd_if_owned(pid_t pid, const char *spawner)
{
	AUTO_FD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	AUTO_DONE(buf) env = {};
	const char *id;

	if (pidfd < 0 || pid == getpid() || !read_environ(pid, &env))
		return -1;
	id = find_variable(&env, CHILD_VAR_SPAWNER);
	return id && strcmp(id, spawner) == 0 ? STEAL_FD(pidfd) : -1;
}

/*
 * Kills the processes that exist now. Returns how many were found; *left: how many did not exit in
 * time.
 */
static int kill_all_once(const char *spawner, usec_t until, int *left)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;
	int found = 0;

	*left = 0;
	while (proc && (d = readdir(proc))) {
		int64_t pid;
		AUTO_FD pidfd = text_parse_int(d->d_name, 1, INT32_MAX, &pid)
			? pidfd_if_owned((pid_t)pid, spawner)
			: -1;
		usec_t wait;

		if (pidfd < 0)
			continue;
		found++;
		if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
			log_warning("could not kill process %d of an earlier spawner: %s", (int)pid,
				strerror(errno));
		wait = until - clock_boot(&clock_system);
		if (poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1,
			    wait > 0 ? (int)(wait / USEC_MSEC) + 1 : 0) == 0) {
			log_warning("process %d of an earlier spawner did not exit after SIGKILL",
				(int)pid);
			++*left;
		}
	}
	if (proc)
		closedir(proc);
	return found;
}

int procfs_kill_all(const char *spawner)
{
	usec_t until = clock_boot(&clock_system) + SWEEP_LIMIT;
	int all = 0, found, left;

	/* repeated until none is found: the killed processes may have started others */
	do {
		found = kill_all_once(spawner, until, &left);
		all += found - left;
		if (left)
			return -1;
	} while (found);
	return all;
}
