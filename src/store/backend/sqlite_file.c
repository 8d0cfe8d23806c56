/* SPDX-License-Identifier: Apache-2.0 */
/* Inspects, creates and migrates the SQLite file. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/text.h"
#include "store/backend/queries.h"
#include "store/backend/sqlite.h"
#include "store/backend/sqlite_time_limit.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define APPLICATION_ID "1785684595" /* 'jobs' in ASCII; sqlite.sql writes it */
#define QUICK_CHECK_TIME (500 * USEC_MSEC) /* limits the start-up time of a large store */

bool sqlite_refuse(const char *path, const char *why, struct err *e)
{
	return err_set(e, ERR_REFUSED, "store '%s' cannot be used: %s; nothing was changed; "
		"restore a backup with 'jobctl db restore FILE'", path, why);
}

/* The first column of the first row; NULL: see *rc. Caller frees. */
static char *one_value(sqlite3 *h, const char *sql, int *rc)
{
	sqlite3_stmt *s = NULL;
	char *value = NULL;

	*rc = sqlite3_prepare_v2(h, sql, -1, &s, NULL);
	if (*rc == SQLITE_OK)
		*rc = sqlite3_step(s);
	if (*rc == SQLITE_ROW)
		value = xstrdup((const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	return value;
}

/*
 * Distinguishes temporary failures (busy, full, I/O error) from a damaged file, which is refused.
 */
static bool fail_open(sqlite3 *h, int rc, const char *path, struct err *e)
{
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		abort();
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_BUSY, "store '%s' is locked by another process; try again", path);
	case SQLITE_FULL:
		return err_set(e, ERR_FULL, "no space left for the store '%s'", path);
	case SQLITE_IOERR:
		return err_set(e, sqlite3_system_errno(h) == ENOSPC ? ERR_FULL : ERR_BUSY,
			"store '%s': %s", path, sqlite3_errmsg(h));
	default:
		return sqlite_refuse(path, sqlite3_errmsg(h), e);
	}
}

bool sqlite_check_schema(sqlite3 *h, const char *path, const struct db_sql *sql, int *ret, struct err *e)
{
	int rc;
	AUTO_TEXT id = one_value(h, sql->texts[TEXT_SQLITE_APPLICATION_ID], &rc);
	AUTO_TEXT version = NULL;
	int64_t n;

	if (!id)
		return fail_open(h, rc, path, e);
	if (strcmp(id, APPLICATION_ID) != 0)
		return sqlite_refuse(path, "it belongs to another program", e);
	version = one_value(h, sql->texts[TEXT_SQLITE_SCHEMA_VERSION], &rc);
	if (!version)
		return fail_open(h, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, path, e);
	if (!text_parse_int(version, 1, 1000000, &n))
		return sqlite_refuse(path, "its schema version is missing or invalid", e);
	if (n > sql->n_migrations)
		return err_set(e, ERR_REFUSED, "store '%s' has schema version %lld, this jobsched supports up to %d: it was "
			"written by a newer version; nothing was changed; install that version, or restore the copy that "
			"was made before with 'jobctl db restore %s.schema%d'", path, (long long)n,
			sql->n_migrations, path, sql->n_migrations);
	*ret = (int)n;
	return true;
}

static bool sqlite_migrate_once(sqlite3 *h, const char *path, const struct db_sql *sql, int number, struct err *e)
{
	int version = 0;

	if (sqlite3_exec(h, sql->texts[TEXT_SQLITE_BEGIN_WRITE], NULL, NULL, NULL) != SQLITE_OK)
		return fail_open(h, sqlite3_extended_errcode(h), path, e);
	if ((number == 1 || (sqlite_check_schema(h, path, sql, &version, e) && version == number - 1)) &&
	    sqlite3_exec(h, sql->migrations[number - 1], NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite_check_schema(h, path, sql, &version, e) && version == number && failpoint_ok(FP_MIGRATE, e) &&
	    sqlite3_exec(h, sql->texts[TEXT_SQLITE_COMMIT], NULL, NULL, NULL) == SQLITE_OK)
		return true;
	if (version >= number) /* another process was faster, or the commit failed */
		err_set(e, ERR_BUSY, "store '%s': migration %d: %s", path, number, sqlite3_errmsg(h));
	else
		fail_open(h, sqlite3_extended_errcode(h), path, e);
	if (!sqlite3_get_autocommit(h))
		sqlite3_exec(h, sql->texts[TEXT_SQLITE_ROLLBACK], NULL, NULL, NULL);
	return false;
}

static bool sync_directory(const char *path, struct err *e)
{
	AUTO_TEXT copy = xstrdup(path);
	AUTO_FD dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || fsync(dir) < 0)
		return err_errno(e, errno, "store '%s': its directory", path);
	return true;
}

int sqlite_copy(sqlite3 *h, const struct db_sql *sql, const char *path)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(h, sql->texts[TEXT_SQLITE_BACKUP], -1, &s, NULL);
	AUTO_FD fd = -1;

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	sqlite3_finalize(s);
	if (rc != SQLITE_DONE)
		return rc == SQLITE_OK ? SQLITE_ERROR : rc;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && fsync(fd) == 0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

/*
 * Keeps a copy for a downgrade, because older versions refuse a newer schema. The copy is never
 * deleted.
 */
static bool keep_copy(sqlite3 *h, const char *path, const struct db_sql *sql, int version, struct err *e)
{
	AUTO_TEXT copy = xprintf("%s.schema%d", path, version);
	AUTO_TEXT temp = xprintf("%s.new", copy);
	struct err why = {};
	int rc;

	if (access(copy, F_OK) == 0)
		return true;
	sqlite_remove(temp);
	rc = sqlite_copy(h, sql, temp);
	if (rc == SQLITE_OK && rename(temp, copy) == 0 && sync_directory(path, &why))
		return true;
	sqlite_remove(temp);
	fail_open(h, rc == SQLITE_OK ? SQLITE_IOERR : rc, path, &why);
	return err_set(e, why.kind == ERR_FULL ? ERR_FULL : ERR_BUSY, "store '%s' has schema version %d and must be migrated, but could not "
		"be copied to '%s' before; nothing was changed; free some space there, then start again", path, version, copy);
}

bool sqlite_migrate(sqlite3 *h, const char *path, const struct db_sql *sql, struct err *e)
{
	AUTO_TEXT mode = NULL;
	int version, rc;

	if (!sqlite_check_schema(h, path, sql, &version, e))
		return false;
	if (version < sql->n_migrations && !keep_copy(h, path, sql, version, e))
		return false;
	while (version < sql->n_migrations)
		if (!sqlite_migrate_once(h, path, sql, ++version, e))
			return false;
	mode = one_value(h, sql->texts[TEXT_SQLITE_JOURNAL_MODE], &rc);
	if (!mode || strcmp(mode, "wal") != 0)
		return fail_open(h, mode ? SQLITE_BUSY : rc, path, e);
	return true;
}

/* ---- create ---- */

static bool fill_new(const char *temp, const struct db_sql *sql, struct err *e)
{
	sqlite3 *h = NULL;
	bool ok;

	ok = sqlite3_open_v2(temp, &h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
	     sqlite3_exec(h, sql->texts[TEXT_SQLITE_SETUP], NULL, NULL, NULL) == SQLITE_OK &&
	     sqlite3_exec(h, sql->texts[TEXT_SQLITE_CREATE], NULL, NULL, NULL) == SQLITE_OK;
	if (!ok)
		fail_open(h, sqlite3_extended_errcode(h), temp, e);
	for (int n = 1; ok && n <= sql->n_migrations; n++)
		ok = sqlite_migrate_once(h, temp, sql, n, e);
	if (sqlite3_close(h) != SQLITE_OK && ok)
		ok = err_set(e, ERR_BUSY, "store '%s': could not close the new file", temp);
	return ok;
}

void sqlite_remove(const char *path)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-journal", "-reserve"};

	for (size_t i = 0; i < ELEMENTS(ends); i++) {
		AUTO_TEXT name = xprintf("%s%s", path, ends[i]);

		unlink(name);
	}
}

char *sqlite_restore_mark(const char *path)
{
	return xprintf("%s.restoring", path);
}

/*
 * EEXIST: another process has created the store meanwhile. Unlike link(), rename leaves no second
 * name if the daemon is killed here.
 */
static bool name_new(const char *temp, const char *path)
{
	if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return true;
	return errno == EINVAL && link(temp, path) == 0; /* the file system does not support the flag */
}

bool sqlite_create(const char *path, const struct db_sql *sql, struct err *e)
{
	char id[RANDOM_ID_LEN + 1];
	AUTO_TEXT restoring = sqlite_restore_mark(path);
	AUTO_TEXT temp = NULL;
	AUTO_FD fd = -1;
	bool ok;

	if (access(restoring, F_OK) == 0)
		return err_set(e, ERR_REFUSED, "store '%s': a restore was started and not completed; nothing was changed; "
			"run 'jobctl db restore FILE' again", path);
	io_random_id(id);
	temp = xprintf("%s.%.8s.new", path, id);
	fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_REFUSED, "store '%s': its directory does not exist; create it, or set 'store'",
			path);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_set(e, ERR_REFUSED, "store '%s': no permission to write to its directory", path);
	if (fd < 0 && errno == EROFS)
		return err_set(e, ERR_BUSY, "store '%s': the file system is read-only", path);
	if (fd < 0)
		return err_errno(e, errno, "store '%s'", path);
	close(STEAL_FD(fd)); /* before SQLite opens it: closing it later would drop SQLite's locks */
	ok = fill_new(temp, sql, e);
	if (ok && !name_new(temp, path) && errno != EEXIST)
		ok = err_errno(e, errno, "store '%s'", path);
	sqlite_remove(temp);
	return ok && sync_directory(path, e);
}

/* ---- inspect ---- */

static bool quick_check(sqlite3 *h, const char *path, const struct db_sql *sql, struct err *e)
{
	struct sqlite_time_limit *limit = sqlite_time_limit_start(h, QUICK_CHECK_TIME);
	AUTO_TEXT verdict = NULL;
	int rc;

	verdict = one_value(h, sql->texts[TEXT_SQLITE_QUICK_CHECK], &rc);
	if (sqlite_time_limit_end(limit))
		return true; /* an interrupted check reports the pages that it has not read as unused */
	if (!verdict)
		return fail_open(h, rc, path, e);
	return strcmp(verdict, "ok") == 0 || sqlite_refuse(path, verdict, e);
}

bool sqlite_check_shape(const struct db_query *q, sqlite3_stmt *s, struct err *e)
{
	if (sqlite3_bind_parameter_count(s) != q->n_params ||
	    sqlite3_column_count(s) != q->n_columns)
		return err_set(e, ERR_INTERNAL, "statement '%s': %d parameters and %d columns", q->name,
			sqlite3_bind_parameter_count(s), sqlite3_column_count(s));
	for (int i = 0; i < q->n_columns; i++)
		if (strcmp(sqlite3_column_name(s, i), q->columns[i].name) != 0)
			return err_set(e, ERR_INTERNAL, "statement '%s': column '%s' is called '%s'",
				q->name, q->columns[i].name, sqlite3_column_name(s, i));
	return true;
}

/* Prepares all statements: a damaged schema is not found by checking pages. */
static bool check_tables(sqlite3 *h, const char *path, const struct db_sql *sql, int version, struct err *e)
{
	for (int i = 0; version == sql->n_migrations && i < sql->n_queries; i++) {
		sqlite3_stmt *s = NULL;
		int rc = sqlite3_prepare_v2(h, sql->queries[i].sql, -1, &s, NULL);
		struct err shape = {};
		bool fits = rc == SQLITE_OK && sqlite_check_shape(&sql->queries[i], s, &shape);

		sqlite3_finalize(s);
		if (rc != SQLITE_OK)
			return fail_open(h, rc, path, e);
		if (!fits)
			return sqlite_refuse(path, shape.msg, e);
	}
	return true;
}

static char *immutable_uri(const char *path)
{
	AUTO_DONE(buf) uri = {};

	buf_str(&uri, "file:");
	for (const char *p = path; *p; p++)
		if (isalnum((unsigned char)*p) || strchr("/._-", *p))
			buf_char(&uri, *p);
		else
			buf_printf(&uri, "%%%02X", (unsigned char)*p);
	buf_str(&uri, "?immutable=1");
	return buf_steal(&uri);
}

/*
 * Without a WAL the file is complete and opened as immutable. With a WAL it is opened in exclusive
 * mode, in which the index of the WAL is kept in memory; without a checkpoint on close nothing is
 * written. ERR_BUSY with a WAL means that another process or connection is using the store, so it
 * is not checked.
 */
bool sqlite_inspect(const char *path, const struct db_sql *sql, struct err *e)
{
	AUTO_TEXT wal = xprintf("%s-wal", path);
	bool logged = access(wal, F_OK) == 0;
	AUTO_TEXT name = logged ? xstrdup(path) : immutable_uri(path);
	struct err why = {};
	sqlite3 *h = NULL;
	int version, rc;
	bool ok;

	rc = sqlite3_open_v2(name, &h, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		(logged ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI), NULL);
	if (rc != SQLITE_OK) {
		ok = sqlite_refuse(path, errno == EACCES ? "permission denied" : sqlite3_errmsg(h), &why);
	} else {
		sqlite_add_given(h, sql, &clock_system);
		sqlite3_db_config(h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		sqlite3_db_config(h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_exec(h, sql->texts[TEXT_SQLITE_INSPECT], NULL, NULL, NULL);
		ok = sqlite_check_schema(h, path, sql, &version, &why) &&
		     check_tables(h, path, sql, version, &why) && quick_check(h, path, sql, &why);
	}
	sqlite3_close(h);
	if (!ok && logged && why.kind == ERR_BUSY)
		return true;
	if (!ok)
		*e = why;
	return ok;
}
