/* SPDX-License-Identifier: Apache-2.0 */
/* Data shared by the files of the SQLite backend. */
#pragma once
#include "store/backend/db.h"
#include "store/backend/reserve.h"
#include <sqlite3.h>

struct db_sqlite {
	struct db db;
	sqlite3 *h;           /* owned */
	sqlite3_vfs *vfs;     /* owned */
	sqlite3_stmt **stmts; /* owned, one per query */
	bool *given_only;     /* owned, one per query: its sets are read by given() and nothing else */
	sqlite3_stmt **control; /* owned, one per text; NULL: not used yet */
	char *path;           /* owned */
	const struct clock *clock; /* borrowed; for lease_clock() */
	bool read_only, checkpoints;
	bool broken;          /* the device failed: nothing is written any more */
	int wal_pages;        /* size of the WAL after the last commit */
	struct reserve reserve;
};

/* Sets e from a result code. Sets 'broken' if the device failed. Returns false. */
bool sqlite_fail(struct db_sqlite *d, int rc, const char *what, struct err *e);

#define SQLITE_GIVEN_ROWS "db_set" /* the type of a pointer to a struct db_set in a statement */

/* Registers the SQL functions that the statements use: given(:set) and lease_clock(). */
int sqlite_add_given(sqlite3 *h, const struct db_sql *sql, const struct clock *clock /* borrowed */);

/* Refuses a file that is not an intact store. Changes neither the file nor its directory. */
bool sqlite_inspect(const char *path, const struct db_sql *sql, struct err *e);

/*
 * Creates a new store under a temporary name and renames it, so that no incomplete store is ever
 * visible.
 */
bool sqlite_create(const char *path, const struct db_sql *sql, struct err *e);

/* Runs the missing migrations, each in its own transaction. Refuses a newer schema. */
bool sqlite_migrate(sqlite3 *h, const char *path, const struct db_sql *sql, struct err *e);
bool sqlite_check_schema(sqlite3 *h, const char *path, const struct db_sql *sql, int *ret, struct err *e);

/* Copies the store into a new file and syncs it. Returns a result code. */
int sqlite_copy(sqlite3 *h, const struct db_sql *sql, const char *path);
void sqlite_remove(const char *path); /* with the files that SQLite keeps beside it */
/* The name of the file that exists while a restore is incomplete. Caller frees. */
char *sqlite_restore_mark(const char *path);

/* Whether a prepared statement has the parameters and columns that the .sql file declares. */
bool sqlite_check_shape(const struct db_query *q, sqlite3_stmt *s, struct err *e);

/*
 * Sets ERR_REFUSED: "store 'path' cannot be used: why", and how to restore a backup. Returns false.
 */
bool sqlite_refuse(const char *path, const char *why, struct err *e);
