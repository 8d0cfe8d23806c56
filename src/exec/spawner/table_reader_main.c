/* SPDX-License-Identifier: Apache-2.0 */
/* Main function of the process that reads the crontabs: root, short-lived, checks every file by descriptor. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "exec/proto/table_list.h"
#include "exec/spawner/table_reader.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define TIMEOUT_SECONDS 60 /* the spawner normally kills the process earlier */
#define READ_TRIES 3
#define STAMP_DIR "/var/spool/anacron"
#define ANACRON_HOURLY "/etc/cron.hourly/0anacron"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

struct reading {
	const struct table_request *r;
	struct table_list list;
	size_t bytes;
};

static struct table_file *file_add(struct reading *rd, enum table_kind kind, const char *path)
{
	struct table_list *l = &rd->list;

	l->files = xgrow(l->files, l->n, sizeof(*l->files));
	l->files[l->n] = (struct table_file){.path = xstrdup(path), .kind = kind, .user = xstrdup(""), .problem = xstrdup("")};
	return &l->files[l->n++];
}

static void file_refuse(struct table_file *f, const char *why)
{
	free(f->problem);
	f->problem = xstrdup(why);
	blob_done(&f->content);
	f->content = (struct blob){};
}

/*
 * The rules of cron. A table of root decides what root runs, so nobody else may be able to write it.
 * NULL: the file may be used.
 */
static const char *file_problem(const struct stat *st, enum table_kind kind)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_nlink != 1)
		return "it has more than one hard link";
	if (kind != TABLE_USER && st->st_uid != 0)
		return "it does not belong to root";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "others than its owner can write it";
	if (kind == TABLE_USER && st->st_mode & 07177)
		return "its mode is not 0600";
	if (st->st_size > TABLE_FILE_MAX)
		return "it is larger than 1 MiB";
	return NULL;
}

static bool same_version(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec && a->st_nlink == b->st_nlink;
}

/* Reads the file if its state is the same before and after. False: it has changed meanwhile. */
static bool content_read(int fd, struct table_file *f)
{
	AUTO_DONE(buf) text = {};
	struct stat before, after;
	const char *why;
	int r;

	if (fstat(fd, &before) < 0) {
		file_refuse(f, strerror(errno));
		return true;
	}
	f->uid = before.st_uid;
	why = file_problem(&before, (enum table_kind)f->kind);
	if (why) {
		file_refuse(f, why);
		return true;
	}
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_read_all(fd, &text, TABLE_FILE_MAX);
	if (r < 0) {
		file_refuse(f, r == -EFBIG ? "it is larger than 1 MiB" : strerror(-r));
		return true;
	}
	if (fstat(fd, &after) < 0 || !same_version(&before, &after))
		return false;
	f->content.len = text.len;
	f->content.data = buf_steal(&text);
	return true;
}

/* 'dir' was checked; the last part of the name is not followed if it is a link. */
static void file_read(struct reading *rd, struct table_file *f, int dir, const char *name)
{
	AUTO_FD fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int tries = 0;

	if (fd < 0) {
		file_refuse(f, errno == ELOOP ? "it is a symbolic link" : strerror(errno));
		return;
	}
	while (!content_read(fd, f))
		if (++tries == READ_TRIES) {
			file_refuse(f, "it changes while it is read");
			return;
		}
	rd->bytes += f->content.len;
	if (rd->bytes > TABLE_LIST_MAX / 2)
		file_refuse(f, "all crontabs together are larger than 32 MiB");
	else if (!f->problem[0])
		table_warrants_make(f, rd->r);
}

/*
 * A directory that only root can write, or (spool) that a group can write if it is sticky. Returns a
 * descriptor, or -1.
 */
static int directory_open(const char *path, bool spool, const char **ret_why)
{
	AUTO_FD fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	*ret_why = NULL;
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (errno != ENOENT)
			*ret_why = errno == ELOOP || errno == ENOTDIR ? "it is a symbolic link or not a directory" : strerror(errno);
		return -1;
	}
	if (st.st_uid != 0 || st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && !(spool && st.st_mode & S_ISVTX))) {
		*ret_why = "it must belong to root and be writable by root only";
		return -1;
	}
	return STEAL_FD(fd);
}

static void single_read(struct reading *rd, enum table_kind kind, const char *path)
{
	AUTO_TEXT copy = xstrdup(path);
	AUTO_TEXT other = xstrdup(path);
	const char *name, *why;
	AUTO_FD dir = -1;
	struct stat st;

	if (!path[0])
		return;
	name = basename(other);
	dir = directory_open(dirname(copy), false, &why);
	if (dir < 0 && why)
		file_refuse(file_add(rd, kind, path), why);
	if (dir >= 0 && (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT))
		file_read(rd, file_add(rd, kind, path), dir, name);
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len >= n && strcmp(name + len - n, suffix) == 0;
}

/* Debian reads names of letters, digits, '_' and '-'. cronie leaves out hidden files and what packages and editors keep. */
static bool name_used(const char *name, enum table_kind kind, enum crontab_mode mode)
{
	if (name[0] == '.' || strlen(name) > 200)
		return false;
	if (kind == TABLE_USER)
		return strspn(name, letters) > 0 && !strpbrk(name, "/: \t\n") && !text_starts(name, "tmp.");
	if (mode != CRONTAB_CRONIE)
		return strspn(name, letters) == strlen(name);
	return name[0] != '#' && !has_suffix(name, "~") && !has_suffix(name, ".rpmsave") && !has_suffix(name, ".rpmorig") &&
	       !has_suffix(name, ".rpmnew") && !has_suffix(name, ".cfsaved");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_list(int dir, enum table_kind kind, enum crontab_mode mode, struct strv *ret)
{
	DIR *d = fdopendir(dir); /* takes the descriptor */
	struct dirent *entry;

	while (d && ret->n < TABLE_FILES_MAX / 4 && (entry = readdir(d)))
		if (name_used(entry->d_name, kind, mode) && entry->d_type != DT_DIR)
			strv_add(ret, entry->d_name);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	if (d)
		closedir(d);
	else
		close(dir);
}

static void directory_read(struct reading *rd, enum table_kind kind, const char *path)
{
	const char *why;
	AUTO_FD dir = path[0] ? directory_open(path, kind == TABLE_USER, &why) : -1;
	AUTO_DONE(strv) names = {};
	int copy;

	if (!path[0])
		return;
	if (dir < 0) {
		if (why)
			file_refuse(file_add(rd, kind, path), why);
		return;
	}
	copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return;
	names_list(copy, kind, (enum crontab_mode)rd->r->conf.mode, &names);
	for (size_t i = 0; i < names.n; i++) {
		AUTO_TEXT full = xprintf("%s/%s", path, names.v[i]);
		struct table_file *f = file_add(rd, kind, full);

		if (kind == TABLE_USER) {
			free(f->user);
			f->user = xstrdup(names.v[i]);
		}
		file_read(rd, f, dir, names.v[i]);
	}
}

/* The days on which anacron last ran its jobs. */
static void stamps_read(struct reading *rd)
{
	const char *why;
	int dir = directory_open(STAMP_DIR, false, &why);
	AUTO_DONE(strv) names = {};
	AUTO_FD at = dir >= 0 ? fcntl(dir, F_DUPFD_CLOEXEC, 3) : -1;

	if (dir < 0)
		return;
	names_list(dir, TABLE_SYSTEM, CRONTAB_CRONIE, &names);
	for (size_t i = 0; at >= 0 && i < names.n && i < TABLE_FILES_MAX; i++) {
		AUTO_FD fd = openat(at, names.v[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		struct table_list *l = &rd->list;
		char text[16] = {};
		int64_t day;

		if (fd < 0 || read(fd, text, 8) != 8 || !text_parse_int(text, 19700101, 99991231, &day))
			continue;
		l->stamps = xgrow(l->stamps, l->stamps_n, sizeof(*l->stamps));
		l->stamps[l->stamps_n++] = (struct table_stamp){xstrdup(names.v[i]), day};
	}
}

/* On rpm systems a line of cron.d starts anacron itself; then its table must not be read as well. */
static bool anacron_is_started_by_cron(void)
{
	struct stat st;

	return stat(ANACRON_HOURLY, &st) == 0 && st.st_mode & S_IXUSR;
}

int table_reader_main(void)
{
	struct table_request *r = xcalloc(1, sizeof(*r));
	struct reading rd = {.r = r};
	AUTO_DONE(buf) request = {};
	AUTO_DONE(buf) out = {};
	int failed;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0); /* it has the warrant key */
	alarm(TIMEOUT_SECONDS);
	if (io_read_all(0, &request, sizeof(*r)) < 0 || request.len != sizeof(*r))
		return 1;
	memcpy(r, request.data, sizeof(*r));
	if (r->magic != TABLE_REQUEST_MAGIC)
		return 1;
	rd.list.mode = r->conf.mode;
	table_cron_find(&rd.list);
	single_read(&rd, TABLE_SYSTEM, r->conf.system);
	directory_read(&rd, TABLE_SYSTEM, r->conf.dir);
	for (size_t i = 0; i < TABLE_SPOOLS; i++)
		directory_read(&rd, TABLE_USER, r->conf.spool[i]);
	if (!anacron_is_started_by_cron()) {
		single_read(&rd, TABLE_ANACRON, r->conf.anacron);
		stamps_read(&rd);
	}
	table_list_encode(&rd.list, &out);
	failed = io_write_all(1, out.data, out.len) < 0;
	table_list_done(&rd.list);
	explicit_bzero(r, sizeof(*r));
	free(r);
	return failed;
}
