/* SPDX-License-Identifier: Apache-2.0 */
/* Secret values: checks of the reader's records, memory files, the output filter across a re-exec. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "exec/worker/output/secrets.h"
#include "exec/worker/output/output_filter.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct secrets two(const char *a, const char *b)
{
	return (struct secrets){.v = {{xstrdup(a), strlen(a)}, {xstrdup(b), strlen(b)}}, .n = 2};
}

static void record(struct buf *b, uint32_t error, uint32_t len, const char *bytes)
{
	buf_add(b, &error, sizeof(error));
	buf_add(b, &len, sizeof(len));
	buf_str(b, bytes);
}

static void encoded_values_are_parsed_unchanged(void **state)
{
	AUTO_DONE(secrets) a = two("hunter2", "");
	AUTO_DONE(secrets) b = {};
	AUTO_DONE(buf) text = {};
	int error = 99;
	size_t at;

	(void)state;
	secrets_encode(&a, &text);
	assert_true(secrets_parse(&b, text.data, text.len, &error, &at));
	assert_int_equal(error, 0);
	assert_int_equal(b.n, 2);
	assert_string_equal(b.v[0].data, "hunter2");
	assert_int_equal(b.v[1].len, 0);
}

static void malformed_records_are_refused(void **state)
{
	AUTO_DONE(secrets) s = {};
	int error;
	size_t at = 99;

	(void)state;
	for (int i = 0; i < 5; i++) {
		AUTO_DONE(buf) b = {};

		record(&b, 0, 1, "a");
		if (i == 0)
			record(&b, EACCES, 0, "");
		else if (i == 1)
			record(&b, 0, 100, "cut off");
		else if (i == 2)
			buf_str(&b, "abc");
		else if (i == 3)
			record(&b, 0, UINT32_MAX, "x");
		for (int n = 0; i == 4 && n < SECRETS_MAX; n++)
			record(&b, 0, 1, "x");
		assert_false(secrets_parse(&s, b.data, b.len, &error, &at));
		assert_int_equal(error, i == 0 ? EACCES : 0);
		assert_int_equal(s.n, 0);
		if (i == 0)
			assert_int_equal(at, 1);
	}
}

static void a_worker_gets_sealed_memory_files(void **state)
{
	AUTO_DONE(secrets) s = two("hunter2", "other");
	AUTO_DONE(secrets_files) f = {};
	struct stat st;
	char text[16] = {};

	(void)state;
	assert_int_equal(secrets_files_make(&f, &s, NULL), 0);
	assert_int_equal(f.n, 2);
	assert_int_equal(read(f.v[0], text, sizeof(text)), 7);
	assert_string_equal(text, "hunter2");
	assert_int_equal(fstat(f.v[1], &st), 0);
	assert_int_equal(st.st_mode & 0777, 0400);
	assert_true(write(f.v[1], "x", 1) < 0 && ftruncate(f.v[1], 0) < 0);
	assert_int_equal(fcntl(f.v[0], F_GETFD), FD_CLOEXEC);
}

/* The content of the output file of run 1 below 'dir'. */
static char *kept(int dir)
{
	AUTO_FD fd = output_file_open(dir, 1, 1);
	char *text = xcalloc(1, 1000);
	int64_t from;
	size_t n = 0;

	assert_true(fd < 0 || output_file_read(fd, 0, text, 999, &from, &n, NULL));
	text[n] = '\0';
	return text;
}

static void a_secret_is_masked_across_a_re_exec(void **state)
{
	char path[] = "/tmp/output_filter.XXXXXX";
	struct deadlines due = {};
	struct output_file_writer out;
	struct secrets s = two("hunter2", "other");
	struct output_filter a, b;
	AUTO_TEXT first = NULL;
	AUTO_TEXT second = NULL;
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	output_file_writer_init(&out, dir, 1, 1, 1000);
	output_filter_init(&a);
	output_filter_init(&b);
	output_filter_set_secrets(&a, &s);
	assert_int_equal(s.n, 0);
	output_filter_write(&a, &due, &out, "is hunt", 7);
	assert_int_not_equal(deadlines_next(&due), USEC_NEVER);
	first = kept(dir);
	assert_string_equal(first, "is ");
	output_filter_save(&a);
	b.saved = dup(a.saved);
	assert_true(output_filter_adopt(&b, &out));
	deadline_clear(&due, &a.release);
	output_filter_done(&a);
	output_filter_write(&b, &due, &out, "er2 and other!", 14);
	output_filter_release(&b, &due, &out);
	assert_int_equal(deadlines_next(&due), USEC_NEVER);
	second = kept(dir);
	assert_string_equal(second, "is *** and ***!");
	output_filter_done(&b);
	output_file_writer_done(&out);
	output_file_remove(dir, 1, 1, NULL);
	deadlines_done(&due);
	close(dir);
	assert_int_equal(rmdir(path), 0);
}

static void a_filter_without_secrets_passes_output_unchanged(void **state)
{
	struct output_filter v;

	(void)state;
	output_filter_init(&v);
	output_filter_save(&v);
	assert_int_equal(v.saved, -1);
	assert_true(output_filter_adopt(&v, NULL));
	assert_null(v.secret_mask);
	output_filter_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(encoded_values_are_parsed_unchanged),
		TEST(malformed_records_are_refused),
		TEST(a_worker_gets_sealed_memory_files),
		TEST(a_secret_is_masked_across_a_re_exec),
		TEST(a_filter_without_secrets_passes_output_unchanged),
	};

	return RUN_TESTS(tests);
}
