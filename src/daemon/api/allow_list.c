/* SPDX-License-Identifier: Apache-2.0 */
/* Checks users against the cached allow file, or else the deny file. */
#include "daemon/api/allow_list.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LIST_MAX (1 << 20) /* bytes */
#define USER_MAX 256

/* One file, as last read. */
struct user_list {
	char *path;
	struct stat seen;   /* st_ino 0: it did not exist */
	bool broken;        /* it exists but cannot be used */
	char why[160];      /* the reason */
	struct strv users;  /* sorted */
};

struct allow_list {
	struct user_list allowed, denied;
};

struct allow_list *allow_list_new(const char *allow_path, const char *deny_path)
{
	struct allow_list *a = xcalloc(1, sizeof(*a));

	a->allowed.path = xstrdup(allow_path);
	a->denied.path = xstrdup(deny_path);
	return a;
}

static void user_list_done(struct user_list *n)
{
	free(n->path);
	strv_done(&n->users);
}

void allow_list_free(struct allow_list *a)
{
	if (!a)
		return;
	user_list_done(&a->allowed);
	user_list_done(&a->denied);
	free(a);
}

/* ---- reading ---- */

static int compare_user_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/*
 * Accepts every name that the user database could have, and rejects separators and comments inside
 * a line.
 */
static bool is_user(const char *s, size_t len)
{
	if (len == 0 || len > USER_MAX || *s == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] == 127 ||
			strchr("#:,/@%!+", s[i]))
			return false;
	return true;
}

static bool add_list_line(struct user_list *n, const char *line, size_t len, size_t number)
{
	const char *comment = memchr(line, '#', len);

	if (comment)
		len = (size_t)(comment - line);
	while (len > 0 && strchr(" \t\r", line[len - 1]) && line[len - 1])
		len--;
	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	if (len == 0)
		return true;
	if (memchr(line, '\0', len) || !is_user(line, len)) {
		snprintf(n->why, sizeof(n->why), "line %zu is not a user name", number);
		return false;
	}
	strv_take(&n->users, xstrndup(line, len));
	return true;
}

static bool parse_user_list(struct user_list *n, const struct buf *text)
{
	size_t number = 1;

	for (size_t at = 0; at < text->len; number++) {
		const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
		size_t len = end ? (size_t)(end - line) : text->len - at;

		if (!add_list_line(n, line, len, number))
			return false;
		at += len + 1;
	}
	if (n->users.n > 1)
		qsort(n->users.v, n->users.n, sizeof(*n->users.v), compare_user_names);
	return true;
}

static bool trustworthy(struct user_list *n, const struct stat *st)
{
	const char *what = !S_ISREG(st->st_mode)			? "it is not a regular file"
			   : st->st_uid != 0 && st->st_uid != geteuid() ? "it is not owned by root"
			   : st->st_mode & S_IWOTH ? "it is writable by everyone"
						   : NULL;

	if (what)
		snprintf(n->why, sizeof(n->why), "%s", what);
	return !what;
}

static bool read_user_list(struct user_list *n)
{
	AUTO_FD fd = open(n->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO_DONE(buf) text = {};
	struct stat st;
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0 && !trustworthy(n, &st))
		return false;
	if (r == 0)
		r = io_read_all(fd, &text, LIST_MAX);
	if (r < 0)
		snprintf(n->why, sizeof(n->why), "%s", strerror(-r));
	return r == 0 && parse_user_list(n, &text);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/*
 * The timestamps of a file do not change if it is written twice within their resolution, so a
 * recently written file is read again.
 */
static bool is_stat_settled(const struct stat *st)
{
	return time(NULL) - st->st_ctim.tv_sec > 2;
}

/* Reads the file again if it has changed. Returns whether it exists. */
static bool list_refresh(struct user_list *n)
{
	bool was_broken = n->broken;
	struct stat now = {};

	if (stat(n->path, &now) < 0) {
		now = (struct stat){};
		if (errno == ENOENT) {
			n->broken = false;
			n->seen = now;
			return false;
		}
	}
	if (now.st_ino && is_same_file(&now, &n->seen) && is_stat_settled(&now))
		return true;
	strv_done(&n->users);
	n->broken = !read_user_list(n);
	n->seen = now;
	if (n->broken && !was_broken)
		log_warning("'%s' cannot be used, only root may start jobs: %s", n->path, n->why);
	return true;
}

/* ---- lookup ---- */

static bool is_listed(const struct user_list *n, const char *user)
{
	return n->users.n > 0 &&
	       bsearch(&user, n->users.v, n->users.n, sizeof(*n->users.v), compare_user_names);
}

static bool is_broken(const struct user_list *n, struct err *e)
{
	if (n->broken)
		err_set(e, ERR_DENIED,
			"only root may start jobs: '%s' cannot be used: %s; ask your administrator",
			n->path, n->why);
	return n->broken;
}

bool allow_list_permits(struct allow_list *a, const char *user, struct err *e)
{
	if (list_refresh(&a->allowed)) {
		if (is_broken(&a->allowed, e))
			return false;
		return is_listed(&a->allowed, user) ||
		       err_set(e, ERR_DENIED, "your user is not in '%s'; ask your administrator",
			       a->allowed.path);
	}
	if (!list_refresh(&a->denied))
		return true;
	if (is_broken(&a->denied, e))
		return false;
	return !is_listed(&a->denied, user) ||
	       err_set(e, ERR_DENIED, "your user is in '%s'; ask your administrator",
		       a->denied.path);
}
