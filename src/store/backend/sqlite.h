/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the SQLite engine share. */
#pragma once
#include "store/backend/db.h"
#include "store/backend/reserve.h"
#include <sqlite3.h>

struct db_sqlite {
	struct db db;
	sqlite3 *h;           /* owned */
	sqlite3_stmt **stmts; /* owned, one per query */
	char *path;           /* owned */
	bool read_only, checkpoints;
	bool broken;          /* the device failed: nothing is written any more */
	int wal_pages;        /* in the write-ahead log after the last commit */
	struct reserve reserve;
	const struct clock *clock; /* borrowed; of leases */
};

/* Sets e from a result code and remembers a failed device. Returns false. */
bool sqlite_fail(struct db_sqlite *d, int rc, const char *what, struct err *e);

/* Gives the handle the functions that the statements use: given(:set), which makes rows, and lease_clock(). */
int sqlite_add_given(sqlite3 *h, const struct db_sql *sql, const struct clock *clock /* of leases; borrowed */);

/* Refuses what is not a sound store of ours, and leaves every byte and name beside it as it was. */
bool sqlite_inspect(const char *path, const struct db_sql *sql, struct err *e);

/* Makes a new store under another name and moves it into place: it is there whole or not at all. */
bool sqlite_create(const char *path, const struct db_sql *sql, struct err *e);

/* Runs what migrations are missing, each in one transaction; refuses a newer schema. */
bool sqlite_migrate(sqlite3 *h, const char *path, const struct db_sql *sql, struct err *e);
bool sqlite_check_schema(sqlite3 *h, const char *path, const struct db_sql *sql, int *ret, struct err *e);

/* The whole store into a new file, durable when it returns. A result code. */
int sqlite_copy(sqlite3 *h, const struct db_sql *sql, const char *path);
void sqlite_remove(const char *path); /* the file and what SQLite has beside it */
/* While this file is there, a restore was begun and not finished. Caller frees. */
char *sqlite_restore_mark(const char *path);

/* Whether a prepared statement has the parameters and columns that the .sql file declares. */
bool sqlite_check_shape(const struct db_query *q, sqlite3_stmt *s, struct err *e);

/* "store 'path': why"; and where help is. Returns false with ERR_REFUSED. */
bool sqlite_refuse(const char *path, const char *why, struct err *e);
