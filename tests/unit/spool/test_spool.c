/* SPDX-License-Identifier: Apache-2.0 */
/* User crontabs: requests, allow and deny files, the files of the spool; the script of at jobs. */
#include "at/at_script.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "spool/access_list.h"
#include "spool/request.h"
#include "spool/service.h"
#include "spool/table_file.h"
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

/* ---- requests ---- */

static void put_request(struct buf *out)
{
	struct spool_request r = {.operation = SPOOL_REPLACE, .body = "1 2 3 4 5 true\n", .len = 15};

	strcpy(r.user, "alice");
	strcpy(r.label, "my table");
	spool_request_write(&r, out);
}

static void a_request_is_read_as_it_was_written(void **state)
{
	AUTO_DONE(buf) bytes = {};
	struct spool_request r = {};

	(void)state;
	put_request(&bytes);
	assert_true(spool_request_read(bytes.data, bytes.len, &r));
	assert_int_equal(r.operation, SPOOL_REPLACE);
	assert_string_equal(r.user, "alice");
	assert_string_equal(r.label, "my table");
	assert_int_equal(r.len, 15);
	assert_memory_equal(r.body, "1 2 3 4 5 true\n", 15);
}

static void a_request_cut_anywhere_is_refused(void **state)
{
	AUTO_DONE(buf) bytes = {};
	struct spool_request r = {};

	(void)state;
	put_request(&bytes);
	for (size_t len = 0; len < bytes.len; len++)
		assert_false(spool_request_read(bytes.data, len, &r));
	buf_char(&bytes, '\n');
	assert_false(spool_request_read(bytes.data, bytes.len, &r));
}

static void malformed_requests_are_refused(void **state)
{
	static const char *const bad[] = {
		"crontab/2 list 0\n\n\n", "crontab/1 steal 0\n\n\n", "crontab/1 list -1\n\n\n",
		"crontab/1 list 99999999\n\n\n", "crontab/1 list\n\n\n", "list 0\n\n\n", "",
		"crontab/1 list 0\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\n"};
	struct spool_request r = {};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (spool_request_read(bad[i], strlen(bad[i]), &r))
			fail_msg("accepted: %s", bad[i]);
	assert_false(spool_request_read("crontab/1 list 0\na\0b\n\n", 22, &r));
	assert_true(spool_request_read("crontab/1 list 0\n\n\n", 19, &r));
}

static void a_reply_is_read_as_it_was_written(void **state)
{
	AUTO_DONE(spool_reply) out = {};
	AUTO_DONE(spool_reply) in = {};
	AUTO_DONE(buf) bytes = {};

	(void)state;
	spool_reply_fail(&out, "no %s", "space");
	spool_reply_write(&out, &bytes);
	assert_true(spool_reply_read(bytes.data, bytes.len, &in));
	assert_int_equal(in.status, SPOOL_FAILED);
	assert_string_equal(in.body.data, "no space");
	assert_false(spool_reply_read(bytes.data, bytes.len - 1, &in));
}

/* ---- a scratch directory ---- */

static int make_dir(void **state)
{
	char *dir = xprintf("%s/spool-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");

	if (!mkdtemp(dir))
		return -1;
	*state = dir;
	return 0;
}

static int remove_dir(void **state)
{
	AUTO_TEXT command = xprintf("rm -rf '%s'", (char *)*state);
	int r = system(command);

	free(*state);
	return r;
}

static void put_file(const char *dir, const char *name, const char *text)
{
	AUTO_TEXT path = xprintf("%s/%s", dir, name);

	assert_int_equal(io_write_file(path, text, strlen(text), 0600), 0);
}

static void an_allow_file_excludes_a_deny_file(void **state)
{
	const char *dir = *state;
	AUTO_TEXT allow = xprintf("%s/allow", dir);
	AUTO_TEXT deny = xprintf("%s/deny", dir);
	struct access_list l = {.allow = allow, .deny = deny, .none = true};
	struct err e = {};

	assert_true(access_list_permits(&l, "alice", &e));
	l.none = false;
	assert_false(access_list_permits(&l, "alice", &e));
	put_file(dir, "deny", "bob\nmallory\n");
	assert_true(access_list_permits(&l, "alice", &e));
	assert_false(access_list_permits(&l, "bob", &e));
	assert_true(access_list_permits(&l, "mallor", &e));
	put_file(dir, "allow", "bob\nalice"); /* no newline at the end */
	assert_true(access_list_permits(&l, "alice", &e));
	assert_true(access_list_permits(&l, "bob", &e));
	assert_false(access_list_permits(&l, "carol", &e));
	assert_int_equal(e.kind, ERR_NONE);
}

static void an_unreadable_list_permits_no_user(void **state)
{
	AUTO_TEXT allow = xprintf("%s/allow", (char *)*state);
	struct access_list l = {.allow = allow, .deny = "/nonexistent", .none = true};
	struct err e = {};

	assert_int_equal(mkdir(allow, 0700), 0);
	assert_false(access_list_permits(&l, "alice", &e));
	assert_int_not_equal(e.kind, ERR_NONE);
}

/* ---- files ---- */

static void a_table_is_replaced_in_one_step(void **state)
{
	AUTO_FD dir = table_file_open_dir(*state, geteuid());
	struct table_file t = {.dir = dir, .user = "alice", .uid = geteuid(), .gid = getegid()};
	AUTO_DONE(buf) old = {};
	AUTO_DONE(buf) new = {};
	AUTO_DONE(buf) got = {};
	AUTO_FD before = -1;
	struct stat st;

	assert_true(dir >= 0);
	assert_int_equal(table_file_read(&t, 100, &got), -ENOENT);
	buf_str(&old, "old\n");
	buf_str(&new, "new\n");
	assert_int_equal(table_file_write(&t, &old), 0);
	before = openat(dir, "alice", O_RDONLY | O_CLOEXEC);
	assert_int_equal(table_file_write(&t, &new), 0);
	assert_int_equal(table_file_read(&t, 100, &got), 0);
	assert_string_equal(got.data, "new\n");
	assert_int_equal(fstat(before, &st), 0);
	assert_int_equal(st.st_nlink, 0); /* the old file was not changed */
	assert_int_equal(fstatat(dir, "alice", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	buf_clear(&got);
	assert_int_equal(table_file_read(&t, 3, &got), -EFBIG);
	assert_int_equal(table_file_remove(&t), 0);
	assert_int_equal(table_file_remove(&t), -ENOENT);
}

static void links_are_not_followed(void **state)
{
	AUTO_FD dir = table_file_open_dir(*state, geteuid());
	struct table_file t = {.dir = dir, .user = "alice", .uid = geteuid(), .gid = getegid()};
	AUTO_DONE(buf) text = {};
	AUTO_DONE(buf) got = {};
	struct stat st;

	put_file(*state, "secret", "secret");
	assert_int_equal(symlinkat("secret", dir, "alice"), 0);
	assert_int_equal(table_file_read(&t, 100, &got), -EPERM);
	buf_str(&text, "mine\n");
	assert_int_equal(table_file_write(&t, &text), 0);
	assert_int_equal(fstatat(dir, "alice", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	buf_clear(&got);
	t.user = "secret";
	assert_int_equal(table_file_read(&t, 100, &got), 0);
	assert_string_equal(got.data, "secret");
}

static void a_pipe_is_no_table(void **state)
{
	AUTO_FD dir = table_file_open_dir(*state, geteuid());
	struct table_file t = {.dir = dir, .user = "alice", .uid = geteuid(), .gid = getegid()};
	AUTO_DONE(buf) got = {};

	assert_int_equal(mkfifoat(dir, "alice", 0600), 0);
	assert_int_equal(table_file_read(&t, 100, &got), -EPERM);
}

static void a_directory_that_others_control_is_refused(void **state)
{
	assert_int_equal(chmod(*state, 0770), 0);
	assert_int_equal(table_file_open_dir(*state, geteuid()), -EPERM);
	assert_int_equal(chmod(*state, 01730), 0);
	close(table_file_open_dir(*state, geteuid()));
	assert_int_equal(table_file_open_dir(*state, geteuid() + 1), -EPERM);
}

static void only_old_temporary_files_are_cleaned(void **state)
{
	AUTO_FD dir = table_file_open_dir(*state, geteuid());
	time_t now = time(NULL);

	put_file(*state, "tmp.1", "x");
	put_file(*state, "alice", "x");
	table_file_clean(dir, now - 100);
	assert_int_equal(faccessat(dir, "tmp.1", F_OK, 0), 0);
	table_file_clean(dir, now + 100);
	assert_int_equal(faccessat(dir, "tmp.1", F_OK, 0), -1);
	assert_int_equal(faccessat(dir, "alice", F_OK, 0), 0);
}

static void names_that_are_paths_or_temporary_files_are_invalid(void **state)
{
	static const char *const bad[] = {"", ".", "..", "a/b", ".hidden", "-x", "tmp.1"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(table_file_name_valid(bad[i]));
	assert_true(table_file_name_valid("www-data"));
	assert_true(table_file_name_valid("tmp"));
}

/* ---- decisions; they depend on the accounts of the system, so only root and nobody are used ---- */

static enum spool_status answer(const char *dir, uid_t caller, enum spool_operation operation,
	const char *user, struct spool_reply *reply)
{
	AUTO_TEXT allow = xprintf("%s/allow", dir);
	AUTO_TEXT deny = xprintf("%s/deny", dir);
	struct spool_service s = {.dir = dir, .group = "nogroup", .cron = {allow, deny, true},
		.at = {allow, deny, false}};
	struct spool_request r = {.operation = operation, .body = "@daily true\n", .len = 12};
	AUTO_DONE(buf) bytes = {};

	strcpy(r.user, user);
	strcpy(r.label, "tab\033le");
	spool_request_write(&r, &bytes);
	buf_clear(&reply->body);
	spool_service_answer(&s, caller, bytes.data, bytes.len, reply);
	return reply->status;
}

static void only_root_may_name_another_user(void **state)
{
	AUTO_DONE(spool_reply) r = {};

	if (geteuid() != 0)
		skip();
	assert_int_equal(answer(*state, NOBODY, SPOOL_REPLACE, "root", &r), SPOOL_NOT_PRIVILEGED);
	assert_int_equal(answer(*state, NOBODY, SPOOL_LIST, "root", &r), SPOOL_NOT_PRIVILEGED);
	assert_int_equal(answer(*state, NOBODY, SPOOL_REMOVE, "root", &r), SPOOL_NOT_PRIVILEGED);
	assert_int_equal(answer(*state, NOBODY, SPOOL_REPLACE, "nobody", &r), SPOOL_OK);
	assert_int_equal(answer(*state, 0, SPOOL_LIST, "nobody", &r), SPOOL_OK);
	assert_non_null(strstr(r.body.data, "# (tab\\x1ble installed on "));
	assert_non_null(strstr(r.body.data, "\n@daily true\n"));
	assert_int_equal(answer(*state, 0, SPOOL_REMOVE, "nobody", &r), SPOOL_OK);
	assert_int_equal(answer(*state, NOBODY, SPOOL_REMOVE, "", &r), SPOOL_NO_TABLE);
	assert_int_equal(answer(*state, 0, SPOOL_LIST, "no such user", &r), SPOOL_UNKNOWN_USER);
	assert_int_equal(answer(*state, 0, SPOOL_LIST, "../etc", &r), SPOOL_UNKNOWN_USER);
	assert_int_equal(answer(*state, 4000000000u, SPOOL_LIST, "", &r), SPOOL_NO_ACCOUNT);
}

static void root_cannot_be_denied(void **state)
{
	AUTO_DONE(spool_reply) r = {};

	if (geteuid() != 0)
		skip();
	assert_int_equal(answer(*state, NOBODY, SPOOL_AT_ACCESS, "", &r), SPOOL_NOT_ALLOWED);
	assert_int_equal(answer(*state, NOBODY, SPOOL_ACCESS, "", &r), SPOOL_OK);
	put_file(*state, "deny", "root\nnobody\n");
	assert_int_equal(answer(*state, 0, SPOOL_AT_ACCESS, "", &r), SPOOL_OK);
	assert_int_equal(answer(*state, 0, SPOOL_ACCESS, "", &r), SPOOL_OK);
	assert_int_equal(answer(*state, 0, SPOOL_REPLACE, "nobody", &r), SPOOL_NOT_ALLOWED);
	assert_int_equal(answer(*state, NOBODY, SPOOL_REPLACE, "", &r), SPOOL_NOT_ALLOWED);
	put_file(*state, "deny", "");
	assert_int_equal(answer(*state, NOBODY, SPOOL_AT_ACCESS, "", &r), SPOOL_OK);
}

/* ---- the script of at ---- */

static void a_script_has_the_form_of_debians_at(void **state)
{
	char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"SHELL=/bin/bash", (char *)"TERM=xterm",
		(char *)"A_1=it's $1\ntwo\\", (char *)"BASH_FUNC_x%%=() { :; }", (char *)"1A=x", NULL};
	const struct at_script s = {.uid = 1000, .gid = 100, .mail_to = "alice", .mail = -1, .umask = 027,
		.env = env, .cwd = "/home dir/a-b", .commands = "date\n", .len = 5};
	AUTO_DONE(buf) out = {};

	(void)state;
	at_script_write(&s, &out);
	assert_string_equal(out.data, "#!/bin/sh\n"
				      "# atrun uid=1000 gid=100\n"
				      "# mail alice -1\n"
				      "umask 27\n"
				      "PATH=/usr/bin:/bin; export PATH\n"
				      "A_1=it\\'s\\ \\$1\"\n\"two\\\\; export A_1\n"
				      "cd /home\\ dir/a\\-b || {\n"
				      "\t echo 'Execution directory inaccessible' >&2\n"
				      "\t exit 1\n"
				      "}\n"
				      "date\n\n");
}

#define TEST_IN_DIR(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_read_as_it_was_written),
		TEST(a_request_cut_anywhere_is_refused),
		TEST(malformed_requests_are_refused),
		TEST(a_reply_is_read_as_it_was_written),
		TEST_IN_DIR(an_allow_file_excludes_a_deny_file),
		TEST_IN_DIR(an_unreadable_list_permits_no_user),
		TEST_IN_DIR(a_table_is_replaced_in_one_step),
		TEST_IN_DIR(links_are_not_followed),
		TEST_IN_DIR(a_pipe_is_no_table),
		TEST_IN_DIR(a_directory_that_others_control_is_refused),
		TEST_IN_DIR(only_old_temporary_files_are_cleaned),
		TEST(names_that_are_paths_or_temporary_files_are_invalid),
		TEST_IN_DIR(only_root_may_name_another_user),
		TEST_IN_DIR(root_cannot_be_denied),
		TEST(a_script_has_the_form_of_debians_at),
	};

	return RUN_TESTS(tests);
}
