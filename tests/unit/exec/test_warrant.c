/* SPDX-License-Identifier: Apache-2.0 */
/* Warrants: text form, scope, key. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/proto/warrant_client.h"
#include "exec/spawner/warrant_key.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_printed_warrant_is_parsed_unchanged(void **state)
{
	static const char *const wrong[] = {"", "0",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefa",
		"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		"0123456789abcdeg0123456789abcdef0123456789abcdef0123456789abcdef"};
	unsigned char w[WARRANT_LEN], got[WARRANT_LEN], job[WARRANT_JOB_LEN],
		got_job[WARRANT_JOB_LEN];
	char hex[WARRANT_HEX];

	(void)state;
	for (int i = 0; i < WARRANT_LEN; i++)
		w[i] = (unsigned char)(i * 37);
	for (int i = 0; i < WARRANT_JOB_LEN; i++)
		job[i] = (unsigned char)(200 + i * 11);
	assert_true(warrant_parse(warrant_print(job, w, hex), got));
	assert_memory_equal(w, got, WARRANT_LEN);
	assert_true(warrant_job(hex, got_job));
	assert_memory_equal(job, got_job, WARRANT_JOB_LEN);
	/* of a template, or of the first version */
	assert_true(warrant_parse(warrant_print(NULL, w, hex), got));
	assert_memory_equal(w, got, WARRANT_LEN);
	assert_false(warrant_job(hex, got_job));
	assert_false(warrant_job(NULL, got_job));
	for (size_t i = 0; i < ELEMENTS(wrong); i++)
		assert_false(warrant_parse(wrong[i], got));
}

static void the_policy_decides_which_users_need_a_warrant(void **state)
{
	(void)state;
	assert_false(warrant_needed(WARRANT_NONE, 0));
	assert_true(warrant_needed(WARRANT_ROOT, 0));
	assert_false(warrant_needed(WARRANT_ROOT, 1000));
	assert_true(warrant_needed(WARRANT_ALL, 1000));
}

static void a_warrant_is_valid_for_one_exec_spec_only(void **state)
{
	const struct warrant_key key = {{1, 2, 3}}, other = {{1, 2, 4}};
	const struct warrant_subject order = {.kind = WARRANT_OF_ORDER, .data = "abc", .len = 3};
	const struct warrant_subject roots = {.kind = WARRANT_OF_TEXT, .data = "abc", .len = 3};
	const struct warrant_subject anns = {
		.kind = WARRANT_OF_TEXT, .uid = 1000, .data = "abc", .len = 3};
	const struct warrant_subject shorter = {.kind = WARRANT_OF_ORDER, .data = "abc", .len = 2};
	unsigned char w[WARRANT_LEN];

	(void)state;
	warrant_key_sign(&key, &order, w);
	assert_true(warrant_key_verify(&key, &order, w));
	assert_false(warrant_key_verify(&other, &order, w));
	assert_false(warrant_key_verify(&key, &roots, w));
	assert_false(warrant_key_verify(&key, &shorter, w));
	for (int bit = 0; bit < WARRANT_LEN * 8; bit++) {
		w[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_false(warrant_key_verify(&key, &order, w));
		w[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	warrant_key_sign(&key, &anns, w);
	assert_true(warrant_key_verify(&key, &anns, w));
	assert_false(warrant_key_verify(&key, &roots, w));
}

static void the_key_is_created_once_and_refused_if_others_can_read_it(void **state)
{
	char dir[] = "/tmp/warrant.XXXXXX";
	AUTO_TEXT path = NULL;
	AUTO_FD fd = -1;
	struct warrant_key first, second;
	struct err e = {};
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	path = xprintf("%s/warrant.key", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(warrant_key_open(&first, fd, &e));
	assert_true(warrant_key_open(&second, fd, &e));
	assert_memory_equal(&first, &second, sizeof(first));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(chmod(path, 0640), 0);
	assert_false(warrant_key_open(&second, fd, &e));
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 31), 0);
	assert_false(warrant_key_open(&second, fd, &e));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_false(warrant_key_open(&second, fd, &e));
	assert_int_equal(unlink(path), 0);
	assert_true(warrant_key_open(&second, fd, &e));
	assert_memory_not_equal(&first, &second, sizeof(first));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void a_second_key_makes_no_warrants_but_its_warrants_are_valid(void **state)
{
	const struct warrant_subject order = {.kind = WARRANT_OF_ORDER, .data = "spec", .len = 4};
	const struct warrant_key old = {.bytes = {1}}, new = {.bytes = {2}},
				 both = {.bytes = {2}, .has_second = true, .second = {1}};
	unsigned char by_old[WARRANT_LEN], by_new[WARRANT_LEN], by_both[WARRANT_LEN];

	(void)state;
	warrant_key_sign(&old, &order, by_old);
	warrant_key_sign(&new, &order, by_new);
	warrant_key_sign(&both, &order, by_both);
	assert_memory_equal(by_new, by_both, WARRANT_LEN);
	assert_true(warrant_key_verify(&both, &order, by_old));
	assert_true(warrant_key_verify(&both, &order, by_new));
	assert_false(warrant_key_verify(&new, &order, by_old));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_printed_warrant_is_parsed_unchanged),
		TEST(the_policy_decides_which_users_need_a_warrant),
		TEST(a_warrant_is_valid_for_one_exec_spec_only),
		TEST(a_second_key_makes_no_warrants_but_its_warrants_are_valid),
		TEST(the_key_is_created_once_and_refused_if_others_can_read_it),
	};

	return RUN_TESTS(tests);
}
