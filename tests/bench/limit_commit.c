/* SPDX-License-Identifier: Apache-2.0 */
/* Measures bare SQLite commits. */
#include "bench/measure.h"
#include <err.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void sql(sqlite3 *db, const char *text)
{
	char *message = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		errx(1, "%s: %s", text, message);
}

double limit_commit(const char *dir, int rows, double seconds)
{
	char path[4096], pad[200];
	sqlite3 *db;
	sqlite3_stmt *insert;
	long written = 0;
	double start;

	snprintf(path, sizeof(path), "%s/limit-%d.db", dir, rows);
	memset(pad, 'x', sizeof(pad));
	if (sqlite3_open(path, &db) != SQLITE_OK)
		errx(1, "%s: %s", path, sqlite3_errmsg(db));
	sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (id INTEGER PRIMARY KEY, spec)");
	if (sqlite3_prepare_v2(db, "INSERT INTO t (spec) VALUES (?)", -1, &insert, NULL) != SQLITE_OK)
		errx(1, "%s", sqlite3_errmsg(db));
	sqlite3_bind_text(insert, 1, pad, sizeof(pad), SQLITE_STATIC);
	start = bench_now();
	while (bench_now() - start < seconds) {
		sql(db, "BEGIN IMMEDIATE");
		for (int i = 0; i < rows; i++, sqlite3_reset(insert))
			if (sqlite3_step(insert) != SQLITE_DONE)
				errx(1, "%s", sqlite3_errmsg(db));
		sql(db, "COMMIT");
		written += rows;
	}
	seconds = bench_now() - start;
	sqlite3_finalize(insert);
	sqlite3_close(db);
	unlink(path);
	return (double)written / seconds;
}
