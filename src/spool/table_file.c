/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and replaces the files of the crontab spool directory without following links. */
#include "spool/table_file.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int table_file_open_dir(const char *path, uid_t owner)
{
	AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (dir < 0 || fstat(dir, &st) < 0)
		return -errno;
	/* A group or others that may write must not be able to rename files of other users. */
	if (st.st_uid != owner || ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX)))
		return -EPERM;
	return STEAL_FD(dir);
}

#define TEMPORARY "tmp." /* cron ignores names that begin so */

static void clean_one(int dir, const char *name, time_t before)
{
	struct stat st;

	if (text_starts(name, TEMPORARY) && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISREG(st.st_mode) && st.st_mtim.tv_sec < before)
		unlinkat(dir, name, 0);
}

void table_file_clean(int dir, time_t before)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	while (d && (entry = readdir(d)))
		clean_one(dir, entry->d_name, before);
	if (d)
		closedir(d);
}

bool table_file_name_valid(const char *user)
{
	size_t len = strlen(user);

	return len > 0 && len <= NAME_MAX - 32 && user[0] != '.' && user[0] != '-' &&
	       !strchr(user, '/') && !text_starts(user, TEMPORARY);
}

int table_file_read(const struct table_file *t, size_t max, struct buf *out)
{
	AUTO_FD fd = openat(t->dir, t->user,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (st.st_uid != t->uid && st.st_uid != 0))
		return -EPERM;
	return io_read_all(fd, out, max);
}

static int fill_file(int fd, const struct table_file *t, const struct buf *content)
{
	int r = io_write_all(fd, content->data, content->len);

	if (r < 0)
		return r;
	/* In this order: the mode of another user's file could not be changed without CAP_FOWNER. */
	return fchmod(fd, 0600) < 0 || fchown(fd, t->uid, t->gid) < 0 || fsync(fd) < 0 ? -errno : 0;
}

int table_file_write(const struct table_file *t, const struct buf *content)
{
	char id[RANDOM_ID_LEN + 1];
	AUTO_TEXT temporary = NULL;
	AUTO_FD fd = -1;
	int r;

	io_random_id(id);
	temporary = xprintf(TEMPORARY "%s", id);
	fd = openat(t->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fill_file(fd, t, content);
	if (r == 0 && renameat(t->dir, temporary, t->dir, t->user) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(t->dir, temporary, 0);
		return r;
	}
	return fsync(t->dir) < 0 ? -errno : 0;
}

int table_file_remove(const struct table_file *t)
{
	return unlinkat(t->dir, t->user, 0) < 0 || fsync(t->dir) < 0 ? -errno : 0;
}
