/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/locks to identify the process that holds the write lock. */
#include "store/backend/lock_holder.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKS_MAX (4 << 20) /* bytes of /proc/locks */
/* Bytes of the '-shm' file that SQLite locks (sqlite.org/walformat.html). */
#define BYTE_WRITE 120      /* by the writer */
#define BYTE_ALIVE 128      /* by each process that has the store open */

static bool stat_index(const char *where, struct stat *ret)
{
	AUTO_TEXT index = xprintf("%s-shm", where);

	return !strstr(where, "://") && stat(index, ret) == 0;
}

/*
 * One line of /proc/locks: "7: POSIX  ADVISORY  WRITE 4711 fe:01:1234 120 120"; the end may be EOF.
 */
static bool line_holds(const char *line, ino_t inode, pid_t *ret)
{
	char kind[16], mode[16], end[24];
	uintmax_t ino;
	int64_t from;
	int pid;

	if (sscanf(line, "%*s %15s %*s %15s %d %*x:%*x:%ju %" SCNd64 " %23s", kind, mode, &pid, &ino, &from, end) != 6)
		return false;
	if (strcmp(kind, "POSIX") != 0 || strcmp(mode, "WRITE") != 0 || ino != (uintmax_t)inode || pid <= 0 || pid == getpid())
		return false;
	*ret = pid;
	return from <= BYTE_WRITE && (strcmp(end, "EOF") == 0 || strtoll(end, NULL, 10) >= BYTE_WRITE);
}

static bool find_writer(const struct stat *index, pid_t *ret)
{
	AUTO_DONE(buf) locks = {};
	char *save = NULL;

	if (io_read_file("/proc/locks", &locks, LOCKS_MAX) < 0 || !locks.data)
		return false;
	for (char *line = strtok_r(locks.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (line_holds(line, index->st_ino, ret))
			return true;
	return false;
}

static bool read_process(struct lock_holder *h)
{
	AUTO_TEXT path = xprintf("/proc/%d/stat", h->pid);
	AUTO_DONE(buf) text = {};
	const char *after;

	if (io_read_file(path, &text, 4096) < 0 || !text.data)
		return false;
	after = strrchr(text.data, ')'); /* the name may contain any character, also ')' */
	return after && sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
				&h->state, &h->started) == 2;
}

/* The program may have been replaced by an upgrade, which appends " (deleted)" to the link. */
static bool same_program(pid_t pid)
{
	AUTO_TEXT path = xprintf("/proc/%d/exe", pid);
	char theirs[PATH_MAX] = "", mine[PATH_MAX] = "", *end;

	if (readlink(path, theirs, sizeof(theirs) - 1) <= 0 || readlink("/proc/self/exe", mine, sizeof(mine) - 1) <= 0)
		return false;
	for (char *const *p = (char *const[]){theirs, mine, NULL}; *p; p++)
		if ((end = strstr(*p, " (deleted)")))
			*end = '\0';
	return strcmp(theirs, mine) == 0;
}

/*
 * /proc/locks identifies a file by inode number, which other file systems may use too, so the open
 * descriptors are compared.
 */
static bool has_open(pid_t pid, const struct stat *index)
{
	AUTO_TEXT path = xprintf("/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	const struct dirent *d;
	bool found = false;
	struct stat st;

	while (dir && !found && (d = readdir(dir)))
		found = fstatat(dirfd(dir), d->d_name, &st, 0) == 0 && st.st_ino == index->st_ino && st.st_dev == index->st_dev;
	if (dir)
		closedir(dir);
	return found;
}

static bool is_ours(pid_t pid, const struct stat *index)
{
	AUTO_TEXT path = xprintf("/proc/%d", pid);
	struct stat st;

	return stat(path, &st) == 0 && st.st_uid == geteuid() && same_program(pid) && has_open(pid, index);
}

bool lock_holder_find(const char *where, struct lock_holder *ret)
{
	struct lock_holder h = {};
	struct stat index;

	if (!stat_index(where, &index) || !find_writer(&index, &h.pid) || !read_process(&h))
		return false;
	h.ours = is_ours(h.pid, &index);
	*ret = h;
	return true;
}

bool lock_holder_user(const char *where, pid_t *ret)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = BYTE_ALIVE, .l_len = 1};
	AUTO_TEXT index = xprintf("%s-shm", where);
	AUTO_FD fd = open(index, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return false;
	*ret = lock.l_pid > 0 ? lock.l_pid : 0;
	return true;
}

bool lock_holder_kill(const char *where, const struct lock_holder *h)
{
	AUTO_FD process = (int)syscall(SYS_pidfd_open, h->pid, 0);
	struct lock_holder now;

	/* checked again with the pidfd open, so that the pid cannot be reused meanwhile */
	return process >= 0 && lock_holder_find(where, &now) && now.pid == h->pid && now.started == h->started && now.ours &&
	       now.state == 'T' && syscall(SYS_pidfd_send_signal, process, SIGKILL, NULL, 0) == 0;
}
