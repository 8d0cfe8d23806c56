/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the SQLite file: which files are refused unchanged, locks, growth. */
#include "base/clock.h"
#include "base/text.h"
#include "store/backend/file_system.h"
#include "store/backend/queries.h"
#include "store/backend/sqlite.h"
#include "store/backend/sqlite_time_limit.h"
#include "store/lists.h"
#include "store/ops/batch.h"
#include "store/ops/job/jobs.h"
#include "store/ops/op.h"
#include "store/ops/run/claims.h"
#include "store/read/check.h"
#include "store/read/list/list_jobs.h"
#include "store/read/list/list_runs.h"
#include "store/read/single.h"
#include "store/set.h"
#include "store/store.h"
#include "unit/store/store_suite.h"
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *beside(const char *where, const char *ending)
{
	return xprintf("%s%s", where, ending);
}

static bool there(const char *where, const char *ending)
{
	AUTO_TEXT path = beside(where, ending);

	return access(path, F_OK) == 0;
}

static void write_file(const char *path, const void *data, size_t len)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(io_write_all(fd, data, len), 0);
}

static void read_file(const char *path, struct buf *out)
{
	buf_clear(out);
	assert_int_equal(io_read_file(path, out, 256 << 20), 0);
}

/* Names and contents of everything in the store's directory. */
static char *look(const char *where)
{
	AUTO_TEXT copy = xstrdup(where);
	const char *dir = dirname(copy);
	AUTO_DONE(buf) out = {};
	struct dirent **names = NULL;
	int n = scandir(dir, &names, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		AUTO_TEXT path = xprintf("%s/%s", dir, names[i]->d_name);
		AUTO_DONE(buf) data = {};
		uint64_t sum = 0;

		if (names[i]->d_name[0] != '.' && io_read_file(path, &data, 256 << 20) == 0)
			for (size_t k = 0; k < data.len; k++)
				sum = sum * 1099511628211u + (unsigned char)data.data[k];
		buf_printf(&out, "%s %zu %llx\n", names[i]->d_name, data.len, (unsigned long long)sum);
		free(names[i]);
	}
	free(names);
	return buf_steal(&out);
}

static void assert_refused(const char *where, const char *because)
{
	AUTO_TEXT before = look(where);
	AUTO_TEXT after = NULL;
	struct store *s = NULL;
	struct err e = {};

	assert_false(store_open(&(struct store_options){.where = where}, &s, &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	assert_non_null(strstr(e.msg, where));
	assert_non_null(strstr(e.msg, "jobctl db restore"));
	if (because && !strstr(e.msg, because))
		fail_msg("'%s' does not say '%s'", e.msg, because);
	after = look(where);
	assert_string_equal(before, after);
}

static void fill(struct store *s, int jobs)
{
	for (int i = 0; i < jobs; i++) {
		AUTO_TEXT name = xprintf("job-%d", i);
		AUTO_TEXT spec = xprintf("{\"command\":[\"echo\",\"%d-abcdefghijklmnopqrstuvwxyz\"]}", i);
		AUTO(op) *op = op_add(name, NULL, spec);

		job_add_op(op)->job.next_slot = T0 + i;
		assert_true(apply_one(s, op));
	}
}

static void a_file_that_is_no_store_is_refused_and_unchanged(void **state)
{
	struct fixture *f = *state;
	AUTO_DONE(buf) data = {};

	fill(f->store, 3);
	store_free(STEAL(f->store));
	read_file(f->where, &data);
	write_file(f->where, "this is a text that somebody put here, longer than a header of a database file, so that "
			     "it is read and found to be something else", 130);
	assert_refused(f->where, "not a database");
	write_file(f->where, "", 0);
	assert_refused(f->where, "empty");
	write_file(f->where, data.data, data.len / 2);
	assert_refused(f->where, NULL);
	memset(data.data + 4096, 0x55, 4096);
	write_file(f->where, data.data, data.len);
	assert_refused(f->where, NULL);
	unlink(f->where);
	assert_int_equal(mkdir(f->where, 0700), 0);
	assert_refused(f->where, "regular");
	rmdir(f->where);
}

static void another_programs_database_is_refused_and_left_alone(void **state)
{
	struct fixture *f = *state;

	store_free(STEAL(f->store));
	place_query(f->where, "PRAGMA application_id = 7; PRAGMA wal_checkpoint(TRUNCATE)", NULL);
	assert_refused(f->where, "another program");
}

static void a_newer_schema_is_refused_and_left_alone(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT wal = beside(f->where, "-wal");
	AUTO_TEXT shm = beside(f->where, "-shm");

	store_free(STEAL(f->store));
	place_query(f->where, "UPDATE meta SET value = '99' WHERE key = 'schema'", NULL);
	assert_true(there(f->where, "-wal")); /* the number is in the log only */
	unlink(shm);
	assert_refused(f->where, "newer version");
	place_query(f->where, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
	unlink(wal);
	unlink(shm);
	assert_refused(f->where, "newer version");
}

static void a_file_that_vanished_from_beside_its_log_is_not_made_again(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT wal = beside(f->where, "-wal");

	store_free(STEAL(f->store));
	unlink(f->where);
	write_file(wal, "frames", 6);
	assert_refused(f->where, "missing");
}

static void an_unreadable_file_is_refused(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT copy = xstrdup(f->where);
	int status = 0;
	pid_t pid;

	store_free(STEAL(f->store));
	assert_int_equal(chmod(f->where, 0), 0);
	assert_int_equal(chmod(dirname(copy), 0777), 0);
	pid = fork();
	if (pid == 0) {
		struct store *s = NULL;
		struct err e = {};

		if (getuid() == 0 && setuid(65533) < 0)
			_exit(9);
		_exit(store_open(&(struct store_options){.where = f->where}, &s, &e) ? 8 :
			e.kind == ERR_REFUSED && strstr(e.msg, f->where) ? 0 : 7);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_false(there(f->where, "-wal") || there(f->where, "-shm"));
}

static void a_new_store_is_private_and_leaves_nothing_beside_it(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT before = NULL;
	struct stat st;

	store_free(STEAL(f->store));
	assert_int_equal(stat(f->where, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	before = look(f->where);
	assert_null(strstr(before, ".new"));
	assert_null(strstr(before, "-wal"));
	assert_null(strstr(before, "-shm"));
	assert_non_null(strstr(before, "jobs.db-reserve 16777216 "));
}

static void a_place_without_a_directory_is_refused(void **state)
{
	struct store *s = NULL;
	struct err e = {};

	(void)state;
	assert_false(store_open(&(struct store_options){.where = "/nonexistent/jobs.db"}, &s, &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	assert_false(store_open(&(struct store_options){.where = "/tmp/no-such-jobs.db", .read_only = true}, &s, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
}

/* ---- damage ---- */

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Reads everything; rows that come out must be the ones that went in. */
static void read_everything(struct store *s)
{
	AUTO_DONE(job_list) jobs = {};
	AUTO_DONE(run_list) runs = {};
	struct store_counts counts;
	struct err e = {};

	if (list_jobs_page(s, &(struct job_filter){.uid = -1, .limit = 1000}, &jobs, &e))
		for (size_t i = 0; i < jobs.n; i++)
			if (jobs.v[i]->name && strncmp(jobs.v[i]->name, "job-", 4) == 0) {
				AUTO_TEXT spec = xprintf("{\"command\":[\"echo\",\"%s-abcdefghijklmnopqrstuvwxyz\"]}",
					jobs.v[i]->name + 4);

				if (strlen(jobs.v[i]->name) == strspn(jobs.v[i]->name, "job-0123456789") &&
				    strcmp(jobs.v[i]->spec, spec) != 0)
					print_message("name '%s' with another's spec\n", jobs.v[i]->name);
				assert_string_equal(jobs.v[i]->owner, "ann");
			}
	list_runs_page(s, &(struct run_filter){.uid = -1, .limit = 1000}, &runs, &e);
	store_counts(s, &counts, &e);
}

static void flipped_bytes_are_refused_or_do_no_harm(void **state)
{
	struct fixture *f = *state;
	AUTO_DONE(buf) sound = {};
	AUTO_DONE(buf) damaged = {};
	unsigned seeds = getenv("STORE_FLIPS") ? (unsigned)atoi(getenv("STORE_FLIPS")) : 150;
	int refused = 0;

	fill(f->store, 40);
	store_free(STEAL(f->store));
	read_file(f->where, &sound);
	for (unsigned seed = 1; seed <= seeds; seed++) {
		unsigned r = seed * 7919;
		struct store *s = NULL;
		struct err e = {};

		buf_clear(&damaged);
		buf_add(&damaged, sound.data, sound.len);
		for (unsigned k = 0; k < 1 + seed % 8; k++)
			damaged.data[next_random(&r) % (seed % 3 ? sound.len : 200)] ^= (char)(1 << next_random(&r) % 8);
		write_file(f->where, damaged.data, damaged.len);
		if (store_open(&(struct store_options){.where = f->where}, &s, &e)) {
			AUTO(op) *op = op_add(NULL, NULL, NULL);
			struct batch_wake wake;

			read_everything(s);
			batch_apply(s, &op, 1, &wake, &e);
			store_free(s);
		} else {
			AUTO_DONE(buf) after = {};

			refused++;
			if (e.kind != ERR_REFUSED || !strstr(e.msg, f->where))
				fail_msg("seed %u: %s", seed, e.msg);
			assert_false(there(f->where, "-wal") || there(f->where, "-shm"));
			read_file(f->where, &after);
			assert_int_equal(after.len, damaged.len);
			assert_memory_equal(after.data, damaged.data, damaged.len);
		}
		for (int k = 0; k < 2; k++) {
			AUTO_TEXT path = beside(f->where, k ? "-wal" : "-shm");

			unlink(path);
		}
	}
	assert_true(refused > (int)seeds / 5);
}

static void a_damaged_job_is_told_and_its_command_never_handed_out(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f->store, "victim");
	AUTO(op) *claim = op_claim(1, T0);
	AUTO(job) *job = NULL;
	struct err e = {};

	store_free(STEAL(f->store));
	place_query(f->where, "UPDATE jobs SET spec = replace(spec, 'true', 'evil')", NULL);
	f->store = open_or_fail(f->where, false);
	assert_false(store_job_get(f->store, -1, id, &job, &e));
	assert_int_equal(e.kind, ERR_REFUSED);
	assert_true(apply_one(f->store, claim));
	assert_int_equal(claim_op(claim)->claimed.n, 1);
	assert_string_equal(claim_op(claim)->claimed.v[0].spec, "");
}

/* ---- processes and locks ---- */

static int descriptors_of(const char *path)
{
	struct stat want, st;
	int n = 0;

	if (stat(path, &want) < 0)
		return 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fstat(fd, &st) == 0 && st.st_dev == want.st_dev && st.st_ino == want.st_ino;
	return n;
}

static void a_connection_has_one_descriptor_per_file(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT wal = beside(f->where, "-wal");
	AUTO_TEXT shm = beside(f->where, "-shm");

	add_job(f->store, NULL);
	assert_int_equal(descriptors_of(f->where), 1);
	assert_int_equal(descriptors_of(wal), 1);
	assert_int_equal(descriptors_of(shm), 1);
	for (int i = 0; i < 3; i++) { /* a closed one is kept for its locks' sake and used again */
		AUTO(store) *reader = open_or_fail(f->where, true);
		struct store_counts c;
		struct err e = {};

		assert_true(store_counts(reader, &c, &e));
		assert_int_equal(descriptors_of(f->where), 2);
		assert_int_equal(descriptors_of(wal), 2);
		assert_int_equal(descriptors_of(shm), 1); /* shared within the process */
	}
}

static void a_child_that_uses_the_store_is_stopped(void **state)
{
	struct fixture *f = *state;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct store_counts c;

		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(3);
		store_counts(f->store, &c, NULL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	add_job(f->store, "parent");
}

static void a_held_store_is_busy_and_nothing_happened(void **state)
{
	struct fixture *f = *state;
	struct db_options o = {.where = f->where, .busy_ms = 30};
	AUTO(store) *second = NULL;
	AUTO(op) *op = op_add("later", NULL, NULL);
	struct batch_wake wake;
	sqlite3 *holder = NULL;
	struct err e = {};

	assert_true(store_open_with(&db_sqlite_ops, &o, &second, &e));
	assert_int_equal(sqlite3_open(f->where, &holder), SQLITE_OK);
	assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_false(batch_apply(second, &op, 1, &wake, &e));
	assert_int_equal(e.kind, ERR_BUSY);
	assert_int_equal(op->err.kind, ERR_BUSY);
	assert_int_equal(sqlite3_exec(holder, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_true(apply_one(second, op));
	sqlite3_close(holder);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : -1;
}

static void the_log_is_cut_when_it_has_grown_beyond_64_mib(void **state)
{
	struct fixture *f = *state;
	AUTO_TEXT wal = beside(f->where, "-wal");
	AUTO_DONE(buf) spec = {};
	sqlite3 *reader = NULL;

	buf_str(&spec, "{\"stdin\":\"");
	for (int i = 0; i < 4000000; i++)
		buf_char(&spec, 'x');
	buf_str(&spec, "\"}");
	assert_int_equal(sqlite3_open(f->where, &reader), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM meta", NULL, NULL, NULL), SQLITE_OK);
	for (int i = 0; i < 17; i++) {
		AUTO(op) *op = op_add(NULL, NULL, spec.data);

		assert_true(apply_one(f->store, op));
	}
	assert_true(size_of(wal) > 64 << 20); /* somebody reads, so it cannot be cut */
	assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	add_job(f->store, NULL);
	assert_true(size_of(wal) < 1 << 20);
	sqlite3_close(reader);
}

static void a_peer_that_may_not_checkpoint_leaves_the_log_alone(void **state)
{
	struct fixture *f = *state;
	struct store_options o = {.where = f->where, .no_checkpoint = true};
	AUTO_TEXT wal = beside(f->where, "-wal");
	off_t size;
	struct err e = {};

	store_free(STEAL(f->store));
	size = size_of(f->where);
	assert_true(store_open(&o, &f->store, &e));
	fill(f->store, 30);
	assert_int_equal(size_of(f->where), size);
	store_free(STEAL(f->store));
	assert_int_equal(size_of(f->where), size);
	assert_true(size_of(wal) > 0);
	f->store = open_or_fail(f->where, false);
	assert_counts_true(f->store);
}

static void network_file_systems_are_refused_and_local_ones_are_not(void **state)
{
	static const struct {
		uint64_t magic;
		const char *type;
		enum file_system_verdict want;
	} cases[] = {
		{0x6969, "nfs4", FILE_SYSTEM_REMOTE}, {0xFF534D42, "cifs", FILE_SYSTEM_REMOTE}, {0xFE534D42, "smb3", FILE_SYSTEM_REMOTE},
		{0x01021997, "9p", FILE_SYSTEM_REMOTE}, {0x00C36400, "ceph", FILE_SYSTEM_REMOTE},
		{0xFFFFFFFFFF534D42, "cifs", FILE_SYSTEM_REMOTE}, /* a signed f_type */
		{0x65735546, "fuse.sshfs", FILE_SYSTEM_REMOTE}, {0x65735546, "fuse", FILE_SYSTEM_REMOTE},
		{0x65735546, NULL, FILE_SYSTEM_REMOTE}, {0x65735546, "virtiofs", FILE_SYSTEM_UNKNOWN},
		{0x65735546, "fuseblk", FILE_SYSTEM_LOCAL}, {0x65735546, "fuse.fuse-overlayfs", FILE_SYSTEM_LOCAL},
		{0xEF53, "ext4", FILE_SYSTEM_LOCAL}, {0x58465342, "xfs", FILE_SYSTEM_LOCAL}, {0x9123683E, "btrfs", FILE_SYSTEM_LOCAL},
		{0x01021994, "tmpfs", FILE_SYSTEM_LOCAL}, {0x794C7630, "overlay", FILE_SYSTEM_LOCAL}, {0x2FC12FC1, "zfs", FILE_SYSTEM_LOCAL},
	};
	enum file_system_verdict verdict;
	AUTO_TEXT type = NULL;

	for (size_t i = 0; i < ELEMENTS(cases); i++)
		assert_int_equal(file_system_judge(cases[i].magic, cases[i].type), cases[i].want);
	assert_true(file_system_check(((struct fixture *)*state)->where, &verdict, &type, NULL));
	assert_non_null(type);
}

static void a_store_has_no_unsafe_settings(void **state)
{
	AUTO_DONE(strv) found = {};

	assert_true(check_unsafe_settings(store_of(state), &found, NULL));
	assert_int_equal(found.n, 0);
}

/* Rows whose members differ in order and number, and texts that JSON escapes. */
static void set_of_odd_rows(struct set *set)
{
	set_item(set);
	set_int(set, "id", 1);
	set_text(set, "name", "a \"quoted\" \\ \n text");
	set_text(set, "spec", NULL);
	set_item(set);
	set_text(set, "name", "not UTF-8: \xff");
	set_int(set, "id", INT64_MIN);
	set_item(set);
	set_int(set, "n", 0);
	set_item(set);
	set_text(set, "spec", "");
	set_int(set, "id", INT64_MAX);
	set_int(set, "n", -7);
}

static void given_read(sqlite3 *h, struct set *set, bool as_text, struct buf *out)
{
	sqlite3_stmt *stmt = NULL;
	int rc;

	assert_int_equal(sqlite3_prepare_v2(h, "SELECT id, name, spec, n FROM given(?1)", -1, &stmt, NULL), SQLITE_OK);
	if (as_text)
		rc = sqlite3_bind_text(stmt, 1, set_json(set), -1, SQLITE_STATIC);
	else
		rc = sqlite3_bind_pointer(stmt, 1, &set->rows, SQLITE_GIVEN_ROWS, NULL);
	assert_int_equal(rc, SQLITE_OK);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		for (int i = 0; i < 4; i++) {
			const char *value = (const char *)sqlite3_column_text(stmt, i);

			buf_printf(out, "%d %s\n", sqlite3_column_type(stmt, i), value ? value : "-");
		}
	assert_int_equal(rc, SQLITE_DONE);
	sqlite3_finalize(stmt);
}

static void given_reads_rows_in_memory_as_their_text(void **state)
{
	AUTO_SET set = {};
	AUTO_DONE(buf) rows = {};
	AUTO_DONE(buf) text = {};
	sqlite3 *h = NULL;

	(void)state;
	set_of_odd_rows(&set);
	assert_int_equal(sqlite3_open(":memory:", &h), SQLITE_OK);
	assert_int_equal(sqlite_add_given(h, &sqlite_sql, &clock_system), SQLITE_OK);
	given_read(h, &set, false, &rows);
	given_read(h, &set, true, &text);
	assert_string_equal(rows.data, text.data);
	assert_string_equal(rows.data,
		"1 1\n3 a \"quoted\" \\ \n text\n5 -\n5 -\n"
		"1 -9223372036854775808\n3 not UTF-8: \\xff\n5 -\n5 -\n"
		"5 -\n5 -\n5 -\n1 0\n"
		"1 9223372036854775807\n5 -\n3 \n1 -7\n");
	sqlite3_close(h);
}

static void a_statement_is_interrupted_when_its_time_is_over(void **state)
{
	struct sqlite_time_limit *limit;
	sqlite3 *h = NULL;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &h), SQLITE_OK);
	limit = sqlite_time_limit_start(h, USEC_HOUR);
	assert_int_equal(sqlite3_exec(h, "PRAGMA quick_check", NULL, NULL, NULL), SQLITE_OK);
	assert_false(sqlite_time_limit_end(limit));
	limit = sqlite_time_limit_start(h, USEC_MSEC);
	assert_int_equal(sqlite3_exec(h, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c", NULL,
		NULL, NULL), SQLITE_INTERRUPT);
	assert_true(sqlite_time_limit_end(limit));
	assert_int_equal(sqlite3_exec(h, "PRAGMA quick_check", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(h);
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_store_has_no_unsafe_settings),
	STORE_TEST(a_file_that_is_no_store_is_refused_and_unchanged),
	STORE_TEST(another_programs_database_is_refused_and_left_alone),
	STORE_TEST(a_newer_schema_is_refused_and_left_alone),
	STORE_TEST(a_file_that_vanished_from_beside_its_log_is_not_made_again),
	STORE_TEST(an_unreadable_file_is_refused),
	STORE_TEST(a_new_store_is_private_and_leaves_nothing_beside_it),
	cmocka_unit_test(given_reads_rows_in_memory_as_their_text),
	cmocka_unit_test(a_statement_is_interrupted_when_its_time_is_over),
	cmocka_unit_test(a_place_without_a_directory_is_refused),
	STORE_TEST(flipped_bytes_are_refused_or_do_no_harm),
	STORE_TEST(a_damaged_job_is_told_and_its_command_never_handed_out),
	STORE_TEST(a_connection_has_one_descriptor_per_file),
	STORE_TEST(a_child_that_uses_the_store_is_stopped),
	STORE_TEST(a_held_store_is_busy_and_nothing_happened),
	STORE_TEST(the_log_is_cut_when_it_has_grown_beyond_64_mib),
	STORE_TEST(a_peer_that_may_not_checkpoint_leaves_the_log_alone),
	STORE_TEST(network_file_systems_are_refused_and_local_ones_are_not),
};
const struct suite_part store_file_part = {tests, ELEMENTS(tests)};
