/* SPDX-License-Identifier: Apache-2.0 */
/* Store tests on SQLite: each store is a file in its own directory. */
#include "base/text.h"
#include "store/backend/sqlite.h"
#include "unit/store/store_suite.h"
#include <dirent.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

const struct db_ops *const fixture_ops = &db_sqlite_ops;
const struct db_sql *const place_sql = &sqlite_sql;
const struct suite_part *const store_engine_parts[] = {&store_backup_part, &store_file_part, &store_disk_part, NULL};

int place_group_setup(void **state)
{
	(void)state;
	return 0;
}

int place_group_teardown(void **state)
{
	(void)state;
	return 0;
}

char *place_new(void)
{
	AUTO_TEXT dir = xprintf("%s/store-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");

	assert_non_null(mkdtemp(dir));
	return xprintf("%s/jobs.db", dir);
}

void place_drop(const char *where)
{
	AUTO_TEXT copy = xstrdup(where);
	const char *dir = dirname(copy);
	DIR *d = opendir(dir);
	struct dirent *entry;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		AUTO_TEXT path = xprintf("%s/%s", dir, entry->d_name);

		if (entry->d_name[0] != '.')
			unlink(path);
	}
	closedir(d);
	rmdir(dir);
}

static void query(sqlite3 *h, const char *sql, struct buf *out)
{
	sqlite3_stmt *stmt = NULL;

	while (*sql) {
		if (sqlite3_prepare_v2(h, sql, -1, &stmt, &sql) != SQLITE_OK)
			fail_msg("%s: %s", sql, sqlite3_errmsg(h));
		while (stmt && sqlite3_step(stmt) == SQLITE_ROW && out) {
			for (int i = 0; i < sqlite3_column_count(stmt); i++) {
				const char *text = (const char *)sqlite3_column_text(stmt, i);

				buf_printf(out, "%s|", text ? text : "-");
			}
			buf_char(out, '\n');
		}
		sqlite3_finalize(stmt);
	}
}

/* Runs several queries on one connection: reading the schema takes longer than most queries. */
void place_queries(const char *where, const char *const *sql, size_t n, struct buf *out)
{
	sqlite3 *h = NULL;

	assert_int_equal(sqlite3_open_v2(where, &h, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	sqlite3_db_config(h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	for (size_t i = 0; i < n; i++)
		query(h, sql[i], out);
	sqlite3_close(h);
}

void place_explain(const char *where, const struct db_query *q, struct buf *out)
{
	AUTO_TEXT sql = xprintf("EXPLAIN QUERY PLAN %s", q->sql);
	sqlite3 *h = NULL;
	sqlite3_stmt *stmt = NULL;

	assert_int_equal(sqlite3_open_v2(where, &h, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	sqlite3_db_config(h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	assert_int_equal(sqlite_add_given(h, place_sql, &clock_system), SQLITE_OK);
	if (sqlite3_prepare_v2(h, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", q->name, sqlite3_errmsg(h));
	while (sqlite3_step(stmt) == SQLITE_ROW)
		buf_printf(out, "%s\n", (const char *)sqlite3_column_text(stmt, 3));
	sqlite3_finalize(stmt);
	sqlite3_close(h);
}

void place_query(const char *where, const char *sql, struct buf *out)
{
	place_queries(where, &sql, 1, out);
}

void place_clear(const char *where)
{
	place_query(where, "BEGIN; DELETE FROM jobs; DELETE FROM job_tags; DELETE FROM job_revisions; DELETE FROM templates; DELETE FROM owners; DELETE FROM due; DELETE FROM runs;"
		"DELETE FROM attempts; DELETE FROM outputs; DELETE FROM nodes; DELETE FROM boots; DELETE FROM counters; DELETE FROM running_jobs; DELETE FROM notices; DELETE FROM job_health;"
		"DELETE FROM run_states; DELETE FROM run_progress; DELETE FROM chains; DELETE FROM run_moves; DELETE FROM pauses; DELETE FROM job_pauses; DELETE FROM pauses_past; DELETE FROM tokens; DELETE FROM events; DELETE FROM segments; DELETE FROM node_orders; UPDATE leases SET holder = '', term = 0, until = 0; DELETE FROM buckets; DELETE FROM limits WHERE scope <> 'queue' OR key <> 'default'; DELETE FROM sqlite_sequence; COMMIT", NULL);
}
