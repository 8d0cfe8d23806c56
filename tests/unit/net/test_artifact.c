/* SPDX-License-Identifier: Apache-2.0 */
/* Artifact downloads and the artifact cache. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include "net/artifact/artifact_cache.h"
#include "net/artifact/artifact_download.h"
#include "net/child.h"
#include "net/unpack/quota.h"
#include "net/request.h"
#include "net/unpack/unpack.h"
#include "unit/unit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

struct rig {
	char path[64];
	int dir;
	sd_event *ev;
	struct artifact_cache *cache;
	struct request *requests;    /* the list of jobsched-net */
	int files_sent;
	int64_t uid, limit;          /* of the requests; 0: uid 1, limit 1 MiB */
};

static void request_drop(struct rig *p, struct request *r)
{
	struct request **at = &p->requests;

	artifact_cache_drop(r, p->cache);
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	auto_fd_close(&r->result_fd);
	net_payload_done(&r->payload);
	free(r);
}

static int setup(void **state)
{
	struct rig *p = xcalloc(1, sizeof(*p));

	strcpy(p->path, "/tmp/artifact.XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->dir = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct rig *p = *state;

	while (p->requests)
		request_drop(p, p->requests);
	artifact_cache_free(p->cache);
	sd_event_unref(p->ev);
	close(p->dir);
	assert_int_equal(unpack_remove(AT_FDCWD, p->path), 0);
	free(p);
	return 0;
}

/* ---- downloads ---- */

static char *write_file(
	const struct rig *p, const char *name, const char *text, char sum[SHA256_HEX])
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

/* Sends the file like the child of the spawner, but without its checks. */
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
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	assert_int_equal(sendmsg(to, &msg, 0), (int)sizeof(error));
}

static bool downloads(
	const struct rig *p, const char *url, const char *sum, int64_t limit, struct err *e)
{
	AUTO_FD fd = openat(p->dir, "fetched", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct quota quota = {.fd = -1};
	int pair[2];
	bool ok;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	send_file(pair[1], url + strlen("file://"));
	*e = (struct err){};
	ok = artifact_download(&(struct artifact_source){.url = url,
				       .sha256 = sum,
				       .limit = limit,
				       .timeout = USEC_SEC,
				       .file_socket = pair[0],
				       .quota = &quota},
		fd, e);
	close(pair[0]);
	close(pair[1]);
	return ok;
}

static void only_regular_files_of_ordinary_file_systems_are_copied(void **state)
{
	const struct rig *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "open", "content", sum);
	AUTO_TEXT fifo = xprintf("file://%s/fifo", p->path);
	AUTO_TEXT directory = xprintf("file://%s", p->path);
	struct err e = {};

	if (!downloads(p, url, sum, 100, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(mkfifoat(p->dir, "fifo", 0644), 0);
	assert_false(downloads(p, fifo, sum, 100, &e)); /* without blocking */
	assert_false(downloads(p, directory, sum, 100, &e));
	assert_false(downloads(p, "file:///proc/self/status", sum, 1 << 20, &e));
	assert_non_null(strstr(e.msg, "ordinary file system"));
	assert_false(downloads(p, "file:///nowhere", sum, 100, &e));
	assert_non_null(strstr(e.msg, "No such file"));
}

static void a_wrong_sum_or_size_is_refused(void **state)
{
	const struct rig *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "open", "content", sum);
	struct err e = {};

	sum[0] = sum[0] == '0' ? '1' : '0';
	assert_false(downloads(p, url, sum, 100, &e));
	assert_non_null(strstr(e.msg, "SHA-256"));
	assert_false(downloads(p, url, sum, 6, &e));
	assert_int_equal(e.kind, ERR_TOO_LARGE);
}

/* ---- the cache; its children are this program with the argument --child ---- */

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
	((struct rig *)(void *)r->server)->files_sent++;
}

static void cache_open(struct rig *p, bool private_copies, int64_t budget)
{
	AUTO_TEXT dir = xprintf("%s/cache", p->path);
	struct err e = {};

	if (!p->ev)
		assert_true(sd_event_new(&p->ev) >= 0);
	if (!artifact_cache_new(p->ev,
		    &(struct artifact_cache_options){
			    .dir = dir, .private_copies = private_copies, .requests = &p->requests},
		    &p->cache, &e))
		fail_msg("%s", e.msg);
	artifact_cache_set_budget(p->cache, budget);
	artifact_cache_synced(p->cache);
}

static struct request *request_start(struct rig *p, int64_t run, const char *url, const char *sum)
{
	struct request *r = xcalloc(1, sizeof(*r)), **last = &p->requests;
	const char *texts[] = {url, sum};
	AUTO_FD payload = net_payload_memfd(texts, 2, NULL, 0, NULL);
	struct err e = {};

	*r = (struct request){.server = (struct net_server *)(void *)p,
		.id = {NET_KIND_ARTIFACT, run, 1},
		.uid = p->uid ? p->uid : 1,
		.limit = p->limit ? p->limit : 1 << 20,
		.timeout = 60 * USEC_SEC,
		.result_fd = -1,
		.file_socket = -1};
	assert_true(net_payload_read(&r->payload, payload, NULL));
	while (*last)
		last = &(*last)->next;
	*last = r;
	if (!artifact_cache_start(r, p->cache, &e))
		fail_msg("%s", e.msg);
	return r;
}

static void wait_ended(struct rig *p, const struct request *r)
{
	for (int turns = 0; r->stage != REQUEST_ENDED && turns < 6000; turns++)
		assert_true(sd_event_run(p->ev, 10000) >= 0);
	assert_int_equal(r->stage, REQUEST_ENDED);
}

static struct request *request_finish(struct rig *p, int64_t run, const char *url, const char *sum)
{
	struct request *r = request_start(p, run, url, sum);

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

static size_t entries_count(struct rig *p, bool dotted)
{
	AUTO_TEXT path = xprintf("%s/cache", p->path);
	DIR *d = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			(entry->d_name[0] == '.') == dotted;
	closedir(d);
	return n;
}

static void wait_removed(struct rig *p)
{
	for (int turns = 0; turns < 6000 && entries_count(p, true); turns++)
		sd_event_run(p->ev, 10000);
	assert_int_equal(entries_count(p, true), 0);
}

static void two_requests_share_one_download_which_a_new_process_finds(void **state)
{
	struct rig *p = *state;
	char sum[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "tool", "#!/bin/sh\n", sum);
	struct request *a, *b;

	cache_open(p, false, 1 << 20);
	a = request_start(p, 1, url, sum);
	b = request_start(p, 2, url, sum);
	wait_ended(p, a);
	wait_ended(p, b);
	expect_done(a, "tool", "#!/bin/sh\n");
	expect_done(b, "tool", "#!/bin/sh\n");
	assert_int_equal(p->files_sent, 1);
	request_drop(p, a);
	request_drop(p, b);
	artifact_cache_free(STEAL(p->cache));
	unlinkat(p->dir, "tool", 0);
	cache_open(p, false, 1 << 20);
	expect_done(request_finish(p, 3, url, sum), "tool", "#!/bin/sh\n");
	assert_int_equal(p->files_sent, 1);
}

static void a_failed_download_leaves_no_entry_and_is_repeated(void **state)
{
	struct rig *p = *state;
	char sum[SHA256_HEX], wrong[SHA256_HEX];
	AUTO_TEXT url = write_file(p, "tool", "right", sum);

	memset(wrong, '0', sizeof(wrong) - 1);
	wrong[sizeof(wrong) - 1] = '\0';
	cache_open(p, false, 1 << 20);
	assert_int_equal(request_finish(p, 1, url, wrong)->outcome, NET_FAILED);
	assert_int_equal(request_finish(p, 2, url, wrong)->outcome, NET_FAILED);
	assert_int_equal(p->files_sent, 2);
	wait_removed(p);
	assert_int_equal(entries_count(p, false), 0);
}

static void artifacts_in_use_count_against_the_budget_and_are_not_evicted(void **state)
{
	struct rig *p = *state;
	char sum[4][SHA256_HEX], *url[4], *text = xcalloc(1, 40001);
	struct request *r[3];

	for (int i = 0; i < 4; i++) {
		char name[] = {(char)('a' + i), '\0'};

		memset(text, 'a' + i, i == 3 ? 4000 : 40000);
		if (i == 3)
			text[4000] = '\0';
		url[i] = write_file(p, name, text, sum[i]);
	}
	cache_open(p, false, 100000); /* room for one tree, and one archive with its tree */
	r[0] = request_finish(p, 1, url[0], sum[0]);
	expect_done(r[0], "a", "aaa");
	r[1] = request_finish(p, 2, url[1], sum[1]);
	assert_int_equal(r[1]->outcome, NET_BUSY);
	assert_non_null(strstr(r[1]->error, "artifact-budget"));
	expect_done(request_finish(p, 3, url[3], sum[3]), "d", "ddd"); /* a small one still fits */
	request_drop(p, r[0]);
	expect_done(request_finish(p, 4, url[1], sum[1]), "b", "bbb");
	wait_removed(p);
	assert_int_equal(entries_count(p, false), 2); /* the first was evicted */
	for (int i = 0; i < 4; i++)
		free(url[i]);
	free(text);
}

static void one_owner_uses_at_most_half_of_the_budget(void **state)
{
	struct rig *p = *state;
	char sum[2][SHA256_HEX], *url[2], *text = xcalloc(1, 40001);
	const struct request *r;

	for (int i = 0; i < 2; i++) {
		char name[] = {(char)('a' + i), '\0'};

		memset(text, 'a' + i, 40000);
		url[i] = write_file(p, name, text, sum[i]);
	}
	p->limit = 50000;
	cache_open(p, false, 200000);
	expect_done(request_finish(p, 1, url[0], sum[0]), "a", "aaa");
	r = request_finish(p, 2, url[1], sum[1]);
	assert_int_equal(r->outcome, NET_BUSY);
	assert_non_null(strstr(r->error, "half of artifact-budget"));
	p->uid = 2;
	expect_done(request_finish(p, 3, url[1], sum[1]), "b", "bbb");
	free(url[0]);
	free(url[1]);
	free(text);
}

static void an_artifact_larger_than_the_budget_fails(void **state)
{
	struct rig *p = *state;
	char sum[SHA256_HEX], *text = xcalloc(1, 40001);
	AUTO_TEXT url = NULL;
	const struct request *r;

	memset(text, 'x', 40000);
	url = write_file(p, "tool", text, sum);
	cache_open(p, false, 30000);
	r = request_finish(p, 1, url, sum);
	assert_int_equal(r->outcome, NET_FAILED);
	assert_non_null(strstr(r->error, "artifact-budget"));
	free(text);
}

/* In user mode jobs run with the uid of the cache and can write to all its files. */
static void a_run_cannot_alter_the_artifact_of_another_run(void **state)
{
	struct rig *p = *state;
	char sum[SHA256_HEX], key[NET_KEY_MAX];
	AUTO_TEXT url = write_file(p, "tool", "right", sum);
	AUTO_TEXT file = xprintf("cache/%s/file", net_frame_artifact_key(url, sum, 1, key));
	struct request *r;
	int fd;

	cache_open(p, true, 1 << 20);
	r = request_finish(p, 1, url, sum);
	expect_done(r, "tool", "right");
	assert_int_equal(fchmodat(r->result_fd, "tool", 0700, 0), 0);
	fd = openat(r->result_fd, "tool", O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(io_write_all(fd, "wrong", 5), 0);
	close(fd);
	expect_done(request_finish(p, 2, url, sum), "tool", "right");
	assert_int_equal(p->files_sent, 1);
	fd = openat(p->dir, file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(io_write_all(fd, "wrong", 5), 0);
	close(fd);
	expect_done(request_finish(p, 3, url, sum), "tool", "right");
	assert_int_equal(p->files_sent, 2);
	request_drop(p, r);
	wait_removed(p);
	assert_int_equal(entries_count(p, false), 3); /* the archive and two copies */
}

static void unfinished_entries_of_a_crash_are_removed(void **state)
{
	struct rig *p = *state;

	assert_int_equal(mkdirat(p->dir, "cache", 0700), 0);
	assert_int_equal(mkdirat(p->dir, "cache/.new-x", 0700), 0);
	assert_int_equal(mkdirat(p->dir, "cache/.new-x/tree", 0555), 0);
	assert_int_equal(mkdirat(p->dir, "cache/run-7-1", 0700), 0);
	cache_open(p, true, 1 << 20);
	wait_removed(p);
	assert_int_equal(entries_count(p, false), 0);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(only_regular_files_of_ordinary_file_systems_are_copied),
		RIG_TEST(a_wrong_sum_or_size_is_refused),
		RIG_TEST(two_requests_share_one_download_which_a_new_process_finds),
		RIG_TEST(a_failed_download_leaves_no_entry_and_is_repeated),
		RIG_TEST(artifacts_in_use_count_against_the_budget_and_are_not_evicted),
		RIG_TEST(one_owner_uses_at_most_half_of_the_budget),
		RIG_TEST(an_artifact_larger_than_the_budget_fails),
		RIG_TEST(a_run_cannot_alter_the_artifact_of_another_run),
		RIG_TEST(unfinished_entries_of_a_crash_are_removed),
	};

	if (argc == 2 && strcmp(argv[1], "--child") == 0)
		return child_main();
	return RUN_TESTS(tests);
}
