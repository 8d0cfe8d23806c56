/* SPDX-License-Identifier: Apache-2.0 */
/* Locks a SQLite file for one daemon with a lock file and with byte ranges of its inode. */
#include "store/backend/file_lock.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "store/backend/lock_holder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define CONTENT_BYTES 1024
#define GUARD_WAIT (3 * USEC_SEC) /* time for the guard of a daemon that was killed to end */
#define PAST_SPAWNERS 4

/* Byte ranges of the inode, far beyond those that SQLite locks (1 GiB). */
#define RANGE_ALL (INT64_C(1) << 60)       /* shared by daemons, exclusive for a restore */
#define RANGE_INSTANCE (INT64_C(1) << 61)  /* plus a hash */
#define RANGE_NODE (INT64_C(3) << 60)      /* plus a hash */
#define SQLITE_SHARED 0x40000002           /* first of 510 bytes: readers hold a shared lock (sqlite.org/fileformat2) */
#define SQLITE_SHARED_LEN 510

struct file_lock {
	struct file_lock_options o;
	char *where, *key, *node, *socket; /* owned */
	int beside, file;                  /* -1: not open; 'file' must stay open until SQLite has closed the store */
	bool in_use;
	struct strv past;     /* spawners of earlier owners; constant after file_lock_take(), read by other threads */
	struct strv spawners; /* newest first */
};

/* The owner as described in the lock file. */
struct owner {
	int pid;
	char *socket, *node, *spawners; /* owned; NULL: not given */
};

static void owner_done(struct owner *w)
{
	free(w->socket);
	free(w->node);
	free(w->spawners);
	*w = (struct owner){};
}

void file_lock_free(struct file_lock *l)
{
	if (!l)
		return;
	if (l->file >= 0)
		close(l->file);
	if (l->beside >= 0)
		close(l->beside);
	strv_done(&l->past);
	strv_done(&l->spawners);
	free(l->where);
	free(l->key);
	free(l->node);
	free(l->socket);
	free(l);
}

/* ---- the lock file ---- */

static void owner_line_parse(char *line, struct owner *w)
{
	char *value = strchr(line, ' ');
	char **text = text_starts(line, "socket ")     ? &w->socket
		      : text_starts(line, "node ")     ? &w->node
		      : text_starts(line, "spawners ") ? &w->spawners
						       : NULL;
	int64_t pid;

	if (text && !*text)
		*text = xstrdup(value + 1);
	else if (text_starts(line, "pid ") && text_parse_int(value + 1, 1, INT32_MAX, &pid))
		w->pid = (int)pid;
}

static void read_owner(int fd, struct owner *ret)
{
	char text[CONTENT_BYTES + 1], *save = NULL;
	ssize_t n = pread(fd, text, CONTENT_BYTES, 0);

	*ret = (struct owner){};
	text[n > 0 ? n : 0] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		owner_line_parse(line, ret);
}

/*
 * Rewritten in place with a constant size, which works on a full disk. A failure only removes
 * details from an error message.
 */
static void write_owner(const struct file_lock *l)
{
	char text[CONTENT_BYTES];
	int n = snprintf(text, sizeof(text), "pid %d\nnode %s\nsocket %s\nspawners", getpid(), l->node, l->socket);

	for (size_t i = 0; i < l->spawners.n && n > 0 && n < CONTENT_BYTES; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %s", l->spawners.v[i]);
	if (n > 0 && n < CONTENT_BYTES) {
		memset(text + n, '\n', sizeof(text) - (size_t)n);
		(void)!pwrite(l->beside, text, sizeof(text), 0);
	}
}

static bool refuse_in_use(const struct file_lock *l, const struct owner *w, struct err *e)
{
	if (w->socket && w->pid)
		return err_set(e, ERR_CONFLICT, "the daemon at '%s' (pid %d) uses the store '%s'; reach it with 'jobctl --socket %s', "
			"or stop it with 'kill %d'%s", w->socket, w->pid, l->where, w->socket, w->pid,
			l->o.exclusive ? " before a restore" : "; a second daemon on this store needs '--instance NAME'");
	return err_set(e, ERR_CONFLICT, "another daemon uses the store '%s'; 'fuser %s' shows its pid; stop it first%s", l->where, l->where,
		l->o.exclusive ? "" : ", or give this one a name with '--instance NAME'");
}

/* The guard of a killed daemon shares the lock for a few milliseconds more, until it ends. */
static bool lock_beside(struct file_lock *l, struct err *e)
{
	usec_t until = clock_boot(&clock_system) + GUARD_WAIT;

	while (flock(l->beside, LOCK_EX | LOCK_NB) < 0) {
		AUTO_DONE(owner) w = {};
		bool gone;

		if (errno != EWOULDBLOCK)
			return err_errno(e, errno, "could not lock the file beside '%s'", l->where);
		read_owner(l->beside, &w);
		gone = !w.pid || (kill(w.pid, 0) < 0 && errno == ESRCH);
		if (!gone || clock_boot(&clock_system) >= until)
			return refuse_in_use(l, &w, e);
		poll(NULL, 0, 20);
	}
	return true;
}

/* A daemon of root would create files beside the store that the owner of the store cannot open. */
static bool check_file_owner(const struct file_lock *l, struct err *e)
{
	AUTO_TEXT path = xprintf("%s-lock%s", l->where, l->key);
	AUTO_DONE(owner) w = {};
	const struct passwd *pw;
	AUTO_FD fd = -1;
	struct stat st;

	if (stat(l->where, &st) < 0 || st.st_uid == geteuid())
		return true;
	pw = getpwuid(st.st_uid);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		read_owner(fd, &w);
	if (w.socket)
		return err_set(e, ERR_REFUSED, "store '%s' belongs to user '%s', whose daemon listens at '%s'; reach it with 'jobctl --socket %s', "
			"or start a daemon as that user", l->where, pw ? pw->pw_name : "unknown", w.socket, w.socket);
	return err_set(e, ERR_REFUSED, "store '%s' belongs to user '%s'; start the daemon as that user: 'sudo -u %s jobschedd ...'",
		l->where, pw ? pw->pw_name : "unknown", pw ? pw->pw_name : "USER");
}

static bool open_beside(struct file_lock *l, struct err *e)
{
	AUTO_TEXT path = xprintf("%s-lock%s", l->where, l->key);
	struct stat st;

	l->beside = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (l->beside < 0 && errno == ENOENT)
		return err_set(e, ERR_REFUSED, "store '%s': its directory does not exist; create it, or set 'store'", l->where);
	if (l->beside < 0 && (errno == EACCES || errno == EPERM))
		return err_set(e, ERR_REFUSED, "store '%s': no permission to write '%s'", l->where, path);
	if (l->beside < 0 && errno == EROFS)
		return err_set(e, ERR_BUSY, "store '%s': the file system is read-only; make it writable again, then start", l->where);
	if (l->beside < 0)
		return err_errno(e, errno, "could not open '%s'", path);
	if (fstat(l->beside, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_REFUSED, "'%s' is not a regular file; remove it", path);
	return true;
}

/* ---- the inode ---- */

static int64_t hash(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return (int64_t)((h ^ h >> 32) & UINT32_MAX);
}

static bool lock_range(int fd, short type, int64_t at)
{
	struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &f) == 0;
}

/*
 * A daemon that uses another name of the file has another lock file open, which is found in /proc.
 */
static bool owner_of_process(pid_t pid, struct owner *ret)
{
	AUTO_TEXT path = xprintf("/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	const struct dirent *d;

	*ret = (struct owner){};
	while (dir && !ret->socket && (d = readdir(dir))) {
		char target[4096] = "";
		AUTO_FD fd = -1;

		if (readlinkat(dirfd(dir), d->d_name, target, sizeof(target) - 1) <= 0 || !strstr(target, "-lock"))
			continue;
		fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		owner_done(ret);
		if (fd >= 0)
			read_owner(fd, ret);
	}
	if (dir)
		closedir(dir);
	return ret->socket != NULL;
}

static bool inode_in_use(struct file_lock *l, struct err *e)
{
	struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SQLITE_SHARED, .l_len = SQLITE_SHARED_LEN};
	AUTO_DONE(owner) w = {};

	if (fcntl(l->file, F_GETLK, &f) == 0 && f.l_type != F_UNLCK && f.l_pid > 0)
		owner_of_process(f.l_pid, &w);
	return refuse_in_use(l, &w, e);
}

static bool check_links(const struct file_lock *l, struct err *e)
{
	struct statx sx;
	struct stat st;

	if (statx(l->file, "", AT_EMPTY_PATH, 0, &sx) == 0 && (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return err_set(e, ERR_REFUSED, "store '%s' is mounted as a single file, but SQLite keeps its WAL beside it, where other names of "
			"the file cannot find it; nothing was changed; mount its directory instead", l->where);
	if (fstat(l->file, &st) < 0 || st.st_nlink <= 1)
		return true;
	return err_set(e, ERR_REFUSED, "store '%s' has %ju names (hard links), and SQLite keeps a separate WAL for each; nothing was "
		"changed; find the others with 'find / -xdev -inum %ju' and remove them", l->where, (uintmax_t)st.st_nlink,
		(uintmax_t)st.st_ino);
}

/* Also returns true if the file does not exist yet. */
static bool lock_inode(struct file_lock *l, struct err *e)
{
	struct stat st;

	if (l->file >= 0)
		return true;
	if (stat(l->where, &st) < 0 || !S_ISREG(st.st_mode))
		return true; /* absent, or not a regular file: opening the store reports it */
	l->file = open(l->where, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (l->file < 0)
		return true; /* opening the store reports the error */
	if (!lock_range(l->file, l->o.exclusive ? F_WRLCK : F_RDLCK, RANGE_ALL) ||
	    (!l->o.exclusive && (!lock_range(l->file, F_WRLCK, RANGE_INSTANCE + hash(l->key)) ||
					!lock_range(l->file, F_WRLCK, RANGE_NODE + hash(l->node))))) {
		if (errno != EAGAIN && errno != EACCES)
			return err_errno(e, errno, "could not lock the store '%s'", l->where);
		return inode_in_use(l, e);
	}
	return l->o.exclusive || check_links(l, e); /* a restore creates a new file */
}

/* ---- both locks ---- */

static char *key_of(const struct file_lock_options *o)
{
	return o->instance ? xprintf(".%s", o->instance) : o->node_name ? xprintf("@%s", o->node_name) : xstrdup("");
}

static void past_spawners_read(struct file_lock *l)
{
	AUTO_DONE(owner) w = {};
	char *save = NULL;

	read_owner(l->beside, &w);
	for (char *s = w.spawners ? strtok_r(w.spawners, " ", &save) : NULL; s; s = strtok_r(NULL, " ", &save))
		strv_add(&l->past, s);
	strv_copy(&l->spawners, &l->past);
}

bool file_lock_take(const struct file_lock_options *o, struct file_lock **ret, struct err *e)
{
	AUTO(file_lock) *l = xcalloc(1, sizeof(*l));
	pid_t user;

	*l = (struct file_lock){.o = *o, .where = xstrdup(o->where), .key = key_of(o), .node = xstrdup(o->node),
		.socket = xstrdup(o->socket), .beside = -1, .file = -1};
	if (!check_file_owner(l, e) || !open_beside(l, e) || !lock_beside(l, e))
		return false;
	l->in_use = lock_holder_user(l->where, &user);
	if (!lock_inode(l, e))
		return false;
	past_spawners_read(l);
	if (!o->exclusive)
		write_owner(l);
	*ret = STEAL(l);
	return true;
}

bool file_lock_take_inode(struct file_lock *l, struct err *e)
{
	return lock_inode(l, e);
}

int file_lock_fd(const struct file_lock *l)
{
	return l->beside;
}

bool file_lock_in_use(const struct file_lock *l)
{
	return l->in_use;
}

const struct strv *file_lock_past_spawners(const struct file_lock *l)
{
	return &l->past;
}

void file_lock_note_spawner(struct file_lock *l, const char *spawner)
{
	struct strv list = {};

	if (l->spawners.n > 0 && text_equal(l->spawners.v[0], spawner))
		return;
	strv_add(&list, spawner);
	for (size_t i = 0; i < l->spawners.n && list.n < PAST_SPAWNERS; i++)
		strv_add(&list, l->spawners.v[i]);
	strv_done(&l->spawners);
	l->spawners = list;
	write_owner(l);
}
