/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the reading process, seals its list, and notices changes of the crontabs. */
#include "exec/spawner/table_reader.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "exec/proto/table_list.h"
#include "exec/worker/orphans.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define SETTLE (200 * USEC_MSEC)     /* after a change: an editor writes several times */
#define READ_TIMEOUT (30 * USEC_SEC)
/* For changes without an event: a directory that appears, a cron daemon that writes no pid file. */
#define READ_AGAIN (60 * USEC_SEC)

static void process_forget(struct table_reader *t, bool kill_it)
{
	if (kill_it && t->exit.fd >= 0)
		syscall(SYS_pidfd_send_signal, t->exit.fd, SIGKILL, NULL, 0);
	epoll_source_close(&t->exit);
	auto_fd_close(&t->writing);
	t->writing = -1;
	t->kill_at = 0;
}

void table_reader_done(struct table_reader *t)
{
	process_forget(t, true);
	epoll_source_close(&t->inotify);
	epoll_source_close(&t->cron);
	auto_fd_close(&t->list);
	t->list = -1;
	t->own_watches = 0;
}

/* ---- changes ---- */

static void read_soon(struct table_reader *t, usec_t delay)
{
	usec_t at = clock_boot(&clock_system) + delay;

	if (t->wanted && (!t->read_at || at < t->read_at))
		t->read_at = at;
}

/* Of directories that are watched for other files, too. */
static bool name_matters(const char *name)
{
	static const char *const names[] = {"crontab", "anacrontab", "cron.d", "localtime", "crond.pid", "cron.pid", "fcron.pid",
		"crontabs", "cron.service", "crond.service", "cronie.service", "anacron.timer", "anacron.service"};

	for (size_t i = 0; i < ELEMENTS(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool is_shared(const struct table_conf *c, const char *dir)
{
	return strcmp(dir, c->dir) != 0 && strcmp(dir, c->spool[0]) != 0 && strcmp(dir, c->spool[1]) != 0;
}

static void on_tables_changed(struct epoll_source *s, uint32_t events)
{
	struct table_reader *t = CONTAINER_OF(s, struct table_reader, inotify);
	char room[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	(void)events;
	while ((n = read(s->fd, room, sizeof(room))) > 0)
		for (char *at = room; at < room + n;) {
			const struct inotify_event *ev = (const struct inotify_event *)(const void *)at;

			at += sizeof(*ev) + ev->len;
			/* other files of /etc and /run change often; a read too many is harmless */
			if (ev->mask & IN_Q_OVERFLOW || ev->len == 0 || name_matters(ev->name) || ev->wd <= t->own_watches)
				read_soon(t, SETTLE);
		}
}

static void watch_directory(struct table_reader *t, const char *path)
{
	int wd;

	if (!path[0])
		return;
	wd = inotify_add_watch(t->inotify.fd, path, IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE |
		IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
	if (wd > t->own_watches && !is_shared(&t->conf->tables, path))
		t->own_watches = wd;
}

/* The directories of tables come first, so that their watches have the lowest numbers. */
static void watch_tables(struct table_reader *t)
{
	const struct table_conf *c = &t->conf->tables;
	AUTO_TEXT system = xstrdup(c->system);
	AUTO_TEXT anacron = xstrdup(c->anacron);

	watch_directory(t, c->dir);
	for (size_t i = 0; i < TABLE_SPOOLS; i++)
		watch_directory(t, c->spool[i]);
	if (system[0])
		watch_directory(t, dirname(system));
	if (anacron[0])
		watch_directory(t, dirname(anacron));
	watch_directory(t, "/etc");
	watch_directory(t, "/run");
	watch_directory(t, "/etc/systemd/system");
	watch_directory(t, "/etc/systemd/system/multi-user.target.wants");
	/* a removed package leaves its link in the directory above */
	watch_directory(t, "/usr/lib/systemd/system");
	watch_directory(t, "/lib/systemd/system");
}

static void on_cron_exit(struct epoll_source *s, uint32_t events)
{
	struct table_reader *t = CONTAINER_OF(s, struct table_reader, cron);

	(void)events;
	epoll_source_close(s);
	read_soon(t, SETTLE);
}

/* The end of the other cron daemon is an event. */
static void watch_cron(struct table_reader *t, int64_t pid)
{
	epoll_source_close(&t->cron);
	if (pid <= 0)
		return;
	t->cron = (struct epoll_source){.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .on_ready = on_cron_exit};
	if (t->cron.fd < 0)
		read_soon(t, SETTLE); /* it has ended meanwhile */
	else if (epoll_source_watch(t->ep, &t->cron, EPOLL_CTL_ADD, EPOLLIN) < 0)
		epoll_source_close(&t->cron);
}

/* ---- the process ---- */

static void list_keep(struct table_reader *t, int fd /* moved */, const void *data, size_t len)
{
	unsigned char sum[SHA256_LEN];
	struct sha256 h;
	int64_t pid = 0;

	sha256_init(&h);
	sha256_add(&h, data, len);
	sha256_end(&h, sum);
	for (size_t i = 0; i < 8; i++) /* cron_pid is the second number of the list */
		pid |= (int64_t)((const unsigned char *)data)[4 + 8 + i] << 8 * i;
	watch_cron(t, pid);
	if (t->list >= 0 && memcmp(sum, t->digest, sizeof(sum)) == 0) {
		close(fd);
		return;
	}
	memcpy(t->digest, sum, sizeof(sum));
	auto_fd_close(&t->list);
	t->list = fd;
	t->changed = true;
}

/* The process has exited. A list without its last bytes is not used; the daemon checks the rest. */
static void list_take(struct table_reader *t)
{
	struct stat st;
	void *data;
	uint32_t first, last;

	if (fcntl(t->writing, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ||
		fstat(t->writing, &st) < 0 || st.st_size < 32 || st.st_size > TABLE_LIST_MAX) {
		log_error("could not read the crontabs: the reading process has failed");
		return;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, t->writing, 0);
	if (data == MAP_FAILED)
		return;
	memcpy(&first, data, sizeof(first));
	memcpy(&last, (char *)data + st.st_size - sizeof(last), sizeof(last));
	if (first == last)
		list_keep(t, STEAL_FD(t->writing), data, (size_t)st.st_size);
	else
		log_error("could not read the crontabs: the list is incomplete");
	munmap(data, (size_t)st.st_size);
}

static void on_reader_exit(struct epoll_source *s, uint32_t events)
{
	struct table_reader *t = CONTAINER_OF(s, struct table_reader, exit);

	(void)events;
	list_take(t);
	process_forget(t, false);
	read_soon(t, READ_AGAIN);
}

static int reader_spawn(int in, int out, pid_t *ret)
{
	char *const argv[] = {(char *)"jobsched-spawner", (char *)"--read-tables", NULL}, *const none[] = {NULL};
	posix_spawn_file_actions_t files;
	char program[OWN_PROGRAM_MAX];
	posix_spawnattr_t attr;
	sigset_t mask;
	int r;

	sigemptyset(&mask);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_addclosefrom_np(&files, 3);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &mask);
	r = posix_spawn(ret, io_own_program(program), &files, &attr, argv, none);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

static int request_memfd(const struct table_reader *t)
{
	struct table_request *r = xcalloc(1, sizeof(*r));
	int fd;

	r->magic = TABLE_REQUEST_MAGIC;
	r->policy = (uint32_t)t->conf->require_warrant;
	r->conf = t->conf->tables;
	r->key = *t->key;
	fd = io_memfd_sealed("jobsched-tables", r, sizeof(*r));
	explicit_bzero(r, sizeof(*r));
	free(r);
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* The process is not reaped before the next iteration of the loop, so its pid is not reused. */
static int reader_start(struct table_reader *t, usec_t now)
{
	AUTO_FD in = request_memfd(t);
	pid_t pid;
	int r;

	if (in < 0)
		return in;
	t->writing = memfd_create("jobsched-table-list", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t->writing < 0)
		return -errno;
	r = reader_spawn(in, t->writing, &pid);
	if (r < 0)
		return r;
	orphans_add_helper(t->workers, pid);
	t->exit = (struct epoll_source){.fd = (int)syscall(SYS_pidfd_open, pid, 0), .on_ready = on_reader_exit};
	t->kill_at = now + READ_TIMEOUT;
	return t->exit.fd < 0 || epoll_source_watch(t->ep, &t->exit, EPOLL_CTL_ADD, EPOLLIN) < 0 ? -errno : 0;
}

/* ---- schedule ---- */

static bool inotify_open(struct table_reader *t)
{
	if (t->inotify.fd >= 0)
		return true;
	t->inotify = (struct epoll_source){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .on_ready = on_tables_changed};
	return t->inotify.fd >= 0 && epoll_source_watch(t->ep, &t->inotify, EPOLL_CTL_ADD, EPOLLIN) == 0;
}

void table_reader_want(struct table_reader *t, bool on)
{
	t->wanted = on && t->conf && t->key;
	if (!t->wanted) {
		table_reader_done(t);
		t->read_at = 0;
		t->changed = false;
		return;
	}
	if (!inotify_open(t))
		log_warning("could not watch the crontabs, they are read once a minute: %s", strerror(errno));
	t->changed = t->list >= 0;
	read_soon(t, 0);
}

/* The watches are set before the read, so that no change is missed. */
void table_reader_run_due(struct table_reader *t, usec_t now)
{
	int r;

	if (t->kill_at && now >= t->kill_at) {
		log_error("could not read the crontabs within 30 s, trying again in a minute");
		process_forget(t, true);
		read_soon(t, READ_AGAIN);
	}
	if (!t->read_at || now < t->read_at || t->writing >= 0)
		return;
	t->read_at = 0;
	if (t->inotify.fd >= 0)
		watch_tables(t);
	r = reader_start(t, now);
	if (r == 0)
		return;
	log_error("could not start the process that reads the crontabs, trying again in a minute: %s", strerror(-r));
	process_forget(t, true);
	read_soon(t, READ_AGAIN);
}

usec_t table_reader_next_due(const struct table_reader *t)
{
	if (t->writing >= 0)
		return t->kill_at ? t->kill_at : USEC_NEVER;
	return t->read_at ? t->read_at : USEC_NEVER;
}
