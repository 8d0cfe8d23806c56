/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the store with a backup. After a crash at any step there is the old store, the new one,
 * or a mark that makes the daemon refuse to start.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "store/backend/lock_holder.h"
#include "store/backend/queries.h"
#include "store/backend/sqlite.h"
#include "store/read/check.h"
#include "store/store.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_PIECE (1 << 20)

static bool copy_bytes(int from, int to, struct err *e)
{
	char *piece = xcalloc(1, COPY_PIECE);
	ssize_t n = 0;
	int r = 0;

	while (r == 0 && (n = read(from, piece, COPY_PIECE)) > 0)
		r = io_write_all(to, piece, (size_t)n);
	free(piece);
	if (n < 0 || r < 0)
		return err_errno(e, n < 0 ? errno : -r, "could not copy the backup");
	return fsync(to) == 0 || err_errno(e, errno, "could not copy the backup");
}

static bool backup_copy(int in, const char *to, struct err *e)
{
	AUTO_FD out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (out < 0)
		return err_errno(e, errno, "could not make '%s'", to);
	return copy_bytes(in, out, e);
}

static bool make_mark(const char *mark, struct err *e)
{
	AUTO_FD fd = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fsync(fd) < 0)
		return err_errno(e, errno, "could not make '%s'", mark);
	return true;
}

/* Moves the file and its WAL together: SQLite would apply a WAL to whichever file has its name. */
static bool set_aside(const char *path, const char *kept, struct err *e)
{
	static const char *const ends[] = {"-wal", "-shm", ""};

	for (size_t i = 0; i < ELEMENTS(ends); i++) {
		AUTO_TEXT from = xprintf("%s%s", path, ends[i]);
		AUTO_TEXT to = xprintf("%s%s", kept, ends[i]);

		if (rename(from, to) < 0 && errno != ENOENT)
			return err_errno(e, errno, "could not move '%s' aside", from);
	}
	return true;
}

static bool directory_sync(const char *path, struct err *e)
{
	AUTO_TEXT name = xstrdup(path);
	AUTO_FD dir = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return (dir >= 0 && fsync(dir) == 0) || err_errno(e, errno, "could not write the directory of '%s'", path);
}

/* Takes the reason out of 'why', which is about the copy, and adds advice for a backup. */
static bool refuse_backup(const char *backup, const struct err *why, struct err *e)
{
	const char *reason = strstr(why->msg, "cannot be used: ");
	const char *end = strstr(why->msg, "; nothing was changed");

	if (strstr(why->msg, "newer version"))
		return err_set(e, ERR_REFUSED, "the backup '%s' was written by a newer version of jobsched; nothing was changed; "
			"install that version, or choose an older backup", backup);
	reason = reason ? reason + strlen("cannot be used: ") : why->msg;
	return err_set(e, ERR_REFUSED, "'%s' is no backup of a store: %.*s; nothing was changed; choose a file that 'jobctl db backup' wrote",
		backup, end && end > reason ? (int)(end - reason) : 200, reason);
}

static bool looks_like_a_store(const struct restore_options *o, struct err *e)
{
	static const char magic[16] = "SQLite format 3";
	char head[sizeof(magic)];
	struct stat st;

	if (fstat(o->backup_fd, &st) < 0)
		return err_errno(e, errno, "could not look at the backup '%s'", o->backup);
	if (S_ISREG(st.st_mode) && pread(o->backup_fd, head, sizeof(head), 0) == sizeof(head) && memcmp(head, magic, sizeof(magic)) == 0)
		return true;
	return refuse_backup(o->backup, &(struct err){.msg = "it is not an SQLite database"}, e);
}

/*
 * Copies the backup into the directory of the store under another name, checks it and migrates it.
 */
static bool restored_file_make(const struct restore_options *o, const char *fresh, struct err *e)
{
	AUTO(store) *s = NULL;
	struct err why = {};

	if (!looks_like_a_store(o, e) || !backup_copy(o->backup_fd, fresh, e))
		return false;
	if (!sqlite_inspect(fresh, &sqlite_sql, &why)) {
		if (why.kind == ERR_REFUSED)
			return refuse_backup(o->backup, &why, e);
		*e = why;
		return false;
	}
	return store_open(&(struct store_options){.where = fresh}, &s, e) && restore_reset(s, o->from_now, o->now, e);
}

/*
 * A daemon that uses the store would continue to write to the old file, and these changes would be
 * lost.
 */
static bool store_is_unused(const char *path, struct err *e)
{
	pid_t user;

	if (!lock_holder_user(path, &user))
		return true;
	if (user)
		return err_set(e, ERR_CONFLICT, "store '%s' is in use by pid %d; stop every daemon that uses it before a restore", path, user);
	return err_set(e, ERR_CONFLICT, "store '%s' is in use; stop every daemon that uses it before a restore", path);
}

static bool files_swap(const char *path, const char *fresh, const char *mark, char **ret_kept, struct err *e)
{
	AUTO_TEXT kept = xprintf("%s.before-restore", path);
	bool there = access(path, F_OK) == 0;

	for (int n = 2; access(kept, F_OK) == 0; n++) {
		free(kept);
		kept = xprintf("%s.before-restore-%d", path, n);
	}
	if (!make_mark(mark, e) || !directory_sync(path, e))
		return false;
	if (!store_is_unused(path, e)) { /* a daemon was started meanwhile; while the mark exists, no other can be */
		unlink(mark);
		return false;
	}
	if (!set_aside(path, kept, e))
		return false;
	if (rename(fresh, path) < 0)
		return err_errno(e, errno, "could not put the backup in place");
	if (!directory_sync(path, e))
		return false;
	if (unlink(mark) < 0)
		return err_errno(e, errno, "the backup is in place, but '%s' could not be removed", mark);
	*ret_kept = there ? STEAL(kept) : NULL;
	return true;
}

bool restore_store(const struct restore_options *o, char **ret_kept, struct err *e)
{
	AUTO_TEXT fresh = xprintf("%s.restore-new", o->where);
	AUTO_TEXT mark = sqlite_restore_mark(o->where);
	bool ok;

	if (strstr(o->where, "://"))
		return err_set(e, ERR_INVALID, "this store is PostgreSQL's; restore it with the tools it was backed up with");
	if (!store_is_unused(o->where, e))
		return false;
	sqlite_remove(fresh);
	ok = restored_file_make(o, fresh, e) && files_swap(o->where, fresh, mark, ret_kept, e);
	sqlite_remove(fresh);
	return ok;
}
