/* SPDX-License-Identifier: Apache-2.0 */
/* Output files: which bytes are kept, and that a reader never returns a wrong byte. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/proto/output_file.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct place {
	char path[64];
	int dir;
};

static int up(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));

	strcpy(p->path, "/tmp/output.XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;
	AUTO_TEXT clean = xprintf("rm -rf '%s'", p->path);
	int r = system(clean);

	close(p->dir);
	free(p);
	return r;
}

/* Byte o of every output in these tests. A byte at a wrong offset is detected. */
static char byte_at(int64_t o)
{
	return (char)((uint64_t)o * UINT64_C(0x9E3779B97F4A7C15) >> 56);
}

static void write_more(struct output_file_writer *w, size_t len)
{
	char chunk[70000];

	assert_true(len <= sizeof(chunk));
	for (size_t i = 0; i < len; i++)
		chunk[i] = byte_at(output_file_total(w) + (int64_t)i);
	output_file_write(w, chunk, len);
}

/* Reads from 'at' to the end in chunks; fails on any wrong byte. Returns the number of bytes. */
static int64_t read_all(int fd, int64_t at, size_t piece, int64_t *ret_end)
{
	int64_t sum = 0;
	char buf[4096];

	for (;;) {
		struct err e = {};
		int64_t from = -1;
		size_t n = 99;

		if (!output_file_read(fd, at, buf, piece, &from, &n, &e))
			fail_msg("%s", e.msg);
		assert_true(from >= at);
		if (n == 0)
			break;
		for (size_t i = 0; i < n; i++)
			if (buf[i] != byte_at(from + (int64_t)i))
				fail_msg("byte %lld is wrong", (long long)from + (long long)i);
		at = from + (int64_t)n;
		sum += (int64_t)n;
	}
	*ret_end = at;
	return sum;
}

static void the_start_and_the_end_are_kept_for_all_sizes(void **state)
{
	struct place *p = *state;
	unsigned seed = 11;

	for (int round = 0; round < 400; round++) {
		int64_t limit = rand_r(&seed) % 300, total = 0, end;
		size_t chunks = (size_t)rand_r(&seed) % 30;
		struct output_file_writer w;
		struct output_file_extent s;
		AUTO_FD fd = -1;

		output_file_writer_init(&w, p->dir, round + 1, 1, limit);
		for (size_t i = 0; i < chunks; i++) {
			size_t len = 1 + (size_t)rand_r(&seed) % (rand_r(&seed) % 5 ? 40 : 500);

			write_more(&w, len);
			total += (int64_t)len;
		}
		assert_int_equal(output_file_total(&w), total);
		assert_int_equal(output_file_dropped(&w), total > limit ? total - limit : 0);
		fd = output_file_open(p->dir, round + 1, 1);
		if (total == 0 || limit == 0) {
			assert_int_equal(fd, -ENOENT);
			continue;
		}
		assert_true(output_file_stat(fd, &s, NULL));
		assert_int_equal(s.total, total);
		assert_int_equal(s.gap_to - s.gap_from, total > limit ? total - limit : 0);
		assert_int_equal(read_all(fd, 0, 1 + (size_t)rand_r(&seed) % 100, &end),
			total < limit ? total : limit);
		assert_int_equal(end, total);
		output_file_writer_done(&w);
	}
}

static void an_offset_in_the_gap_moves_to_its_end(void **state)
{
	struct place *p = *state;
	struct output_file_writer w;
	AUTO_FD fd = -1;
	char buf[100];
	int64_t from;
	size_t n;

	output_file_writer_init(&w, p->dir, 1, 2, 100);
	write_more(&w, 1000);
	fd = output_file_open(p->dir, 1, 2);
	assert_true(output_file_read(fd, 500, buf, 100, &from, &n, NULL));
	assert_int_equal(from, 910);
	assert_true(n > 0 && n <= 90);
	assert_true(output_file_read(fd, 5, buf, 100, &from, &n, NULL));
	assert_int_equal(from, 5);
	assert_int_equal(n, 5); /* a read ends at the gap */
	assert_true(output_file_read(fd, 1000, buf, 100, &from, &n, NULL));
	assert_int_equal(n, 0);
	assert_true(output_file_read(fd, 99999, buf, 100, &from, &n, NULL));
	assert_int_equal(n, 0);
	output_file_writer_done(&w);
}

static void the_file_stays_within_its_limit(void **state)
{
	struct place *p = *state;
	struct output_file_writer w;
	struct stat st;

	output_file_writer_init(&w, p->dir, 1, 3, 5000);
	for (int i = 0; i < 100; i++)
		write_more(&w, 60000);
	assert_int_equal(fstat(w.fd, &st), 0);
	assert_int_equal(st.st_size, OUTPUT_FILE_HEAD + 5000);
	output_file_writer_done(&w);
}

/* RLIMIT_FSIZE simulates a full disk. */
static void limit_files(rlim_t size)
{
	struct rlimit l;

	getrlimit(RLIMIT_FSIZE, &l);
	l.rlim_cur = size;
	setrlimit(RLIMIT_FSIZE, &l);
}

static void bytes_lost_to_a_full_disk_are_counted(void **state)
{
	struct place *p = *state;
	struct output_file_writer w;
	struct output_file_extent s;
	AUTO_FD fd = -1;
	int64_t end;

	signal(SIGXFSZ, SIG_IGN);
	output_file_writer_init(&w, p->dir, 1, 4, 10000);
	write_more(&w, 300);
	limit_files(OUTPUT_FILE_HEAD + 500);
	write_more(&w, 400); /* does not fit */
	write_more(&w, 50);
	limit_files(RLIM_INFINITY);
	write_more(&w, 250); /* there is space again, still in the head */
	write_more(&w, 3000);
	assert_int_equal(output_file_total(&w), 4000);
	assert_int_equal(output_file_dropped(&w), 450);
	assert_int_equal(w.failed, EFBIG);
	fd = output_file_open(p->dir, 1, 4);
	assert_true(output_file_stat(fd, &s, NULL));
	assert_int_equal(s.gap_from, 300);
	assert_int_equal(s.gap_to, 750);
	assert_int_equal(read_all(fd, 0, 77, &end), 3550);
	output_file_writer_done(&w);
}

static void a_disk_error_in_the_ring_drops_earlier_bytes(void **state)
{
	struct place *p = *state;
	struct output_file_writer w;
	AUTO_FD fd = -1;
	int64_t end;

	signal(SIGXFSZ, SIG_IGN);
	output_file_writer_init(&w, p->dir, 1, 5, 1000);
	write_more(&w, 600);
	limit_files(OUTPUT_FILE_HEAD + 700);
	write_more(&w, 300);
	limit_files(RLIM_INFINITY);
	write_more(&w, 200);
	assert_int_equal(output_file_total(&w), 1100);
	fd = output_file_open(p->dir, 1, 5);
	/* the head and the output after the failure */
	assert_int_equal(read_all(fd, 0, 50, &end), 300);
	assert_int_equal(output_file_dropped(&w), 800);
	output_file_writer_done(&w);
}

static void output_without_a_file_is_counted(void **state)
{
	struct output_file_writer w;

	(void)state;
	output_file_writer_init(&w, -1, 1, 6, 1000);
	write_more(&w, 5000);
	assert_int_equal(output_file_total(&w), 5000);
	assert_int_equal(output_file_dropped(&w), 5000);
	output_file_writer_done(&w);
}

static void a_symbolic_link_is_not_followed(void **state)
{
	struct place *p = *state;
	struct output_file_writer w;
	struct stat st;

	assert_int_equal(symlinkat("/tmp/must-not-be-written", p->dir, "1.7"), 0);
	assert_int_equal(output_file_open(p->dir, 1, 7), -ELOOP);
	output_file_writer_init(&w, p->dir, 1, 7, 1000);
	write_more(&w, 10);
	assert_int_equal(fstatat(p->dir, "1.7", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_true(access("/tmp/must-not-be-written", F_OK) < 0);
	output_file_writer_done(&w);
}

static void a_damaged_file_is_reported(void **state)
{
	struct place *p = *state;
	struct output_file_writer w;
	struct output_file_extent s;
	struct err e = {};
	AUTO_FD fd = -1;

	output_file_writer_init(&w, p->dir, 1, 8, 1000);
	write_more(&w, 10);
	assert_int_equal(pwrite(w.fd, "\377", 1, 24), 1);
	fd = output_file_open(p->dir, 1, 8);
	assert_false(output_file_stat(fd, &s, &e));
	assert_int_equal(e.kind, ERR_INTERNAL);
	output_file_writer_done(&w);
	assert_int_equal(ftruncate(openat(p->dir, "1.8", O_WRONLY | O_CLOEXEC), 0), 0);
	assert_true(output_file_stat(fd, &s, &e)); /* empty: no output yet */
	assert_int_equal(s.total, 0);
}

/* ---- concurrent reader and writer ---- */

struct race {
	struct place *place;
	atomic_bool stop;
	int64_t limit;
};

static void *race_writer(void *arg)
{
	struct race *r = arg;
	struct output_file_writer w;
	unsigned seed = 5;

	output_file_writer_init(&w, r->place->dir, 9999, 1, r->limit);
	while (!atomic_load(&r->stop))
		write_more(&w, 1 + (size_t)rand_r(&seed) % 3000);
	output_file_writer_done(&w);
	return NULL;
}

static void a_reader_never_sees_wrong_bytes_of_a_fast_writer(void **state)
{
	struct race r = {.place = *state, .limit = 6000};
	usec_t until = clock_boot(&clock_system) + USEC_SEC;
	int64_t at = 0, sum = 0;
	pthread_t thread;
	AUTO_FD fd = -1;
	char buf[4096];

	assert_int_equal(pthread_create(&thread, NULL, race_writer, &r), 0);
	while ((fd = output_file_open(r.place->dir, 9999, 1)) < 0)
		;
	for (int i = 0; clock_boot(&clock_system) < until; i++) {
		struct output_file_extent s;
		struct err e = {};
		int64_t from;
		size_t n = 0;

		if (!output_file_stat(fd, &s, &e) ||
			!output_file_read(
				fd, i % 4 ? s.gap_to : at, buf, sizeof(buf), &from, &n, &e))
			fail_msg("%s", e.msg); /* mostly the oldest bytes, which are overwritten next */
		for (size_t k = 0; k < n; k++)
			if (buf[k] != byte_at(from + (int64_t)k))
				fail_msg("byte %lld is wrong", (long long)from + (long long)k);
		at = from + (int64_t)n;
		sum += (int64_t)n;
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	assert_true(sum > r.limit);
}

/* An attacker with write access to the directory replaces the file repeatedly. */
static void *swapper(void *arg)
{
	struct race *r = arg;
	int dir = r->place->dir;

	for (unsigned i = 0; !atomic_load(&r->stop); i++) {
		static const char name[] = "8888.1";

		unlinkat(dir, "swap", 0);
		if (i % 4 == 0)
			assert_int_equal(symlinkat("victim", dir, "swap"), 0);
		else if (i % 4 == 1)
			assert_int_equal(linkat(dir, "victim", dir, "swap", 0), 0);
		else if (i % 4 == 2)
			assert_int_equal(mkfifoat(dir, "swap", 0600), 0);
		else
			unlinkat(dir, name, 0);
		if (i % 4 != 3)
			renameat(dir, "swap", dir, name);
	}
	return NULL;
}

static void a_replaced_file_is_never_written_or_shown(void **state)
{
	struct race r = {.place = *state};
	int dir = r.place->dir;
	AUTO_FD victim = openat(dir, "victim", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct stat victim_st;
	pthread_t thread;
	char text[64] = {};

	assert_int_equal(write(victim, "untouched", 9), 9);
	assert_int_equal(fstat(victim, &victim_st), 0);
	assert_int_equal(pthread_create(&thread, NULL, swapper, &r), 0);
	for (int i = 0; i < 10000; i++) {
		struct output_file_writer w;
		struct stat st;
		int fd;

		output_file_writer_init(&w, dir, 8888, 1, 1000);
		output_file_write(&w, "from a job", 10);
		assert_true(w.fd < 0 || (fstat(w.fd, &st) == 0 && st.st_ino != victim_st.st_ino));
		output_file_writer_done(&w);
		fd = output_file_open(dir, 8888, 1);
		assert_true(fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)));
		/* a link that was removed before it could be counted */
		if (fd >= 0 && st.st_ino == victim_st.st_ino)
			assert_false(output_file_stat(fd, &(struct output_file_extent){}, NULL));
		if (fd >= 0)
			close(fd);
		output_file_remove(dir, 8888, 1, NULL);
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(pread(victim, text, sizeof(text), 0), 9);
	assert_string_equal(text, "untouched");
}

static void the_writer_reads_the_end_of_its_output(void **state)
{
	struct place *p = *state;

	for (size_t total = 0; total < 1500; total += 7) {
		struct output_file_writer w;
		char end[100];
		size_t n, want = total <= 100 ? total : total - 100;

		output_file_writer_init(&w, p->dir, 9999, 1, 1000); /* head 100, tail 900 */
		for (size_t done = 0; done < total; done += 7)
			write_more(&w, 7);
		n = output_file_end(&w, end, sizeof(end));
		assert_int_equal(n, want < sizeof(end) ? want : sizeof(end));
		for (size_t i = 0; i < n; i++)
			assert_int_equal(end[i], byte_at((int64_t)(total - n + i)));
		output_file_writer_done(&w);
		output_file_remove(p->dir, 9999, 1, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_writer_reads_the_end_of_its_output),
		TEST(the_start_and_the_end_are_kept_for_all_sizes),
		TEST(an_offset_in_the_gap_moves_to_its_end),
		TEST(the_file_stays_within_its_limit),
		TEST(bytes_lost_to_a_full_disk_are_counted),
		TEST(a_disk_error_in_the_ring_drops_earlier_bytes),
		TEST(output_without_a_file_is_counted),
		TEST(a_symbolic_link_is_not_followed),
		TEST(a_replaced_file_is_never_written_or_shown),
		TEST(a_damaged_file_is_reported),
		TEST(a_reader_never_sees_wrong_bytes_of_a_fast_writer),
	};

	return cmocka_run_group_tests(tests, up, down);
}
