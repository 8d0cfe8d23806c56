/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of backup, check, restore and migration of a SQLite store. */
#include "base/text.h"
#include "store/ops/job/jobs.h"
#include "store/ops/node/nodes.h"
#include "store/ops/op.h"
#include "store/read/check.h"
#include "store/read/single.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char *beside(void **state, const char *end)
{
	return xprintf("%s%s", where_of(state), end);
}

static bool restore(const struct restore_options *given, char **kept, struct err *e)
{
	AUTO_FD fd = open(given->backup, O_RDONLY | O_CLOEXEC);
	struct restore_options o = *given;

	o.backup_fd = fd;
	return restore_store(&o, kept, e);
}

static void restore_or_fail(const struct restore_options *o, char **kept)
{
	struct err e = {};

	if (!restore(o, kept, &e))
		fail_msg("%s", e.msg);
}

static void a_backup_taken_while_open_is_restored_whole(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT backup = beside(state, ".backup");
	AUTO_TEXT kept = NULL;
	AUTO(store) *old = NULL;
	AUTO(job) *job = NULL;
	struct err e = {};
	int64_t before = add_job(f->store, "before"), after;

	assert_true(backup_create(f->store, backup, &e));
	after = add_job(f->store, "after");
	store_free(STEAL(f->store));
	restore_or_fail(&(struct restore_options){.backup = backup, .where = f->where, .now = T0 + 5}, &kept);
	f->store = open_or_fail(f->where, false);
	job = get_job(f->store, before);
	assert_string_equal(job->name, "before");
	assert_false(store_job_get(f->store, -1, after, &(struct job *){NULL}, &e));
	assert_counts_true(f->store);
	old = open_or_fail(kept, false); /* the old store is kept */
	job_free(STEAL(job));
	job = get_job(old, after);
	assert_string_equal(job->name, "after");
}

/* Runs that were active at the time of the backup have ended since and must not run again. */
static void runs_that_were_active_in_a_backup_are_lost_and_not_rerun(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT backup = beside(state, ".backup");
	AUTO_TEXT kept = NULL;
	AUTO(run) *r = NULL;
	AUTO(run) *now = NULL;
	AUTO(op) *node = op_node_open("node-two-engine", "one", "spawner-two");

	add_job(f->store, "running");
	r = claim_one(f->store, T0);
	start_run(f->store, r, T0 + 1);
	assert_true(backup_create(f->store, backup, NULL));
	store_free(STEAL(f->store));
	restore_or_fail(&(struct restore_options){.backup = backup, .where = f->where, .now = T0 + 5}, &kept);
	f->store = open_or_fail(f->where, false);
	now = get_run(f->store, r->id);
	assert_int_equal(now->state, RUN_LOST);
	assert_string_equal(now->reason, "restored");
	assert_true(apply_one(f->store, node));
	assert_int_equal(node_open_op(node)->other_spawner.n, 0);
	assert_counts_true(f->store);
}

static void a_restore_from_now_makes_up_for_nothing(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT backup = beside(state, ".backup");
	AUTO_TEXT kept = NULL;
	AUTO_DONE(buf) rows = {};
	AUTO(op) *add = op_add("daily", NULL, NULL);
	int64_t queued = add_job(f->store, "queued");
	AUTO(run) *r = NULL;

	job_add_op(add)->job.run_at = 0;
	job_add_op(add)->job.next_slot = T0 + 1000000;
	assert_true(apply_one(f->store, add));
	assert_true(backup_create(f->store, backup, NULL));
	store_free(STEAL(f->store));
	restore_or_fail(&(struct restore_options){.backup = backup, .where = f->where, .from_now = true, .now = T0 + USEC_DAY}, &kept);
	f->store = open_or_fail(f->where, false);
	place_query(f->where, "SELECT slot FROM due", &rows);
	assert_string_equal(rows.data, "1800086400000001|\n");
	r = get_run(f->store, 1);
	assert_int_equal(r->job, queued);
	assert_int_equal(r->state, RUN_SKIPPED);
	assert_counts_true(f->store);
}

static void a_file_that_is_no_store_is_not_restored(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT junk = beside(state, ".junk");
	AUTO_TEXT kept = NULL;
	AUTO(job) *job = NULL;
	struct err e = {};
	int fd = open(junk, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0 && write(fd, "not a store, certainly not", 26) == 26);
	close(fd);
	add_job(f->store, "mine");
	store_free(STEAL(f->store));
	assert_false(restore(&(struct restore_options){.backup = junk, .where = f->where, .now = T0}, &kept, &e));
	f->store = open_or_fail(f->where, false); /* untouched */
	assert_true(store_job_find(f->store, -1, "mine", &job, &e));
}

/* A crash between moving the old store away and the new one into place must not lead to an empty store. */
static void an_unfinished_restore_is_not_taken_for_a_new_store(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT mark = beside(state, ".restoring");
	struct store *s = NULL;
	struct err e = {};

	store_free(STEAL(f->store));
	close(open(mark, O_WRONLY | O_CREAT, 0600));
	unlink(f->where);
	assert_false(store_open(&(struct store_options){.where = f->where}, &s, &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	assert_non_null(strstr(e.msg, "restore"));
	unlink(mark);
	f->store = open_or_fail(f->where, false);
}

static void a_check_finds_what_does_not_add_up(void **state)
{
	struct fixture *f = *state;
	AUTO_DONE(strv) sound = {};
	AUTO_DONE(strv) problems = {};

	add_job(f->store, "one");
	assert_true(check_store(f->store, &sound, NULL));
	assert_int_equal(sound.n, 0);
	place_query(f->where, "UPDATE counters SET n = n + 1 WHERE what = 0", NULL);
	assert_true(check_store(f->store, &problems, NULL));
	assert_int_equal(problems.n, 1);
	assert_non_null(strstr(problems.v[0], "jobs"));
}

/* A store with the previous schema is copied before it is migrated. */
static void the_schema_before_is_copied_and_migrated(void **state)
{
	struct fixture *f = *state;
	int older = place_sql->n_migrations - 1;
	AUTO_TEXT where = beside(state, ".older");
	AUTO_TEXT copy = xprintf("%s.schema%d", where, older);
	struct db_sql sql = *place_sql;
	AUTO(store) *s = NULL;
	AUTO_DONE(buf) rows = {};
	struct db *db = NULL;
	struct err e = {};

	(void)f;
	sql.n_migrations = older;
	sql.n_queries = 0; /* they need the current schema */
	if (!db_sqlite_ops.open(&(struct db_options){.where = where, .sql = &sql}, &db, &e))
		fail_msg("%s", e.msg);
	db_sqlite_ops.close(db);
	place_query(where, "INSERT INTO jobs (id, uid, owner, name, state, revision, segment, queue, priority, boots, created_at, "
		"updated_at, digest, spec) VALUES (1, 1000, 'ann', 'old', 0, 1, 3, 'default', 0, 0, 5, 5, 0, '{}')", NULL);
	place_query(where, "INSERT INTO runs (id, job, uid, kind, state, priority, slot, slot_last, slot_count, due_at, revision, "
		"created_at, queue) VALUES (1, 1, 1000, 0, 0, 0, 7, 7, 1, 7, 1, 5, 'default')", NULL);
	s = open_or_fail(where, false);
	place_query(where, "SELECT id, state, hold, failures, overlap FROM runs", &rows);
	assert_string_equal(rows.data, "1|0|0|0|0|\n");
	assert_int_equal(access(copy, F_OK), 0);
	buf_clear(&rows);
	place_query(copy, "SELECT name FROM jobs", &rows);
	assert_string_equal(rows.data, "old|\n");
	db = NULL; /* the older program refuses the new store and takes the copy */
	assert_false(db_sqlite_ops.open(&(struct db_options){.where = where, .sql = &sql}, &db, &e));
	assert_non_null(strstr(e.msg, "jobctl db restore"));
	assert_true(db_sqlite_ops.open(&(struct db_options){.where = copy, .sql = &sql}, &db, &e));
	db_sqlite_ops.close(db);
}

/* A copied file on a second machine would run every job twice. */
static void a_store_belongs_to_its_machine_until_it_is_taken_over(void **state)
{
	struct fixture *f = *state;
	struct store_options here = {.where = f->where, .machine = "here"}, there = {.where = f->where, .machine = "there"};
	struct store *s = NULL;
	struct err e = {};

	store_free(STEAL(f->store));
	assert_true(store_open(&here, &s, &e));
	store_free(STEAL(s));
	assert_true(store_open(&here, &s, &e));
	store_free(STEAL(s));
	assert_false(store_open(&there, &s, &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	assert_non_null(strstr(e.msg, "--takeover"));
	there.takeover = true;
	assert_true(store_open(&there, &s, &e));
	store_free(STEAL(s));
	assert_false(store_open(&here, &s, &e));
	f->store = open_or_fail(f->where, false);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_backup_taken_while_open_is_restored_whole),
	STORE_TEST(runs_that_were_active_in_a_backup_are_lost_and_not_rerun),
	STORE_TEST(a_restore_from_now_makes_up_for_nothing),
	STORE_TEST(a_file_that_is_no_store_is_not_restored),
	STORE_TEST(an_unfinished_restore_is_not_taken_for_a_new_store),
	STORE_TEST(a_check_finds_what_does_not_add_up),
	STORE_TEST(the_schema_before_is_copied_and_migrated),
	STORE_TEST(a_store_belongs_to_its_machine_until_it_is_taken_over),
};
const struct suite_part store_backup_part = {tests, ELEMENTS(tests)};
