/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds shared locks on a SQLite file while the daemon runs; reports when the daemon has lost its
 * own.
 */
#include "store/backend/lock_guard.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FDINFO_MAX (4 << 20) /* bytes; an epoll descriptor has a line for each descriptor that it watches */
#define CHECK_MS 10000       /* check interval without events: closing a duplicated descriptor causes none */
#define CHECK_PAUSE_MS 20    /* minimum time between two checks */

/*
 * The locks that a SQLite connection in WAL mode keeps while it is open (sqlite.org/fileformat2,
 * sqlite.org/walformat).
 */
static const struct {
	const char *end; /* suffix of the file name */
	off_t at, len;
} kept[] = {
	{"", 0x40000002, 510}, /* the database: a shared lock */
	{"-shm", 128, 1},      /* the index of the WAL: a shared lock, held while the store is open */
};

struct guarded {
	int fd[ELEMENTS(kept)];
	ino_t inode[ELEMENTS(kept)];
	pid_t daemon;
};

/* "lock:\t7: POSIX  ADVISORY  READ 4711 fe:01:1234 128 128"; the end may be EOF. */
static bool line_is_lock(const char *line, ino_t inode, off_t at)
{
	char kind[16], end[24];
	uintmax_t ino;
	int64_t from;

	return sscanf(line, "lock: %*s %15s %*s %*s %*d %*x:%*x:%ju %" SCNd64 " %23s", kind, &ino, &from, end) == 4 &&
	       strcmp(kind, "POSIX") == 0 && ino == (uintmax_t)inode && from <= at &&
	       (strcmp(end, "EOF") == 0 || strtoll(end, NULL, 10) >= at);
}

static bool descriptor_has_lock(const char *path, ino_t inode, off_t at)
{
	AUTO_DONE(buf) info = {};
	char *save = NULL;

	if (io_read_file(path, &info, FDINFO_MAX) < 0 || !info.data)
		return false; /* closed meanwhile */
	for (char *line = strtok_r(info.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (line_is_lock(line, inode, at))
			return true;
	return false;
}

/*
 * F_GETLK reports only one of several holders, so the descriptors of the daemon are searched. /proc/locks is not used: the
 * kernel returns it in parts, and omits entries when other processes release locks between two parts.
 */
static bool lock_listed(const struct guarded *g, size_t i)
{
	AUTO_TEXT where = xprintf("/proc/%d/fdinfo", (int)g->daemon);
	DIR *dir = opendir(where);
	const struct dirent *d;
	bool found = !dir; /* unknown: assume that the lock is held */

	while (!found && (d = readdir(dir))) {
		AUTO_TEXT path = xprintf("%s/%s", where, d->d_name);

		found = d->d_name[0] != '.' && descriptor_has_lock(path, g->inode[i], kept[i].at);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool daemon_holds(const struct guarded *g, size_t i)
{
	struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = kept[i].at, .l_len = kept[i].len};

	if (fcntl(g->fd[i], F_GETLK, &f) < 0)
		return true;
	if (f.l_type == F_UNLCK)
		return false;
	return f.l_pid == g->daemon || lock_listed(g, i);
}

static bool daemon_holds_all(const struct guarded *g)
{
	for (size_t i = 0; i < ELEMENTS(kept); i++)
		if (!daemon_holds(g, i))
			return false;
	return true;
}

static bool take_locks(struct guarded *g, const char *where)
{
	for (size_t i = 0; i < ELEMENTS(kept); i++) {
		struct flock f = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = kept[i].at, .l_len = kept[i].len};
		AUTO_TEXT path = xprintf("%s%s", where, kept[i].end);
		struct stat st;

		g->fd[i] = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (g->fd[i] < 0 || fstat(g->fd[i], &st) < 0 || fcntl(g->fd[i], F_SETLK, &f) < 0)
			return false;
		g->inode[i] = st.st_ino;
	}
	return true;
}

/*
 * Locks are dropped when a descriptor is closed, and each close of these files causes an inotify
 * event.
 */
static int watch_closes(const struct guarded *g)
{
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	for (size_t i = 0; watch >= 0 && i < ELEMENTS(kept); i++) {
		AUTO_TEXT path = xprintf("/proc/self/fd/%d", g->fd[i]);

		if (inotify_add_watch(watch, path, IN_CLOSE) < 0)
			return -1;
	}
	return watch;
}

static void send_message(const char *message)
{
	(void)!send(GUARD_SOCKET, message, strlen(message), MSG_NOSIGNAL);
}

/* Returns when the daemon has ended. Reports a loss once. */
static void watch_locks(const struct guarded *g, int watch)
{
	struct pollfd p[] = {{.fd = GUARD_SOCKET, .events = POLLIN}, {.fd = watch, .events = POLLIN}};
	char events[4096];
	bool told = false;

	for (;;) {
		if (!told && !daemon_holds_all(g)) {
			send_message((const char[]){GUARD_MISSING, '\0'});
			told = true;
		}
		poll(p, 1, CHECK_PAUSE_MS);
		if (p[0].revents)
			return;
		poll(p, ELEMENTS(p), CHECK_MS);
		if (p[0].revents)
			return;
		while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
			;
	}
}

int lock_guard_main(void)
{
	struct guarded g = {.daemon = getppid()};
	char where[PATH_MAX] = "";
	ssize_t n;

	prctl(PR_SET_NAME, "jobsched-guard");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	n = recv(GUARD_SOCKET, where, sizeof(where) - 1, 0);
	if (n <= 0 || getppid() != g.daemon)
		return EXIT_SUCCESS; /* the daemon ended before the store was open */
	if (!take_locks(&g, where)) {
		AUTO_TEXT why = xprintf("%c%d", GUARD_FAILED, errno);

		send_message(why);
		return EXIT_FAILURE;
	}
	if (daemon_holds_all(&g))
		send_message((const char[]){GUARD_HOLDS, '\0'});
	watch_locks(&g, watch_closes(&g));
	return EXIT_SUCCESS;
}
