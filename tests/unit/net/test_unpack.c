/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking of archives, and the confinement of the children that do it. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "net/unpack/quota.h"
#include "net/unpack/confine.h"
#include "net/unpack/unpack.h"
#include "unit/unit.h"
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct dir {
	char path[64];
	int dir;
};

static int setup(void **state)
{
	struct dir *p = xcalloc(1, sizeof(*p));

	strcpy(p->path, "/tmp/unpack.XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct dir *p = *state;

	close(p->dir);
	assert_int_equal(unpack_remove(AT_FDCWD, p->path), 0);
	free(p);
	return 0;
}

struct item {
	const char *path;
	mode_t type, mode;
	const char *content; /* of a link: its target */
};

static int archive_of(const struct dir *p, const struct item *items, size_t n, bool compressed)
{
	struct archive *out = archive_write_new();
	int fd = openat(p->dir, "archive", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	archive_write_set_format_gnutar(out);
	if (compressed)
		archive_write_add_filter_gzip(out);
	assert_int_equal(archive_write_open_fd(out, fd), ARCHIVE_OK);
	for (size_t i = 0; i < n; i++) {
		struct archive_entry *e = archive_entry_new();

		archive_entry_set_pathname(e, items[i].path);
		archive_entry_set_filetype(e, items[i].type);
		archive_entry_set_perm(e, items[i].mode);
		if (items[i].type == AE_IFLNK)
			archive_entry_set_symlink(e, items[i].content);
		else if (items[i].type == 0)
			archive_entry_set_hardlink(e, items[i].content);
		else if (items[i].type == AE_IFREG)
			archive_entry_set_size(e, (la_int64_t)strlen(items[i].content));
		assert_int_equal(archive_write_header(out, e), ARCHIVE_OK);
		if (items[i].type == AE_IFREG)
			archive_write_data(out, items[i].content, strlen(items[i].content));
		archive_entry_free(e);
	}
	archive_write_close(out);
	archive_write_free(out);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static bool unpack(const struct dir *p, int fd, int64_t limit, struct err *e)
{
	struct quota quota = {.fd = -1};
	AUTO_FD tree = -1;
	int64_t bytes;

	unpack_remove(p->dir, "tree");
	assert_int_equal(mkdirat(p->dir, "tree", 0700), 0);
	tree = openat(p->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return unpack_tree(
		&(struct unpack_source){
			.file = fd, .tree = tree, .name = "tool", .limit = limit, .quota = &quota},
		&bytes, e);
}

static bool unpacks(const struct dir *p, const struct item *items, size_t n, struct err *e)
{
	AUTO_FD fd = archive_of(p, items, n, true);

	return unpack(p, fd, 1 << 20, e);
}

static mode_t mode_of(const struct dir *p, const char *path)
{
	struct stat st;

	return fstatat(p->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_mode;
}

static void a_tar_archive_becomes_a_read_only_tree(void **state)
{
	const struct item items[] = {
		{"./", AE_IFDIR, 0777, NULL},
		{"./bin/tool", AE_IFREG, 04777, "#!/bin/sh\n"},
		{"share/t\xc3\xa4xt", AE_IFREG, 0666, "words"},
		{"share/link", AE_IFLNK, 0777, "../bin/tool"},
		{"share/same", 0, 0644, "bin/tool"},
		{"share/empty/", AE_IFDIR, 01777, NULL},
	};
	const struct dir *p = *state;
	struct err e = {};

	if (!unpacks(p, items, ELEMENTS(items), &e))
		fail_msg("%s", e.msg);
	assert_int_equal(mode_of(p, "tree"), S_IFDIR | 0555);
	assert_int_equal(mode_of(p, "tree/bin"), S_IFDIR | 0555);
	assert_int_equal(mode_of(p, "tree/bin/tool"), S_IFREG | 0555);
	assert_int_equal(mode_of(p, "tree/share/t\xc3\xa4xt"), S_IFREG | 0444);
	assert_int_equal(mode_of(p, "tree/share/same"), S_IFREG | 0555);
	assert_int_equal(mode_of(p, "tree/share/link") & S_IFMT, S_IFLNK);
	assert_int_equal(mode_of(p, "tree/share/empty"), S_IFDIR | 0555);
}

static void entries_that_lead_out_of_the_tree_are_refused(void **state)
{
	static const struct item bad[][2] = {
		{{"/etc/evil", AE_IFREG, 0644, "x"}},
		{{"../evil", AE_IFREG, 0644, "x"}},
		{{"a/../../evil", AE_IFREG, 0644, "x"}},
		{{"out", AE_IFLNK, 0777, "/etc"}},
		{{"out", AE_IFLNK, 0777, ".."}},
		{{"a/out", AE_IFLNK, 0777, "../../etc"}},
		{{"a/out", AE_IFLNK, 0777, "b/../../c"}}, /* 'b' may be a link */
		/* links are not followed */
		{{"in", AE_IFLNK, 0777, "."}, {"in/evil", AE_IFREG, 0644, "x"}},
		{{"same", 0, 0644, "../../../etc/passwd"}},
		{{"same", 0, 0644, "/etc/passwd"}},
		{{"device", AE_IFCHR, 0666, NULL}},
		{{"fifo", AE_IFIFO, 0666, NULL}},
	};
	const struct dir *p = *state;

	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		struct err e = {};

		if (unpacks(p, bad[i], bad[i][1].path ? 2 : 1, &e))
			fail_msg("'%s' to '%s' was unpacked", bad[i][0].path,
				bad[i][0].content ? bad[i][0].content : "");
		assert_true(strlen(e.msg) > 0);
	}
	assert_int_equal(mode_of(p, "evil"), 0);
}

static void an_archive_over_a_limit_is_refused(void **state)
{
	const struct dir *p = *state;
	AUTO_TEXT zeros = xcalloc(1, 300001);
	struct item many[200], one[] = {{"zeros", AE_IFREG, 0644, zeros}};
	struct err e = {};
	AUTO_FD small = -1;
	AUTO_FD files = -1;
	AUTO_DONE(buf) deep = {};
	const struct item deepest[] = {{"", AE_IFDIR, 0755, NULL}};

	memset(zeros, '0', 300000);
	small = archive_of(p, one, 1, true);
	assert_false(unpack(p, small, 200000, &e)); /* the archive has some hundred bytes */
	assert_int_equal(e.kind, ERR_TOO_LARGE);
	for (size_t i = 0; i < ELEMENTS(many); i++)
		many[i] = (struct item){xprintf("f%zu", i), AE_IFREG, 0644, ""};
	files = archive_of(p, many, ELEMENTS(many), true);
	e = (struct err){};
	assert_false(unpack(p, files, 200 * 4000, &e)); /* empty files use disk space, too */
	assert_int_equal(e.kind, ERR_TOO_LARGE);
	for (size_t i = 0; i < ELEMENTS(many); i++)
		free((char *)many[i].path);
	for (int i = 0; i <= UNPACK_DEPTH_MAX; i++)
		buf_str(&deep, "d/");
	assert_false(unpacks(
		p, (struct item[]){{deep.data, deepest[0].type, 0755, NULL}}, 1, &(struct err){}));
}

static void a_file_that_is_not_a_tar_archive_is_copied(void **state)
{
	const struct dir *p = *state;
	static const char *const texts[] = {
		"#!/bin/sh\necho hello\n", "", "\x1f\x8b not gzip at all"};

	for (size_t i = 0; i < ELEMENTS(texts); i++) {
		AUTO_FD fd = openat(p->dir, "plain", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		struct err e = {};

		assert_int_equal(io_write_all(fd, texts[i], strlen(texts[i])), 0);
		lseek(fd, 0, SEEK_SET);
		if (!unpack(p, fd, 1 << 20, &e))
			fail_msg("%s", e.msg);
		assert_int_equal(mode_of(p, "tree/tool"), S_IFREG | 0555);
	}
}

static void a_damaged_archive_is_refused(void **state)
{
	const struct dir *p = *state;
	AUTO_TEXT text = xcalloc(1, 50001);
	struct item items[] = {{"a", AE_IFREG, 0644, text}, {"b", AE_IFREG, 0644, text}};
	AUTO_FD fd = -1;
	struct err e = {};

	for (uint64_t i = 0; i < 50000; i++)
		text[i] = (char)('!' + ((i + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 33) % 90);
	fd = archive_of(p, items, 2, false);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) / 2), 0);
	lseek(fd, 0, SEEK_SET);
	assert_false(unpack(p, fd, 1 << 20, &e));
	assert_int_equal(e.kind, ERR_INVALID);
}

static void a_file_is_named_after_the_last_component_of_its_url(void **state)
{
	static const struct {
		const char *url, *name;
	} table[] = {
		{"https://example.org/a/tool-1.0?token=x/y", "tool-1.0"},
		{"https://example.org/", "artifact"},
		{"file:/opt/some tool;rm", "some_tool_rm"},
		{"https://example.org/..", "artifact"},
		{"https://example.org/.profile#x", "artifact"},
		{"https://example.org/-rf", "artifact"},
		{"file:tool", "tool"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		AUTO_TEXT name = unpack_file_name(table[i].url);

		assert_string_equal(name, table[i].name);
	}
}

/* ---- entries with a body that is not written ---- */

static void add_header(struct buf *out, const char *name, char type, const char *link, int64_t size)
{
	char block[512] = {};
	unsigned sum = 0;

	snprintf(block, 100, "%s", name);
	memcpy(block + 100, "0000644\0000000000\0000000000", 24);
	snprintf(block + 124, 12, "%011llo", (unsigned long long)size);
	memcpy(block + 136, "00000000000", 12);
	memset(block + 148, ' ', 8);
	block[156] = type;
	snprintf(block + 157, 100, "%s", link);
	memcpy(block + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof(block); i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
	buf_add(out, block, sizeof(block));
}

/* A pax archive with a hard link that has a body, which POSIX allows. */
static int hard_link_archive(const struct dir *p, int64_t size)
{
	AUTO_TEXT record = xprintf("%d size=%07lld\n", 16, (long long)size);
	AUTO_DONE(buf) tar = {};
	AUTO_TEXT zeros = xcalloc(1, (size_t)size + 2048);
	char block[512] = {};
	int fd = openat(p->dir, "archive", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(strlen(record), 16);
	add_header(&tar, "a", '0', "", 1);
	block[0] = 'x';
	buf_add(&tar, block, sizeof(block));
	add_header(&tar, "pax", 'x', "", 16);
	memset(block, 0, sizeof(block));
	memcpy(block, record, 16);
	buf_add(&tar, block, sizeof(block));
	add_header(&tar, "b", '1', "a", size);
	buf_add(&tar, zeros, (size_t)size + 1024);
	assert_int_equal(io_write_all(fd, tar.data, tar.len), 0);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void the_body_of_a_hard_link_counts_against_the_limit(void **state)
{
	const struct dir *p = *state;
	AUTO_FD large = -1;
	AUTO_FD small = hard_link_archive(p, 512 << 10);
	struct err e = {};

	if (!unpack(p, small, 1 << 20, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(mode_of(p, "tree/b"), S_IFREG | 0444);
	large = hard_link_archive(p, 2 << 20);
	assert_false(unpack(p, large, 1 << 20, &e));
	assert_int_equal(e.kind, ERR_TOO_LARGE);
}

/* ---- confinement ---- */

static bool confined(int tree)
{
	struct err e = {};
	int fd;

	if (!confine_child(tree, &e))
		return false;
	fd = openat(tree, "inside", O_WRONLY | O_CREAT, 0600);
	return fd >= 0 && socket(AF_INET, SOCK_STREAM, 0) < 0 &&
		socket(AF_UNIX, SOCK_STREAM, 0) < 0 && fork() < 0 &&
		execl("/bin/true", "true", NULL) < 0;
}

static void a_confined_child_has_no_network_and_starts_no_process(void **state)
{
	const struct dir *p = *state;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(confined(p->dir) ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define DIR_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIR_TEST(a_tar_archive_becomes_a_read_only_tree),
		DIR_TEST(entries_that_lead_out_of_the_tree_are_refused),
		DIR_TEST(an_archive_over_a_limit_is_refused),
		DIR_TEST(the_body_of_a_hard_link_counts_against_the_limit),
		DIR_TEST(a_file_that_is_not_a_tar_archive_is_copied),
		DIR_TEST(a_damaged_archive_is_refused),
		TEST(a_file_is_named_after_the_last_component_of_its_url),
		DIR_TEST(a_confined_child_has_no_network_and_starts_no_process),
	};

	return RUN_TESTS(tests);
}
