/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the crontab spool directory, one per user. Functions return 0 or -errno. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct buf;

/* The directory of all tables. -EPERM: it is not root's, or others may rename its files. */
int table_file_open_dir(const char *path, uid_t owner);
bool table_file_name_valid(const char *user);
/* Removes the temporary files of writers that were killed before this time. */
void table_file_clean(int dir, time_t before);

struct table_file {
	int dir;          /* borrowed: of table_file_open_dir() */
	const char *user; /* the name of the file; valid */
	uid_t uid;        /* of the user */
	gid_t gid;        /* the group of the file */
};
/* -ENOENT: none. -EPERM: not a regular file of this user or root. -EFBIG: beyond max. */
int table_file_read(const struct table_file *t, size_t max, struct buf *out);
/* Replaces the file in one step. The new content is on disk when the function returns. */
int table_file_write(const struct table_file *t, const struct buf *content);
int table_file_remove(const struct table_file *t);
