/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite backend: statements, transactions and checkpoints of a file in WAL mode; each commit is
 * synced.
 */
#include "store/backend/sqlite.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/text.h"
#include "store/backend/queries.h"
#include "store/backend/sqlite_wal_file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define BUSY_MS 5000
#define BUSY_TRIES 2
#ifdef JOBSCHED_FAILPOINTS
#define CHECKPOINT_PAGES 200                     /* low, so that short tests reach it */
#else
#define CHECKPOINT_PAGES 4000                    /* 16 MiB: a page that is written often is copied back once */
#endif
#define TRUNCATE_PAGES (64 * 1024 * 1024 / 4096) /* 64 MiB: then a checkpoint waits for readers */

static struct db_sqlite *sqlite_db(struct db *db)
{
	return (struct db_sqlite *)db;
}

static bool device_failed(int rc)
{
	return rc == SQLITE_IOERR || rc == SQLITE_READONLY || rc == SQLITE_CANTOPEN ||
	       rc == SQLITE_PERM || rc == SQLITE_PROTOCOL;
}

bool sqlite_fail(struct db_sqlite *d, int rc, const char *what, struct err *e)
{
	const char *why = sqlite3_errmsg(d->h);
	enum err_kind kind = ERR_INTERNAL;

	switch (rc & 0xff) {
	case SQLITE_NOMEM:
	case SQLITE_MISUSE:
		abort();
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, ERR_BUSY, "store '%s' is locked by another process; try again", d->path);
	case SQLITE_FULL:
		return err_set(e, ERR_FULL, "no space left for the store '%s': %s", d->path, what);
	case SQLITE_TOOBIG:
		return err_set(e, ERR_TOO_LARGE, "%s: too large for the store", what);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		d->broken = true;
		return sqlite_refuse(d->path, why, e);
	default:
		break;
	}
	if (device_failed(rc & 0xff) && !d->read_only) {
		d->broken = true;
		kind = ERR_UNCERTAIN;
	}
	return err_set(e, kind, "store '%s': %s: %s", d->path, what, why);
}

static bool sq_run_text(struct db_sqlite *d, enum sqlite_text text, const char *what, struct err *e)
{
	int rc = sqlite3_exec(d->h, d->db.sql->texts[text], NULL, NULL, NULL);

	return rc == SQLITE_OK || sqlite_fail(d, rc, what, e);
}

/* A text of one statement: BEGIN, COMMIT and the like. It is compiled at its first use. */
static bool sq_run_control(struct db_sqlite *d, enum sqlite_text text, const char *what, struct err *e)
{
	sqlite3_stmt **at = &d->control[text];
	int rc = SQLITE_OK;

	if (!*at)
		rc = sqlite3_prepare_v3(d->h, d->db.sql->texts[text], -1, SQLITE_PREPARE_PERSISTENT, at, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_step(*at);
		rc = sqlite3_reset(*at);
	}
	return rc == SQLITE_OK || sqlite_fail(d, rc, what, e);
}

/* ---- open and close ---- */

/* Without statistics of memory, malloc() in SQLite takes no lock that all connections share. */
void db_process_init(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int on_commit(void *arg, sqlite3 *h, const char *name, int pages)
{
	struct db_sqlite *d = arg;

	(void)h;
	(void)name;
	d->wal_pages = pages;
	return SQLITE_OK;
}

static bool open_handle(struct db_sqlite *d, int busy_ms, struct err *e)
{
	int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(d->path, &d->h,
		flags | (d->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE), d->vfs->zName);

	if (rc == SQLITE_OK)
		rc = sqlite_add_given(d->h, d->db.sql, d->clock);
	if (rc != SQLITE_OK)
		return sqlite_fail(d, rc, "open", e);
	sqlite3_busy_timeout(d->h, busy_ms ? busy_ms : BUSY_MS);
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !d->checkpoints, NULL);
	if (!sq_run_text(d, TEXT_SQLITE_SETUP, "set up", e))
		return false;
	/* Setting wal_autocheckpoint replaces the hook, so the hook is installed after it. */
	sqlite3_wal_hook(d->h, on_commit, d);
	return true;
}

static void sq_close(struct db *db)
{
	struct db_sqlite *d = sqlite_db(db);

	if (!d)
		return;
	for (int i = 0; d->stmts && i < db->sql->n_queries; i++)
		sqlite3_finalize(d->stmts[i]);
	for (int i = 0; i < TEXT_SQLITE_MAX; i++)
		sqlite3_finalize(d->control[i]);
	if (d->broken && d->h) /* do not write to a failing device again */
		sqlite3_db_config(d->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_close(d->h);
	sqlite_wal_file_vfs_free(d->vfs);
	reserve_done(&d->reserve);
	free(d->stmts);
	free(d->given_only);
	free(d->control);
	free(d->path);
	free(d);
}

static bool file_inspect(struct db_sqlite *d, const struct db_sql *sql, struct err *e)
{
	AUTO_TEXT wal = xprintf("%s-wal", d->path);
	struct stat st;

	if (stat(d->path, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			return sqlite_refuse(d->path, "it is not a regular file", e);
		if (st.st_size == 0)
			return sqlite_refuse(d->path, "the file is empty", e);
		if (d->read_only)
			return true;
		return sqlite_inspect(d->path, sql, e);
	}
	if (errno == EACCES)
		return sqlite_refuse(d->path, "permission denied", e);
	if (errno != ENOENT)
		return err_errno(e, errno, "store '%s'", d->path);
	if (d->read_only)
		return err_set(e, ERR_NOT_FOUND, "store '%s': there is no such file", d->path);
	if (access(wal, F_OK) == 0)
		return sqlite_refuse(d->path, "the file is missing, but its '-wal' file exists", e);
	return sqlite_create(d->path, sql, e);
}

/* Checked first, because SQLite's own message does not say more than "unable to open". */
static bool writable(struct db_sqlite *d, struct err *e)
{
	if (d->read_only || access(d->path, W_OK) == 0)
		return true;
	if (errno == EROFS)
		return err_set(e, ERR_BUSY, "store '%s': the file system is read-only; "
			"make it writable again, then start", d->path);
	return sqlite_refuse(d->path, "no permission to write it", e);
}

static bool format_writable(struct db_sqlite *d, struct err *e)
{
	return d->read_only || !sqlite3_db_readonly(d->h, "main") ||
	       sqlite_refuse(d->path, "SQLite can only read this format", e);
}

static bool open_checked(struct db_sqlite *d, const struct db_options *o, struct err *e)
{
	int version;

	if (!file_inspect(d, d->db.sql, e) || !writable(d, e) || !open_handle(d, o->busy_ms, e) ||
	    !format_writable(d, e))
		return false;
	if (d->read_only)
		return sqlite_check_schema(d->h, d->path, d->db.sql, &version, e);
	return sqlite_migrate(d->h, d->path, d->db.sql, e);
}

static struct db_sqlite *new_handle(const struct db_options *o)
{
	struct db_sqlite *d = xcalloc(1, sizeof(*d));

	d->db = (struct db){.ops = &db_sqlite_ops, .sql = o->sql ? o->sql : &sqlite_sql, .pid = getpid()};
	d->control = xcalloc(TEXT_SQLITE_MAX, sizeof(*d->control));
	d->vfs = sqlite_wal_file_vfs_new();
	d->path = xprintf("%s%s", o->where[0] == '/' ? "" : "./", o->where);
	d->clock = o->clock ? o->clock : &clock_system;
	d->read_only = o->read_only;
	d->checkpoints = !o->read_only && !o->no_checkpoint;
	return d;
}

static bool sq_open(const struct db_options *o, struct db **ret, struct err *e)
{
	for (int try = 0;; try++) {
		struct db_sqlite *d = new_handle(o);
		struct err why = {};

		if (!d->read_only)
			reserve_init(&d->reserve, d->path);
		if (open_checked(d, o, &why)) {
			reserve_take(&d->reserve);
			*ret = &d->db;
			return true;
		}
		/*
		 * On a full disk not even the shared-memory file can be created: release the
		 * reserve and try again.
		 */
		if (try == 0 && !d->read_only && d->reserve.held && why.kind != ERR_REFUSED &&
		    (why.kind == ERR_FULL || sqlite3_system_errno(d->h) == ENOSPC)) {
			reserve_release(&d->reserve);
			sq_close(&d->db);
			continue;
		}
		sq_close(&d->db);
		if (why.kind == ERR_UNCERTAIN)
			why.kind = ERR_BUSY; /* nothing was written yet, so a restart may help */
		*e = why;
		return false;
	}
}

static bool sq_prepare(struct db *db, struct err *e)
{
	struct db_sqlite *d = sqlite_db(db);

	d->stmts = xcalloc((size_t)db->sql->n_queries, sizeof(sqlite3_stmt *));
	d->given_only = xcalloc((size_t)db->sql->n_queries, sizeof(*d->given_only));
	for (int i = 0; i < db->sql->n_queries; i++) {
		const struct db_query *q = &db->sql->queries[i];
		int rc = sqlite3_prepare_v3(d->h, q->sql, -1, SQLITE_PREPARE_PERSISTENT, &d->stmts[i], NULL);

		if (rc == SQLITE_ERROR) /* a table or column is missing although the schema version is right */
			return sqlite_refuse(d->path, sqlite3_errmsg(d->h), e);
		if (rc != SQLITE_OK) {
			sqlite_fail(d, rc, q->name, e);
			return false;
		}
		if (!sqlite_check_shape(q, d->stmts[i], e))
			return false;
		d->given_only[i] = strstr(q->sql, "given(") && !strstr(q->sql, "json");
	}
	return true;
}

static bool sq_reconnect(struct db *db, int wait_ms, struct err *e)
{
	(void)wait_ms;
	return err_set(e, ERR_INTERNAL, "store '%s': SQLite has no connection to reopen", sqlite_db(db)->path);
}

/* ---- transactions ---- */

static bool begin_with_retry(struct db_sqlite *d, bool write, struct err *e)
{
	for (int try = 1;; try++) {
		unsigned char jitter;

		if (sq_run_control(d, write ? TEXT_SQLITE_BEGIN_WRITE : TEXT_SQLITE_BEGIN_READ, "begin", e))
			return true;
		if (!e || e->kind != ERR_BUSY || try == BUSY_TRIES)
			return false;
		io_random(&jitter, 1);
		nanosleep(&(struct timespec){.tv_nsec = (10 + jitter % 40) * 1000000L}, NULL);
	}
}

static bool sq_begin(struct db *db, bool write, struct err *e)
{
	struct db_sqlite *d = sqlite_db(db);
	bool begun;

	db_assert_owner(db);
	if (write && d->broken)
		return err_set(e, ERR_UNCERTAIN, "store '%s' had an I/O error; nothing more is written", d->path);
	db_wait_mark(db, true);
	begun = begin_with_retry(d, write, e);
	db_wait_mark(db, false);
	return begun;
}

static void sq_rollback(struct db *db)
{
	struct db_sqlite *d = sqlite_db(db);

	if (!sqlite3_get_autocommit(d->h))
		sqlite3_exec(d->h, db->sql->texts[TEXT_SQLITE_ROLLBACK], NULL, NULL, NULL);
}

/* Copies the WAL into the file once it is long. A failure does not affect the commit before it. */
static void checkpoint(struct db_sqlite *d)
{
	int mode = d->wal_pages >= TRUNCATE_PAGES ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
	int rc;

	if (!d->checkpoints || d->wal_pages < CHECKPOINT_PAGES)
		return;
	rc = failpoint(FP_CHECKPOINT_PRE) ? SQLITE_IOERR : sqlite3_wal_checkpoint_v2(d->h, NULL, mode, NULL, NULL);
	if (failpoint(FP_CHECKPOINT_POST))
		rc = SQLITE_IOERR;
	if (device_failed(rc & 0xff) && sqlite3_system_errno(d->h) != ENOSPC)
		d->broken = true;
}

static bool sq_commit(struct db *db, struct err *e)
{
	struct db_sqlite *d = sqlite_db(db);
	bool done;

	db_wait_mark(db, true); /* waits for the disk */
	done = sq_run_control(d, TEXT_SQLITE_COMMIT, "commit", e);
	if (done)
		checkpoint(d);
	else
		sq_rollback(db);
	db_wait_mark(db, false);
	return done;
}

static bool sq_savepoint(struct db *db, struct err *e)
{
	return sq_run_control(sqlite_db(db), TEXT_SQLITE_SAVEPOINT, "savepoint", e);
}

static bool sq_release(struct db *db, struct err *e)
{
	return sq_run_control(sqlite_db(db), TEXT_SQLITE_RELEASE, "release", e);
}

static bool sq_rollback_to(struct db *db, struct err *e)
{
	return sq_run_text(sqlite_db(db), TEXT_SQLITE_ROLLBACK_TO, "roll back", e);
}

/* ---- statements ---- */

static void sq_bind_int(struct db *db, int query, int at, int64_t v)
{
	if (sqlite3_bind_int64(sqlite_db(db)->stmts[query], at + 1, v) != SQLITE_OK)
		abort();
}

static void sq_bind_text(struct db *db, int query, int at, const char *s)
{
	/* without a length SQLite knows that the text ends with a NUL byte, and given() reads it without a copy */
	int rc = s ? sqlite3_bind_text(sqlite_db(db)->stmts[query], at + 1, s, -1, SQLITE_STATIC)
		   : sqlite3_bind_null(sqlite_db(db)->stmts[query], at + 1);

	if (rc == SQLITE_TOOBIG) /* stays null, which given() rejects */
		sqlite3_bind_null(sqlite_db(db)->stmts[query], at + 1);
	else if (rc != SQLITE_OK)
		abort();
}

/* json_each() and the like would take the pointer for null, so their statements get a text. */
static bool sq_bind_rows(struct db *db, int query, int at, const struct db_set *rows)
{
	struct db_sqlite *d = sqlite_db(db);

	if (!d->given_only[query])
		return false;
	if (sqlite3_bind_pointer(d->stmts[query], at + 1, (void *)(uintptr_t)rows, SQLITE_GIVEN_ROWS, NULL) != SQLITE_OK)
		abort();
	return true;
}

static enum db_step sq_step(struct db *db, int query, struct err *e)
{
	struct db_sqlite *d = sqlite_db(db);
	int rc = sqlite3_step(d->stmts[query]);

	if (rc == SQLITE_ROW)
		return DB_ROW;
	if (rc == SQLITE_DONE)
		return DB_DONE;
	sqlite_fail(d, rc, db->sql->queries[query].name, e);
	return DB_FAILED;
}

static int64_t sq_column_int(struct db *db, int query, int at)
{
	return sqlite3_column_int64(sqlite_db(db)->stmts[query], at);
}

static const char *sq_column_text(struct db *db, int query, int at)
{
	return (const char *)sqlite3_column_text(sqlite_db(db)->stmts[query], at);
}

static void sq_reset(struct db *db, int query)
{
	sqlite3_reset(sqlite_db(db)->stmts[query]);
	sqlite3_clear_bindings(sqlite_db(db)->stmts[query]);
}

static bool sq_reserve_held(struct db *db)
{
	return reserve_take(&sqlite_db(db)->reserve);
}

static void sq_reserve_release(struct db *db)
{
	reserve_release(&sqlite_db(db)->reserve);
}

/* ---- the whole file ---- */

static bool sq_backup(struct db *db, const char *path, struct err *e)
{
	struct db_sqlite *d = sqlite_db(db);
	int rc = sqlite_copy(d->h, db->sql, path);

	return rc == SQLITE_OK || sqlite_fail(d, rc, "back up", e);
}

static void sq_set_checkpoints(struct db *db, bool on)
{
	struct db_sqlite *d = sqlite_db(db);

	if (d->checkpoints == on)
		return;
	d->checkpoints = on;
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !on, NULL);
}

static int on_problem(void *arg, int n, char **values, char **names)
{
	(void)n;
	(void)names;
	if (values[0] && strcmp(values[0], "ok") != 0)
		strv_add(arg, values[0]);
	return 0;
}

static bool sq_check(struct db *db, struct strv *ret, struct err *e)
{
	struct db_sqlite *d = sqlite_db(db);
	int rc = sqlite3_exec(d->h, db->sql->texts[TEXT_SQLITE_INTEGRITY_CHECK], on_problem, ret, NULL);

	if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB) {
		strv_add(ret, sqlite3_errmsg(d->h));
		return true;
	}
	return rc == SQLITE_OK || sqlite_fail(d, rc, "check", e);
}

const struct db_ops db_sqlite_ops = {
	.name = "sqlite",
	.open = sq_open,
	.close = sq_close,
	.prepare = sq_prepare,
	.reconnect = sq_reconnect,
	.begin = sq_begin,
	.commit = sq_commit,
	.rollback = sq_rollback,
	.savepoint = sq_savepoint,
	.release = sq_release,
	.rollback_to = sq_rollback_to,
	.bind_int = sq_bind_int,
	.bind_text = sq_bind_text,
	.bind_rows = sq_bind_rows,
	.step = sq_step,
	.column_int = sq_column_int,
	.column_text = sq_column_text,
	.reset = sq_reset,
	.reserve_held = sq_reserve_held,
	.reserve_release = sq_reserve_release,
	.backup = sq_backup,
	.set_checkpoints = sq_set_checkpoints,
	.check = sq_check,
};
