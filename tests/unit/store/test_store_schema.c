/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of schema migrations: forward only, each whole or not at all. */
#include "base/text.h"
#include "store/ops/job/jobs.h"
#include "store/ops/job/templates.h"
#include "store/ops/op.h"
#include "store/ops/run/runs.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <string.h>

#define MIGRATIONS_MAX 64

static const char one_more[] = "CREATE TABLE extra (n INT); INSERT INTO extra VALUES (7);"
			       "UPDATE meta SET value = CAST(CAST(value AS INT) + 1 AS TEXT) WHERE key = 'schema'";
static const char one_broken[] = "UPDATE meta SET value = '99' WHERE key = 'schema'; INSERT INTO extra VALUES (8);"
				 "INSERT INTO no_such_table VALUES (1)";

/* The real migrations, one that adds a table, one that fails. */
static void more_migrations(const char **ret)
{
	int n = place_sql->n_migrations;

	assert_true(n + 2 <= MIGRATIONS_MAX);
	memcpy(ret, place_sql->migrations, (size_t)n * sizeof(*ret));
	ret[n] = one_more;
	ret[n + 1] = one_broken;
}

/* The texts live as long as the store that uses them: 'sql' is the caller's. */
static bool open_with(const char *where, const char *const *migrations, int n, struct db_sql *sql,
	struct store **ret, struct err *e)
{
	struct db_options o = {.where = where, .sql = sql};

	*sql = *place_sql;
	sql->migrations = migrations;
	sql->n_migrations = n;
	return store_open_with(fixture_ops, &o, ret, e);
}

static void migrations_go_forward_and_keep_the_rows(void **state)
{
	struct fixture *f = *state;
	const char *migrations[MIGRATIONS_MAX];
	int n = place_sql->n_migrations;
	AUTO_TEXT after = xprintf("7|\n%d|\n", n + 1);
	int64_t id = add_job(f->store, "old");
	AUTO_DONE(buf) rows = {};
	AUTO(job) *job = NULL;
	struct db_sql sql;
	struct store *s = NULL;
	struct err e = {};

	more_migrations(migrations);
	store_free(STEAL(f->store));
	if (!open_with(f->where, migrations, n + 1, &sql, &s, &e))
		fail_msg("%s", e.msg);
	job = get_job(s, id);
	assert_string_equal(job->name, "old");
	store_free(STEAL(s));
	place_query(f->where, "SELECT n FROM extra", &rows);
	assert_string_equal(rows.data, "7|\n");

	/* A migration that fails leaves the number and the rows of the one before. */
	assert_false(open_with(f->where, migrations, n + 2, &sql, &s, &e));
	buf_clear(&rows);
	place_query(f->where, "SELECT n FROM extra; ", &rows);
	place_query(f->where, "SELECT value FROM meta WHERE key = 'schema'", &rows);
	assert_string_equal(rows.data, after);

	/* The older program refuses the newer schema. */
	assert_false(store_open_with(fixture_ops, &(struct db_options){.where = f->where}, &s, &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	assert_non_null(strstr(e.msg, "newer version"));
}

/* Runs the migration that fills COUNT_STORE again, as on an older store. */
static void a_migration_counts_the_bytes_of_each_owner(void **state)
{
	struct fixture *f = *state;
	AUTO(op) *template = op_new(OP_TEMPLATE_PUT, NULL, NULL);
	AUTO(op) *other = op_add("of-bob", NULL, NULL);
	AUTO(op) *end = NULL;
	AUTO(run) *r = NULL;
	const char *text = NULL;

	add_job(f->store, "of-ann");
	job_add_op(other)->job.uid = 1001;
	job_add_op(other)->job.run_at = 0;
	job_add_op(other)->job.next_slot = T0 + USEC_DAY;
	assert_true(apply_one(f->store, other));
	op_fill(template_op(template), .uid = 1001, .owner = "bob", .name = "t", .params = "{}", .spec = "{\"x\":\"\u00fc\"}",
		.now = T0);
	assert_true(apply_one(f->store, template));
	r = claim_one(f->store, T0);
	end = op_ended(r, ATTEMPT_SUCCEEDED, T0 + 5);
	run_ended_op(end)->tail = xstrdup("dGhlIGVuZA==");
	assert_true(apply_one(f->store, end));
	assert_counts_true(f->store);
	for (int i = 0; i < place_sql->n_migrations; i++)
		if (strstr(place_sql->migrations[i], "jobs_removed"))
			text = place_sql->migrations[i];
	assert_non_null(text);
	place_query(f->where, "CREATE TABLE was AS SELECT * FROM meta WHERE key = 'schema'; DROP INDEX jobs_removed; "
		"UPDATE counters SET n = n + 7 WHERE what = 6", NULL);
	place_query(f->where, text, NULL);
	place_query(f->where, "UPDATE meta SET value = (SELECT value FROM was) WHERE key = 'schema'; DROP TABLE was", NULL);
	assert_counts_true(f->store);
}

static void a_new_store_gets_every_migration(void **state)
{
	const char *migrations[MIGRATIONS_MAX];
	AUTO_TEXT where = place_new();
	AUTO_DONE(buf) rows = {};
	struct db_sql sql;
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	more_migrations(migrations);
	if (!open_with(where, migrations, place_sql->n_migrations + 1, &sql, &s, &e))
		fail_msg("%s", e.msg);
	store_free(s);
	place_query(where, "SELECT n FROM extra", &rows);
	assert_string_equal(rows.data, "7|\n");
	place_drop(where);
}

static void a_mistaken_statement_is_found_at_open(void **state)
{
	struct fixture *f = *state;
	struct db_sql sql = *place_sql;
	struct db_query *queries = xcalloc((size_t)sql.n_queries, sizeof(*queries));
	struct db_options o = {.where = f->where, .sql = &sql};
	struct store *s = NULL;
	struct err e = {};

	memcpy(queries, sql.queries, (size_t)sql.n_queries * sizeof(*queries));
	queries[Q_JOB_CREATED_AT].sql = "SELECT 1 AS created_at";
	sql.queries = queries;
	assert_false(store_open_with(fixture_ops, &o, &s, &e));
	assert_non_null(strstr(e.msg, "job_created_at"));
	free(queries);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(migrations_go_forward_and_keep_the_rows),
	STORE_TEST(a_migration_counts_the_bytes_of_each_owner),
	cmocka_unit_test(a_new_store_gets_every_migration),
	STORE_TEST(a_mistaken_statement_is_found_at_open),
};
const struct suite_part store_schema_part = {tests, ELEMENTS(tests)};
