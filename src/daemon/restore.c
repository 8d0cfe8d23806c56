/* SPDX-License-Identifier: Apache-2.0 */
/* Restores a store from a backup with the privileges of the owner of the store directory. */
#include "daemon/restore.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/config.h"
#include "daemon/loop/exit_status.h"
#include "daemon/engine.h"
#include "store/read/check.h"
#include "store/backend/file_lock.h"
#include "store/backend/file_system.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int restore_exit_status(enum err_kind kind)
{
	switch (kind) {
	case ERR_CONFLICT:
		return EXIT_OTHER_RUNS;
	case ERR_REFUSED:
	case ERR_INVALID:
		return EXIT_CONFIG;
	case ERR_NOT_FOUND:
		return EXIT_NO_INPUT;
	case ERR_DENIED:
		return EXIT_NOT_ALLOWED;
	default:
		return EXIT_FAILURE;
	}
}

/*
 * Opened with the privileges of the caller, who may read files that the owner of the store may not.
 */
static bool open_backup(const char *path, int *ret, struct err *e)
{
	AUTO_TEXT wal = xprintf("%s-wal", path);
	struct stat st;

	*ret = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (*ret < 0)
		return err_set(e,
			errno == ENOENT	  ? ERR_NOT_FOUND
			: errno == EACCES ? ERR_DENIED
					  : ERR_INTERNAL,
			"cannot read the backup '%s': %s", path, strerror(errno));
	if (stat(wal, &st) == 0 && st.st_size > 0)
		return err_set(e, ERR_REFUSED,
			"'%s' is not a complete backup, a part of it is in '%s'; nothing was changed; "
			"copy both into one file with \"sqlite3 '%s' '.backup FILE'\" and restore that",
			path, wal, path);
	return true;
}

/*
 * Root opens no file in a directory whose owner could place links there: it first becomes the
 * owner, irrevocably.
 */
static bool become_owner(const char *dir, struct err *e)
{
	const struct passwd *pw;
	struct stat st;
	gid_t gid;

	if (geteuid() != 0 || stat(dir, &st) < 0 || st.st_uid == 0)
		return true;
	pw = getpwuid(st.st_uid);
	gid = pw ? pw->pw_gid : st.st_gid;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
		setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
		return err_errno(e, errno, "could not become the owner of '%s'", dir);
	if (setuid(0) == 0 || geteuid() != st.st_uid)
		return err_set(
			e, ERR_INTERNAL, "could not give up the privileges of root for '%s'", dir);
	return true;
}

static bool replace_store(const struct restore_command *c, int backup, const char *where,
	char **ret_kept, struct err *e)
{
	AUTO(file_lock) *lock = NULL;
	enum file_system_verdict verdict;
	AUTO_TEXT type = NULL;

	return file_system_check(where, &verdict, &type, e) &&
	       file_lock_take(&(struct file_lock_options){.where = where,
				      .instance = c->instance,
				      .node = "",
				      .socket = "",
				      .exclusive = true},
		       &lock, e) &&
	       restore_store(&(struct restore_options){.backup = c->backup,
				     .backup_fd = backup,
				     .where = where,
				     .from_now = c->from_now,
				     .now = clock_now(c->clock)},
		       ret_kept, e);
}

int restore_run(const struct restore_command *c, const struct paths *p, const struct config *config)
{
	AUTO_TEXT named =
		config->store ? xstrdup(config->store) : xprintf("%s/jobs.db", p->state_dir);
	AUTO_TEXT copy = xstrdup(named);
	AUTO_TEXT where = NULL;
	AUTO_TEXT kept = NULL;
	AUTO_FD backup = -1;
	struct err e = {};
	bool ok;

	if (config_store_is_server(named))
		ok = err_set(&e, ERR_INVALID,
			"this store is in PostgreSQL; restore it with the tools of PostgreSQL");
	else
		ok = open_backup(c->backup, &backup, &e) && become_owner(dirname(copy), &e);
	if (ok) {
		where = engine_store_where(config, p); /* as the owner, because it follows links */
		ok = replace_store(c, backup, where, &kept, &e);
	}
	if (!ok) {
		log_error("%s", e.msg);
		return restore_exit_status(e.kind);
	}
	printf("restored '%s' from '%s'\n", where, c->backup);
	if (kept)
		printf("the previous store is kept as '%s'\n", kept);
	return 0;
}
