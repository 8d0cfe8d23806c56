/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts: unpacking, fetching, the confinement of the children, and the cache. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "net/artifact_cache.h"
#include "net/child.h"
#include "net/artifact_download.h"
#include "net/quota.h"
#include "net/request.h"
#include "net/unpack/confine.h"
#include "net/unpack/unpack.h"
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

struct place {
	char path[64];
	int dir;
	sd_event *ev;
	struct cache *cache;
	struct request *requests;    /* as jobsched-net has them */
	int files_sent;
	int64_t uid, limit;          /* of the requests; 0: 1, and 1 MiB */
};

static void drop(struct place *p, struct request *r)
{
	struct request **at = &p->requests;

	cache_drop(r, p->cache);
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	auto_fd_close(&r->result_fd);
	net_payload_done(&r->payload);
	free(r);
}

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

	while (p->requests)
		drop(p, p->requests);
	cache_free(p->cache);
	sd_event_unref(p->ev);
	close(p->dir);
	assert_int_equal(unpack_remove(AT_FDCWD, p->path), 0);
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
	struct quota quota = {.fd = -1};
	AUTO_FD tree = -1;
	int64_t bytes;

	unpack_remove(p->dir, "tree");
	assert_int_equal(mkdirat(p->dir, "tree", 0700), 0);
	tree = openat(p->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return unpack_tree(&(struct unpack_source){.file = fd, .tree = tree, .name = "tool", .limit = limit, .quota = &quota},
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
	for (int i = 0; i <= UNPACK_DEPTH_MAX; i++)
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
		AUTO_TEXT name = unpack_file_name(table[i].url);

		assert_string_equal(name, table[i].name);
	}
}

/* ---- bodies that are not written ---- */

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

/* A pax archive whose hard link has a body, as POSIX allows. */
static int hard_link_archive(const struct place *p, int64_t size)
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
	const struct place *p = *state;
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

/* ---- the confinement of the children ---- */

static bool confined(int tree)
{
	struct err e = {};
	int fd;

	if (!confine_child(tree, &e))
		return false;
	fd = openat(tree, "inside", O_WRONLY | O_CREAT, 0600);
	return fd >= 0 && socket(AF_INET, SOCK_STREAM, 0) < 0 && socket(AF_UNIX, SOCK_STREAM, 0) < 0 && fork() < 0 &&
	       execl("/bin/true", "true", NULL) < 0;
}

static void a_confined_child_has_no_network_and_starts_nothing(void **state)
{
	const struct place *p = *state;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(confined(p->dir) ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- fetching ---- */

static char *write_file(const struct place *p, const char *name, const char *text, char sum[SHA256_HEX])
{
	AUTO_FD fd = openat(p->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	unsigned char hash[SHA256_LEN];
	struct sha256 s;

	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	sha256_init(&s);
	sha256_add(&s, text, strlen(text));
	sha256_end(&s, hash);
	sha256_hex(hash, sum);
	return xprintf("file://%s/%s", p->path, name);
}

/* Does the work of the spawner's child, without its checks. */
static void send_file(int to, const char *path)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	int32_t error = fd < 0 ? errno : 0;
	struct iovec iov = {&error, sizeof(error)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	assert_int_equal(sendmsg(to, &msg, 0), (int)sizeof(error));
}

static bool fetches(const struct place *p, const char *url, const char *sum, int64_t limit, struct err *e)
{
	AUTO_FD fd = openat(p->dir, "fetched", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct quota quota = {.fd = -1};
	int pair[2];
	bool ok;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	send_file(pair[1], url + strlen("file://"));
	*e = (struct err){};
	ok = artifact_download(&(struct artifact_source){.url = url, .sha256 = sum, .limit = limit, .timeout = USEC_SEC,
		.file_socket = pair[0], .quota = &quota}, fd, e);
	close(pair[0]);
	close(pair[1]);
	return ok;
}

static void only_regular_files_of_ordinary_file_systems_are_fetched(void **state)
{
	const struct place *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "open", "content", sum);
	AUTO_TEXT fifo = xprintf("file://%s/fifo", p->path);
	AUTO_TEXT directory = xprintf("file://%s", p->path);
	struct err e = {};

	if (!fetches(p, url, sum, 100, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(mkfifoat(p->dir, "fifo", 0644), 0);
	assert_false(fetches(p, fifo, sum, 100, &e)); /* and does not hang */
	assert_false(fetches(p, directory, sum, 100, &e));
	assert_false(fetches(p, "file:///proc/self/status", sum, 1 << 20, &e));
	assert_non_null(strstr(e.msg, "ordinary file system"));
	assert_false(fetches(p, "file:///nowhere", sum, 100, &e));
	assert_non_null(strstr(e.msg, "No such file"));
}

static void a_wrong_sum_or_size_is_refused(void **state)
{
	const struct place *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "open", "content", sum);
	struct err e = {};

	sum[0] = sum[0] == '0' ? '1' : '0';
	assert_false(fetches(p, url, sum, 100, &e));
	assert_non_null(strstr(e.msg, "SHA-256"));
	assert_false(fetches(p, url, sum, 6, &e));
	assert_int_equal(e.kind, ERR_TOO_LARGE);
}

/* ---- the cache; its children are this program with --child ---- */

void request_end(struct request *r, enum net_outcome outcome, const char *error, int fd)
{
	r->stage = REQUEST_ENDED;
	r->outcome = outcome;
	net_frame_text(r->error, sizeof(r->error), error);
	r->result_fd = fd;
}

void request_need_file(struct request *r, int socket)
{
	send_file(socket, r->payload.texts[0] + strlen("file://"));
	close(socket);
	((struct place *)(void *)r->server)->files_sent++;
}

static void open_cache(struct place *p, bool private_copies, int64_t budget)
{
	AUTO_TEXT dir = xprintf("%s/cache", p->path);
	struct err e = {};

	if (!p->ev)
		assert_true(sd_event_new(&p->ev) >= 0);
	if (!cache_new(p->ev, &(struct cache_options){.dir = dir, .private_copies = private_copies, .requests = &p->requests},
			&p->cache, &e))
		fail_msg("%s", e.msg);
	cache_set_budget(p->cache, budget);
	cache_synced(p->cache);
}

static struct request *ask(struct place *p, int64_t run, const char *url, const char *sum)
{
	struct request *r = xcalloc(1, sizeof(*r)), **last = &p->requests;
	const char *texts[] = {url, sum};
	AUTO_FD payload = net_payload_memfd(texts, 2, NULL, 0, NULL);
	struct err e = {};

	*r = (struct request){.server = (struct net_server *)(void *)p, .id = {NET_KIND_ARTIFACT, run, 1}, .uid = p->uid ? p->uid : 1,
		.limit = p->limit ? p->limit : 1 << 20, .timeout = 60 * USEC_SEC, .result_fd = -1, .file_socket = -1};
	assert_true(net_payload_read(&r->payload, payload, NULL));
	while (*last)
		last = &(*last)->next;
	*last = r;
	if (!cache_start(r, p->cache, &e))
		fail_msg("%s", e.msg);
	return r;
}

static void wait_ended(struct place *p, const struct request *r)
{
	for (int turns = 0; r->stage != REQUEST_ENDED && turns < 6000; turns++)
		assert_true(sd_event_run(p->ev, 10000) >= 0);
	assert_int_equal(r->stage, REQUEST_ENDED);
}

static struct request *get(struct place *p, int64_t run, const char *url, const char *sum)
{
	struct request *r = ask(p, run, url, sum);

	wait_ended(p, r);
	return r;
}

static void expect_done(const struct request *r, const char *file, const char *content)
{
	AUTO_FD fd = -1;
	AUTO_DONE(buf) text = {};

	if (r->outcome != NET_DONE)
		fail_msg("%s", r->error);
	fd = openat(r->result_fd, file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && io_read_all(fd, &text, 1 << 20) == 0 && text.len >= strlen(content));
	assert_memory_equal(text.data, content, strlen(content));
}

static size_t entries(struct place *p, bool dotted)
{
	AUTO_TEXT path = xprintf("%s/cache", p->path);
	DIR *d = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && (entry->d_name[0] == '.') == dotted;
	closedir(d);
	return n;
}

static void wait_removed(struct place *p)
{
	for (int turns = 0; turns < 6000 && entries(p, true); turns++)
		sd_event_run(p->ev, 10000);
	assert_int_equal(entries(p, true), 0);
}

static void two_requests_share_one_fetch_and_a_new_process_finds_it(void **state)
{
	struct place *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "tool", "#!/bin/sh\n", sum);
	struct request *a, *b;

	open_cache(p, false, 1 << 20);
	a = ask(p, 1, url, sum);
	b = ask(p, 2, url, sum);
	wait_ended(p, a);
	wait_ended(p, b);
	expect_done(a, "tool", "#!/bin/sh\n");
	expect_done(b, "tool", "#!/bin/sh\n");
	assert_int_equal(p->files_sent, 1);
	drop(p, a);
	drop(p, b);
	cache_free(STEAL(p->cache));
	unlinkat(p->dir, "tool", 0);
	open_cache(p, false, 1 << 20);
	expect_done(get(p, 3, url, sum), "tool", "#!/bin/sh\n");
	assert_int_equal(p->files_sent, 1);
}

static void a_failed_fetch_leaves_nothing_and_is_tried_anew(void **state)
{
	struct place *p = *state;
	char sum[SHA256_HEX], wrong[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "tool", "right", sum);

	memset(wrong, '0', sizeof(wrong) - 1);
	wrong[sizeof(wrong) - 1] = '\0';
	open_cache(p, false, 1 << 20);
	assert_int_equal(get(p, 1, url, wrong)->outcome, NET_FAILED);
	assert_int_equal(get(p, 2, url, wrong)->outcome, NET_FAILED);
	assert_int_equal(p->files_sent, 2);
	wait_removed(p);
	assert_int_equal(entries(p, false), 0);
}

static void artifacts_in_use_count_in_the_budget_and_are_not_evicted(void **state)
{
	struct place *p = *state;
	char sum[4][SHA256_HEX], *url[4], *text = xcalloc(1, 40001);
	struct request *r[3];

	for (int i = 0; i < 4; i++) {
		char name[] = {(char)('a' + i), '\0'};

		memset(text, 'a' + i, i == 3 ? 4000 : 40000);
		if (i == 3)
			text[4000] = '\0';
		url[i] = write_file(p, name, text, sum[i]);
	}
	open_cache(p, false, 100000); /* one archive with its tree fits beside one tree */
	r[0] = get(p, 1, url[0], sum[0]);
	expect_done(r[0], "a", "aaa");
	r[1] = get(p, 2, url[1], sum[1]);
	assert_int_equal(r[1]->outcome, NET_BUSY);
	assert_non_null(strstr(r[1]->error, "artifact-budget"));
	expect_done(get(p, 3, url[3], sum[3]), "d", "ddd"); /* a small one still fits */
	drop(p, r[0]);
	expect_done(get(p, 4, url[1], sum[1]), "b", "bbb");
	wait_removed(p);
	assert_int_equal(entries(p, false), 2); /* the first was evicted */
	for (int i = 0; i < 4; i++)
		free(url[i]);
	free(text);
}

static void one_owner_has_at_most_half_of_the_budget_in_use(void **state)
{
	struct place *p = *state;
	char sum[2][SHA256_HEX], *url[2], *text = xcalloc(1, 40001);
	const struct request *r;

	for (int i = 0; i < 2; i++) {
		char name[] = {(char)('a' + i), '\0'};

		memset(text, 'a' + i, 40000);
		url[i] = write_file(p, name, text, sum[i]);
	}
	p->limit = 50000;
	open_cache(p, false, 200000);
	expect_done(get(p, 1, url[0], sum[0]), "a", "aaa");
	r = get(p, 2, url[1], sum[1]);
	assert_int_equal(r->outcome, NET_BUSY);
	assert_non_null(strstr(r->error, "half of artifact-budget"));
	p->uid = 2;
	expect_done(get(p, 3, url[1], sum[1]), "b", "bbb");
	free(url[0]);
	free(url[1]);
	free(text);
}

static void an_artifact_larger_than_the_budget_is_refused_for_good(void **state)
{
	struct place *p = *state;
	char sum[SHA256_HEX], *text = xcalloc(1, 40001);
	AUTO_TEXT url = NULL;
	const struct request *r;

	memset(text, 'x', 40000);
	url = write_file(p, "tool", text, sum);
	open_cache(p, false, 30000);
	r = get(p, 1, url, sum);
	assert_int_equal(r->outcome, NET_FAILED);
	assert_non_null(strstr(r->error, "artifact-budget"));
	free(text);
}

/* Jobs of user mode can write everything here. */
static void a_run_that_alters_its_copy_or_the_archive_changes_nothing_for_the_next(void **state)
{
	struct place *p = *state;
	char sum[SHA256_HEX], key[NET_KEY_MAX];
	AUTO_TEXT url = write_file(p, "tool", "right", sum);
	AUTO_TEXT file = xprintf("cache/%s/file", net_frame_artifact_key(url, sum, 1, key));
	struct request *r;
	int fd;

	open_cache(p, true, 1 << 20);
	r = get(p, 1, url, sum);
	expect_done(r, "tool", "right");
	assert_int_equal(fchmodat(r->result_fd, "tool", 0700, 0), 0);
	fd = openat(r->result_fd, "tool", O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(io_write_all(fd, "wrong", 5), 0);
	close(fd);
	expect_done(get(p, 2, url, sum), "tool", "right");
	assert_int_equal(p->files_sent, 1);
	fd = openat(p->dir, file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(io_write_all(fd, "wrong", 5), 0);
	close(fd);
	expect_done(get(p, 3, url, sum), "tool", "right");
	assert_int_equal(p->files_sent, 2);
	drop(p, r);
	wait_removed(p);
	assert_int_equal(entries(p, false), 3); /* the archive and two copies */
}

static void what_a_crash_left_half_made_is_removed(void **state)
{
	struct place *p = *state;

	assert_int_equal(mkdirat(p->dir, "cache", 0700), 0);
	assert_int_equal(mkdirat(p->dir, "cache/.new-x", 0700), 0);
	assert_int_equal(mkdirat(p->dir, "cache/.new-x/tree", 0555), 0);
	assert_int_equal(mkdirat(p->dir, "cache/run-7-1", 0700), 0);
	open_cache(p, true, 1 << 20);
	wait_removed(p);
	assert_int_equal(entries(p, false), 0);
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(a_tar_becomes_a_tree_that_nobody_writes_to),
		PLACE_TEST(what_leads_out_of_the_tree_is_refused),
		PLACE_TEST(too_much_is_refused),
		PLACE_TEST(the_body_of_a_hard_link_counts_against_the_limit),
		PLACE_TEST(what_is_no_tar_is_put_there_as_itself),
		PLACE_TEST(a_damaged_archive_is_refused),
		TEST(the_name_of_a_file_is_the_last_word_of_its_url),
		PLACE_TEST(a_confined_child_has_no_network_and_starts_nothing),
		PLACE_TEST(only_regular_files_of_ordinary_file_systems_are_fetched),
		PLACE_TEST(a_wrong_sum_or_size_is_refused),
		PLACE_TEST(two_requests_share_one_fetch_and_a_new_process_finds_it),
		PLACE_TEST(a_failed_fetch_leaves_nothing_and_is_tried_anew),
		PLACE_TEST(artifacts_in_use_count_in_the_budget_and_are_not_evicted),
		PLACE_TEST(one_owner_has_at_most_half_of_the_budget_in_use),
		PLACE_TEST(an_artifact_larger_than_the_budget_is_refused_for_good),
		PLACE_TEST(a_run_that_alters_its_copy_or_the_archive_changes_nothing_for_the_next),
		PLACE_TEST(what_a_crash_left_half_made_is_removed),
	};

	if (argc == 2 && strcmp(argv[1], "--child") == 0)
		return child_main();
	return RUN_TESTS(tests);
}
