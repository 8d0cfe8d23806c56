/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of full, failing and read-only disks on SQLite, of query plans, and of the cost of a claim. */
#include "base/text.h"
#include "store/backend/sqlite.h"
#include "store/ops/batch.h"
#include "store/ops/op.h"
#include "store/store.h"
#include "unit/store/claim_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The calls that fail next; 0: none. The functions below replace system calls and have no other argument. */
static int writes_left, syncs_left;
static int writes; /* that were seen */

/* Replace the functions of libc in this program, including SQLite. */
int fdatasync(int fd)
{
	if (syncs_left > 0 && --syncs_left == 0) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

static ssize_t failing_write(int fd, const void *data, size_t len, off_t at)
{
	writes++;
	if (writes_left > 0 && --writes_left == 0) {
		errno = ENOSPC;
		return -1;
	}
	return pwrite(fd, data, len, at);
}

static void intercept_writes(bool on)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", on ? (sqlite3_syscall_ptr)failing_write : NULL), SQLITE_OK);
	assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", on ? (sqlite3_syscall_ptr)failing_write : NULL), SQLITE_OK);
	writes_left = 0;
}

static int64_t jobs_in(struct store *s)
{
	struct store_counts c = {};
	struct err e = {};

	if (!store_counts(s, &c, &e))
		fail_msg("%s", e.msg);
	return c.jobs[JOB_ACTIVE];
}

/* A definition of 600 KB, so that a transaction has several writes: the log is written in parts of 128 KiB. */
static char *large_spec(void)
{
	AUTO_TEXT text = xcalloc(1, 600001);

	memset(text, 'x', 600000);
	return xprintf("{\"command\":[\"true\",\"%s\"]}", text);
}

static void every_failing_write_is_told_and_loses_nothing(void **state)
{
	AUTO_TEXT spec = large_spec();
	struct fixture *f = *state;
	int64_t acknowledged = 0;
	int k = 1;

	intercept_writes(true);
	for (bool met = true; met; k++) {
		AUTO_TEXT name = xprintf("n%d", k);
		AUTO(op) *op = op_add(name, NULL, spec);
		struct batch_wake wake;
		struct err e = {};

		writes_left = k;
		if (!batch_apply(f->store, &op, 1, &wake, &e))
			assert_true(e.kind == ERR_FULL || e.kind == ERR_UNCERTAIN);
		met = writes_left == 0;
		writes_left = 0;
		acknowledged += op->ok;
		assert_int_equal(op->ok, !met);
		if (met)
			assert_int_equal(op->err.kind, ERR_FULL);
		reopen(f);
		assert_int_equal(jobs_in(f->store), acknowledged);
	}
	assert_true(k > 4);
	intercept_writes(false);
	assert_counts_true(f->store);
}

/* Its pages are gathered, up to 128 KiB. */
static void a_transaction_is_written_to_the_log_at_once(void **state)
{
	struct fixture *f = *state;
	struct op *ops[50];
	struct batch_wake wake;
	struct err e = {};

	add_job(f->store, "first"); /* the log exists */
	for (size_t i = 0; i < ELEMENTS(ops); i++)
		ops[i] = op_add(NULL, NULL, NULL);
	intercept_writes(true);
	writes = 0;
	assert_true(batch_apply(f->store, ops, ELEMENTS(ops), &wake, &e));
	assert_in_range(writes, 1, 2);
	intercept_writes(false);
	for (size_t i = 0; i < ELEMENTS(ops); i++) {
		assert_true(ops[i]->ok);
		op_free(ops[i]);
	}
	reopen(f);
	assert_int_equal(jobs_in(f->store), 1 + ELEMENTS(ops));
}

static void a_failed_sync_stops_all_writing(void **state)
{
	struct fixture *f = *state;
	AUTO(op) *op = op_add("unknown", NULL, NULL);
	AUTO(op) *later = op_add("later", NULL, NULL);
	struct batch_wake wake;
	struct err e = {};
	int64_t jobs;

	add_job(f->store, "before");
	syncs_left = 1;
	assert_false(batch_apply(f->store, &op, 1, &wake, &e));
	assert_int_equal(e.kind, ERR_UNCERTAIN);
	assert_int_equal(op->err.kind, ERR_UNCERTAIN);
	assert_false(batch_apply(f->store, &later, 1, &wake, &e)); /* a failed fsync is not repeated */
	assert_int_equal(e.kind, ERR_UNCERTAIN);
	reopen(f);
	jobs = jobs_in(f->store);
	assert_true(jobs == 1 || jobs == 2);
	assert_counts_true(f->store);
	add_job(f->store, "after");
}

/* ---- a small file system ---- */

static char *small_disk(const char *options)
{
	char *dir = xprintf("%s/store-disk-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");

	assert_non_null(mkdtemp(dir));
	if (mount("none", dir, "tmpfs", 0, options) < 0) {
		rmdir(dir);
		free(dir);
		return NULL;
	}
	return dir;
}

static void drop_disk(char *dir)
{
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	free(dir);
}

static void take_all_space(const char *path)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	char block[4096] = "x";

	while (write(fd, block, sizeof(block)) > 0)
		;
}

static void a_full_disk_refuses_new_work_and_still_records_ends(void **state)
{
	char *dir = small_disk("size=40m");
	AUTO_TEXT where = xprintf("%s/jobs.db", dir ? dir : "");
	AUTO_TEXT filler = xprintf("%s/filler", dir ? dir : "");
	AUTO_TEXT reserve = xprintf("%s-reserve", where);
	AUTO_TEXT pad = NULL;
	AUTO(run) *run = NULL;
	AUTO(run) *ended = NULL;
	AUTO(op) *node = op_node_open(NODE, "one", SPAWNER);
	AUTO(op) *refused = op_add("refused", NULL, NULL);
	AUTO(op) *claim = op_claim(5, T0);
	struct store *s;
	int64_t taken = 0;

	(void)state;
	if (!dir)
		skip(); /* mounting needs root; the failing writes above do not */
	s = open_or_fail(where, false);
	assert_true(apply_one(s, node));
	add_job(s, NULL);
	run = claim_one(s, T0);
	start_run(s, run, T0 + 1);
	take_all_space(filler);
	pad = xcalloc(1, 60001);
	memset(pad, 'p', 60000);
	for (bool full = false; !full && taken < 2000; taken += !full) {
		AUTO(op) *op = op_add(NULL, NULL, pad);
		struct batch_wake wake;
		struct err e = {};

		batch_apply(s, &op, 1, &wake, &e);
		full = !op->ok;
		assert_true(op->ok || op->err.kind == ERR_FULL);
	}
	assert_int_not_equal(access(reserve, F_OK), 0); /* released */
	assert_false(apply_one(s, refused));
	assert_int_equal(refused->err.kind, ERR_FULL);
	assert_false(apply_one(s, claim));
	assert_int_equal(claim->err.kind, ERR_FULL);
	end_run(s, run, ATTEMPT_SUCCEEDED, T0 + 9);
	store_free(s);
	s = open_or_fail(where, false); /* the store opens on a full disk */
	ended = get_run(s, run->id);
	assert_int_equal(ended->state, RUN_SUCCEEDED);
	assert_int_equal(jobs_in(s), taken);
	unlink(filler);
	assert_true(apply_one(s, refused)); /* with free space the reserve is allocated again */
	assert_int_equal(access(reserve, F_OK), 0);
	assert_counts_true(s);
	store_free(s);
	drop_disk(dir);
}

static void a_read_only_file_system_is_told_and_nothing_is_changed(void **state)
{
	char *dir = small_disk("size=64m");
	AUTO_TEXT where = xprintf("%s/jobs.db", dir ? dir : "");
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	if (!dir)
		skip();
	s = open_or_fail(where, false);
	add_job(s, "x");
	store_free(STEAL(s));
	assert_int_equal(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_false(store_open(&(struct store_options){.where = where}, &s, &e));
	assert_int_equal(e.kind, ERR_BUSY);
	assert_non_null(strstr(e.msg, "read-only"));
	assert_int_equal(mount(NULL, dir, NULL, MS_REMOUNT, NULL), 0);
	s = open_or_fail(where, false);
	assert_int_equal(jobs_in(s), 1);
	store_free(s);
	drop_disk(dir);
}

/* ---- plans ---- */

/* Queries that may scan a table: bounded by LIMIT, or run by hand ('db check', a restore without a daemon). */
static bool may_scan(const char *query)
{
	return strcmp(query, "job_names_all") == 0 || text_starts(query, "check_") || text_starts(query, "restore_");
}

static void check_plan(sqlite3 *h, const struct db_query *q)
{
	AUTO_TEXT sql = xprintf("EXPLAIN QUERY PLAN %s", q->sql);
	sqlite3_stmt *stmt = NULL;

	assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &stmt, NULL), SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(stmt, 3);
		static const char *const big[] = {"jobs", "runs", "due", "attempts", "job_tags"};

		for (size_t i = 0; i < ELEMENTS(big); i++) {
			AUTO_TEXT scan = xprintf("SCAN %s", big[i]);

			/* A scan in the order of an index ends at its LIMIT. */
			if (text_starts(step, scan) && !strstr(step, "USING") && !may_scan(q->name))
				fail_msg("%s: %s", q->name, step);
		}
		if (strstr(step, "TEMP B-TREE FOR ORDER BY") && strstr(q->name, "_page"))
			fail_msg("%s: %s", q->name, step);
	}
	sqlite3_finalize(stmt);
}

static void no_statement_scans_a_table_that_grows(void **state)
{
	struct fixture *f = *state;
	sqlite3 *h = NULL;

	assert_int_equal(sqlite3_open(f->where, &h), SQLITE_OK);
	assert_int_equal(sqlite_add_given(h, &sqlite_sql, &clock_system), SQLITE_OK);
	for (int i = 0; i < sqlite_sql.n_queries; i++)
		check_plan(h, &sqlite_sql.queries[i]);
	sqlite3_close(h);
}

/* ---- waiting runs do not slow down a claim ---- */

/* Virtual machine instructions of SQLite since the last call. */
static int64_t work(struct store *s)
{
	const struct db_sqlite *d = (const struct db_sqlite *)s->db;
	int64_t n = 0;

	for (int i = 0; i < s->db->sql->n_queries; i++)
		n += sqlite3_stmt_status(d->stmts[i], SQLITE_STMTSTATUS_VM_STEP, 1);
	return n;
}

static void queue_in_all_lanes(struct store *s, size_t n)
{
	for (uint32_t owner = 0; owner < 6; owner++)
		for (int64_t priority = 0; priority < 5; priority++)
			add_slots(s, &(struct slots){.n = n, .step = 1, .uid = 1000 + owner, .priority = priority});
}

static void a_claim_costs_what_it_starts_and_not_what_waits(void **state)
{
	struct store *s = store_of(state);
	int64_t few, many;

	queue_in_all_lanes(s, 12);
	work(s);
	run_free(claim_one(s, T0 + USEC_MIN));
	few = work(s);
	queue_in_all_lanes(s, 300);
	work(s);
	run_free(claim_one(s, T0 + USEC_MIN));
	many = work(s);
	assert_in_range(few, 1000, 100000);
	assert_in_range(many, 0, few + few / 4);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(every_failing_write_is_told_and_loses_nothing),
	STORE_TEST(a_transaction_is_written_to_the_log_at_once),
	STORE_TEST(a_failed_sync_stops_all_writing),
	cmocka_unit_test(a_full_disk_refuses_new_work_and_still_records_ends),
	cmocka_unit_test(a_read_only_file_system_is_told_and_nothing_is_changed),
	STORE_TEST(no_statement_scans_a_table_that_grows),
	STORE_TEST(a_claim_costs_what_it_starts_and_not_what_waits),
};
const struct suite_part store_disk_part = {tests, ELEMENTS(tests)};
