/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts: what comes out of an archive, what must not, and the cache around it. */
#include "unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "daemon/artifact.h"
#include "daemon/artifact_fetch.h"
#include "daemon/artifact_unpack.h"
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

static const atomic_bool go_on;

struct place {
	char path[64];
	int dir;
	sd_event *ev;
	struct artifacts *cache;
	char used[ARTIFACT_KEY_MAX]; /* a key that is in use */
	int done;
	struct err why;
};

static int up(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));

	strcpy(p->path, "/tmp/artifact.XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;

	artifacts_free(p->cache);
	sd_event_unref(p->ev);
	close(p->dir);
	assert_int_equal(artifact_remove(AT_FDCWD, p->path), 0);
	free(p);
	return 0;
}

/* ---- archives ---- */

struct item {
	const char *path;
	mode_t type, mode;
	const char *content; /* or where a link leads */
};

static int archive_of(const struct place *p, const struct item *items, size_t n, bool compressed)
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

static bool unpack(const struct place *p, int fd, int64_t limit, struct err *e)
{
	AUTO_FD tree = -1;
	int64_t bytes;

	artifact_remove(p->dir, "tree");
	assert_int_equal(mkdirat(p->dir, "tree", 0700), 0);
	tree = openat(p->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return artifact_unpack(&(struct artifact_parcel){.file = fd, .tree = tree, .name = "tool", .limit = limit, .stop = &go_on},
		&bytes, e);
}

static bool unpacks(const struct place *p, const struct item *items, size_t n, struct err *e)
{
	AUTO_FD fd = archive_of(p, items, n, true);

	return unpack(p, fd, 1 << 20, e);
}

static mode_t mode_of(const struct place *p, const char *path)
{
	struct stat st;

	return fstatat(p->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_mode;
}

static void a_tar_becomes_a_tree_that_nobody_writes_to(void **state)
{
	const struct item items[] = {
		{"./", AE_IFDIR, 0777, NULL},
		{"./bin/tool", AE_IFREG, 04777, "#!/bin/sh\n"},
		{"share/t\xc3\xa4xt", AE_IFREG, 0666, "words"},
		{"share/link", AE_IFLNK, 0777, "../bin/tool"},
		{"share/same", 0, 0644, "bin/tool"},
		{"share/empty/", AE_IFDIR, 01777, NULL},
	};
	const struct place *p = *state;
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

static void what_leads_out_of_the_tree_is_refused(void **state)
{
	static const struct item bad[][2] = {
		{{"/etc/evil", AE_IFREG, 0644, "x"}},
		{{"../evil", AE_IFREG, 0644, "x"}},
		{{"a/../../evil", AE_IFREG, 0644, "x"}},
		{{"out", AE_IFLNK, 0777, "/etc"}},
		{{"out", AE_IFLNK, 0777, ".."}},
		{{"a/out", AE_IFLNK, 0777, "../../etc"}},
		{{"a/out", AE_IFLNK, 0777, "b/../../c"}}, /* 'b' may be a link itself */
		{{"in", AE_IFLNK, 0777, "."}, {"in/evil", AE_IFREG, 0644, "x"}}, /* no link is followed */
		{{"same", 0, 0644, "../../../etc/passwd"}},
		{{"same", 0, 0644, "/etc/passwd"}},
		{{"device", AE_IFCHR, 0666, NULL}},
		{{"fifo", AE_IFIFO, 0666, NULL}},
	};
	const struct place *p = *state;

	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		struct err e = {};

		if (unpacks(p, bad[i], bad[i][1].path ? 2 : 1, &e))
			fail_msg("'%s' to '%s' was unpacked", bad[i][0].path, bad[i][0].content ? bad[i][0].content : "");
		assert_true(strlen(e.msg) > 0);
	}
	assert_int_equal(mode_of(p, "evil"), 0);
}

static void too_much_is_refused(void **state)
{
	const struct place *p = *state;
	AUTO_TEXT zeros = xcalloc(1, 300001);
	struct item many[200], one[] = {{"zeros", AE_IFREG, 0644, zeros}};
	struct err e = {};
	AUTO_FD small = -1;
	AUTO_FD crowd = -1;
	AUTO_DONE(buf) deep = {};
	const struct item down_there[] = {{"", AE_IFDIR, 0755, NULL}};

	memset(zeros, '0', 300000);
	small = archive_of(p, one, 1, true);
	assert_false(unpack(p, small, 200000, &e)); /* some hundred bytes of archive */
	assert_int_equal(e.kind, ERR_TOO_LARGE);
	for (size_t i = 0; i < ELEMENTS(many); i++)
		many[i] = (struct item){xprintf("f%zu", i), AE_IFREG, 0644, ""};
	crowd = archive_of(p, many, ELEMENTS(many), true);
	e = (struct err){};
	assert_false(unpack(p, crowd, 200 * 4000, &e)); /* empty files take room, too */
	assert_int_equal(e.kind, ERR_TOO_LARGE);
	for (size_t i = 0; i < ELEMENTS(many); i++)
		free((char *)many[i].path);
	for (int i = 0; i <= ARTIFACT_DEPTH_MAX; i++)
		buf_str(&deep, "d/");
	assert_false(unpacks(p, (struct item[]){{deep.data, down_there[0].type, 0755, NULL}}, 1, &(struct err){}));
}

static void what_is_no_tar_is_put_there_as_itself(void **state)
{
	const struct place *p = *state;
	static const char *const texts[] = {"#!/bin/sh\necho hello\n", "", "\x1f\x8b not gzip at all"};

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
	const struct place *p = *state;
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

static void the_name_of_a_file_is_the_last_word_of_its_url(void **state)
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
		AUTO_TEXT name = artifact_file_name(table[i].url);

		assert_string_equal(name, table[i].name);
	}
}

/* ---- fetching ---- */

static char *write_file(const struct place *p, const char *name, const char *text, mode_t mode, char sum[SHA256_HEX])
{
	AUTO_FD fd = openat(p->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	unsigned char hash[SHA256_LEN];
	struct sha256 s;

	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	sha256_init(&s);
	sha256_add(&s, text, strlen(text));
	sha256_end(&s, hash);
	sha256_hex(hash, sum);
	return xprintf("file://%s/%s", p->path, name);
}

static bool fetches(const struct place *p, const char *url, const char *sum, int64_t limit, bool public_only, struct err *e)
{
	AUTO_FD fd = openat(p->dir, "fetched", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return artifact_fetch(&(struct artifact_source){.url = url, .sha256 = sum, .limit = limit, .timeout = USEC_SEC,
		.public_only = public_only, .stop = &go_on}, fd, e);
}

static void a_file_is_fetched_when_everybody_may_read_it(void **state)
{
	const struct place *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "open", "content", 0644, sum);
	AUTO_TEXT secret = write_file(p, "closed", "content", 0640, sum);
	AUTO_TEXT link = xprintf("file:%s/link", p->path);
	AUTO_TEXT fifo = xprintf("file:%s/fifo", p->path);
	struct err e = {};

	assert_int_equal(fchmod(p->dir, 0755), 0);
	if (!fetches(p, url, sum, 100, true, &e))
		fail_msg("%s", e.msg);
	assert_false(fetches(p, secret, sum, 100, true, &e));
	assert_int_equal(e.kind, ERR_DENIED);
	assert_true(fetches(p, secret, sum, 100, false, &e)); /* our own user asks */
	assert_int_equal(fchmod(p->dir, 0750), 0);
	assert_int_equal(symlinkat("open", p->dir, "link"), 0);
	assert_false(fetches(p, url, sum, 100, true, &e)); /* nobody else gets to it */
	assert_false(fetches(p, link, sum, 100, true, &e));
	assert_int_equal(mkfifoat(p->dir, "fifo", 0644), 0);
	assert_false(fetches(p, fifo, sum, 100, false, &e)); /* and does not hang */
	assert_false(fetches(p, "file:/nowhere", sum, 100, false, &e));
}

static void a_wrong_sum_or_size_is_refused(void **state)
{
	const struct place *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "open", "content", 0644, sum);
	struct err e = {};

	sum[0] = sum[0] == '0' ? '1' : '0';
	assert_false(fetches(p, url, sum, 100, false, &e));
	assert_non_null(strstr(e.msg, "SHA-256"));
	assert_false(fetches(p, url, sum, 6, false, &e));
	assert_int_equal(e.kind, ERR_TOO_LARGE);
}

/* ---- the cache ---- */

static bool in_use(const char *key, void *arg)
{
	return strcmp(key, ((struct place *)arg)->used) == 0;
}

static void on_done(const char *key, const struct err *why, void *arg)
{
	struct place *p = arg;

	(void)key;
	p->done++;
	p->why = why ? *why : (struct err){};
}

static void open_cache(struct place *p, int64_t budget)
{
	struct err e = {};

	if (!p->ev)
		assert_true(sd_event_new(&p->ev) >= 0);
	if (!artifacts_new(p->ev, &(struct artifacts_options){.state_dir = p->path, .limit = 1 << 20, .budget = budget,
			.timeout = 5 * USEC_SEC, .in_use = in_use, .on_done = on_done, .arg = p}, &p->cache, &e))
		fail_msg("%s", e.msg);
}

static void wait_done(struct place *p, int n)
{
	for (int turns = 0; p->done < n && turns < 2000; turns++)
		assert_true(sd_event_run(p->ev, 10000) >= 0);
	assert_int_equal(p->done, n);
}

static size_t entries(const struct place *p, bool dotted)
{
	AUTO_TEXT path = xprintf("%s/" ARTIFACT_DIRECTORY, p->path);
	DIR *d = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && (entry->d_name[0] == '.') == dotted;
	closedir(d);
	return n;
}

static void two_who_ask_share_one_fetch_and_the_next_life_finds_it(void **state)
{
	struct place *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "tool", "#!/bin/sh\n", 0644, sum);
	AUTO_FD fd = -1;
	AUTO_FD again = -1;

	open_cache(p, 1 << 20);
	assert_int_equal(artifacts_get(p->cache, url, sum, 1), -1);
	assert_int_equal(artifacts_get(p->cache, url, sum, 2), -1);
	wait_done(p, 1);
	if (p->why.kind != ERR_NONE)
		fail_msg("%s", p->why.msg);
	fd = artifacts_get(p->cache, url, sum, 1);
	assert_true(fd >= 0 && faccessat(fd, "tool", X_OK, 0) == 0);
	artifacts_free(STEAL(p->cache));
	unlinkat(p->dir, "tool", 0);
	open_cache(p, 1 << 20);
	again = artifacts_get(p->cache, url, sum, 1);
	assert_true(again >= 0);
	assert_int_equal(p->done, 1);
}

static void a_failed_fetch_leaves_nothing_and_is_tried_anew(void **state)
{
	struct place *p = *state;
	char sum[SHA256_HEX], wrong[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "tool", "right", 0644, sum);

	memset(wrong, '0', sizeof(wrong) - 1);
	wrong[sizeof(wrong) - 1] = '\0';
	open_cache(p, 1 << 20);
	assert_int_equal(artifacts_get(p->cache, url, wrong, 1), -1);
	wait_done(p, 1);
	assert_int_equal(p->why.kind, ERR_INVALID);
	assert_int_equal(artifacts_get(p->cache, url, wrong, 1), -1);
	wait_done(p, 2);
	assert_int_equal(entries(p, false) + entries(p, true), 0);
}

static void what_was_used_longest_ago_goes_and_what_is_in_use_stays(void **state)
{
	struct place *p = *state;
	char sum[3][SHA256_HEX], key[ARTIFACT_KEY_MAX];
	char *url[3];
	int fd[3];

	open_cache(p, 10000); /* room for two: each takes a block or so */
	for (int i = 0; i < 3; i++) {
		char name[] = {(char)('a' + i), '\0'};

		url[i] = write_file(p, name, name, 0644, sum[i]);
		if (i == 0)
			artifact_key(url[0], sum[0], p->used);
		assert_int_equal(artifacts_get(p->cache, url[i], sum[i], 1), -1);
		wait_done(p, i + 1);
	}
	for (int turns = 0; turns < 500 && entries(p, true); turns++)
		sd_event_run(p->ev, 10000);
	assert_int_equal(entries(p, true), 0);
	for (int i = 0; i < 3; i++) {
		fd[i] = openat(p->dir, ARTIFACT_DIRECTORY, O_PATH | O_CLOEXEC);
		assert_int_equal(faccessat(fd[i], artifact_key(url[i], sum[i], key), F_OK, 0) == 0, i != 1);
		close(fd[i]);
		free(url[i]);
	}
}

static void what_a_crash_left_half_made_is_removed(void **state)
{
	struct place *p = *state;

	assert_int_equal(mkdirat(p->dir, ARTIFACT_DIRECTORY, 0700), 0);
	assert_int_equal(mkdirat(p->dir, ARTIFACT_DIRECTORY "/.new-x", 0700), 0);
	assert_int_equal(mkdirat(p->dir, ARTIFACT_DIRECTORY "/.new-x/tree", 0555), 0);
	open_cache(p, 1 << 20);
	for (int turns = 0; turns < 500 && entries(p, true); turns++)
		sd_event_run(p->ev, 10000);
	assert_int_equal(entries(p, true), 0);
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(a_tar_becomes_a_tree_that_nobody_writes_to),
		PLACE_TEST(what_leads_out_of_the_tree_is_refused),
		PLACE_TEST(too_much_is_refused),
		PLACE_TEST(what_is_no_tar_is_put_there_as_itself),
		PLACE_TEST(a_damaged_archive_is_refused),
		TEST(the_name_of_a_file_is_the_last_word_of_its_url),
		PLACE_TEST(a_file_is_fetched_when_everybody_may_read_it),
		PLACE_TEST(a_wrong_sum_or_size_is_refused),
		PLACE_TEST(two_who_ask_share_one_fetch_and_the_next_life_finds_it),
		PLACE_TEST(a_failed_fetch_leaves_nothing_and_is_tried_anew),
		PLACE_TEST(what_was_used_longest_ago_goes_and_what_is_in_use_stays),
		PLACE_TEST(what_a_crash_left_half_made_is_removed),
	};

	return RUN_TESTS(tests);
}
