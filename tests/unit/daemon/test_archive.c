/* SPDX-License-Identifier: Apache-2.0 */
/* Names of archived runs, and the reading of a local archive. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "core/job/run.h"
#include "daemon/archive/archive.h"
#include "daemon/archive/archive_local.h"
#include "daemon/archive/archive_names.h"
#include "daemon/archive/archive_search.h"
#include "store/lists.h"
#include "unit/unit.h"
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OWNER (OWNER_STEP + 1000)

static const struct run example = {.id = 17, .uid = OWNER, .job = 3, .job_name = (char *)"back-up.2", .owner = (char *)"al-ice x",
	.state = RUN_FAILED, .slot = INT64_C(1794967200) * USEC_SEC + 5, .queue = (char *)"default"};

static void a_name_follows_from_the_run_and_is_parsed_again(void **state)
{
	AUTO_TEXT name = archive_name_of_run(&example);
	AUTO_TEXT output = archive_name_of_output(example.slot, 17, 2);
	AUTO_TEXT from = archive_name_from(example.slot);
	struct archive_run_name n;

	(void)state;
	assert_string_equal(name, "runs/2026/11/18/020000-r17-o4294968296-j3-failed-al~2dice~20x-back-up.2.json");
	assert_string_equal(output, "output/2026/11/18/020000-r17.2");
	assert_true(strncmp(name, from, strlen(from)) == 0);
	assert_true(archive_name_parse(name, &n));
	assert_true(n.run == 17 && n.owner == OWNER && n.job == 3 && n.state == RUN_FAILED);
	assert_true(n.slot == INT64_C(1794967200) * USEC_SEC);
	assert_int_equal(n.user_len, strlen("al~2dice~20x"));
	assert_int_equal(n.name_len, strlen("back-up.2"));
}

static void other_names_are_not_runs(void **state)
{
	static const char *const bad[] = {"", "runs/", "jobs/j1-o0-x.json", "runs/2026/11/18/020000-r17-o0-j3-failed-a.json",
		"runs/2026/11/18/020000-r17-o0-j3-odd-a-b.json", "runs/2026/11/18/020000-r17-o0-j3-failed-a-b", "runs/2026/11/18/020000-r0-o0-j3-failed-a-b.json",
		"runs/2026/11/18/020000-r17-o0-j3-failed-a-../../b.json", "runs/2026/11/18/020000-r17-o0-j3-failed-a-b c.json",
		"x/runs/2026/11/18/020000-r17-o0-j3-failed-a-b.json"};
	struct archive_run_name n;

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		assert_false(archive_name_parse(bad[i], &n));
}

struct rig {
	char dir[64];
};

static int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	strcpy(r->dir, "/tmp/archive.XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	AUTO_TEXT pattern = xprintf("%s/*", r->dir);
	glob_t files = {};

	glob(pattern, 0, NULL, &files);
	for (size_t i = 0; i < files.gl_pathc; i++)
		unlink(files.gl_pathv[i]);
	globfree(&files);
	rmdir(r->dir);
	free(r);
	return 0;
}

/* A gzip member with these runs, each followed by a job. */
static void member_add(const struct rig *r, const char *name, int64_t first, int64_t n)
{
	const struct attempt_list none = {};
	AUTO_DONE(buf) lines = {};
	struct err e = {};

	for (int64_t i = first; i < first + n; i++) {
		struct run run = example;

		run.id = i;
		run.uid = i % 2 ? OWNER : 0;
		archive_describe_run(&run, &none, NULL, &lines);
		buf_str(&lines, "{\"job\":{\"id\":1}}\n");
	}
	assert_true(archive_append(r->dir, name, &lines, &e));
}

static size_t search_all(const struct rig *r, int64_t scope, size_t limit, char *ret_ids, size_t size)
{
	AUTO_TEXT cursor = NULL;
	size_t steps = 0, n = 0;

	ret_ids[0] = '\0';
	do {
		AUTO_DONE(archive_page) page = {};
		struct archive_query q = {.scope = scope, .limit = limit, .cursor = cursor};
		struct err e = {};

		assert_true(archive_local_search(r->dir, &q, &page, &e));
		for (const char *at = page.runs.data; at && (at = strstr(at, "\"id\":")); at += 5)
			if (strtoll(at + 5, NULL, 10) >= 100)
				snprintf(ret_ids + strlen(ret_ids), size - strlen(ret_ids), "%lld ", strtoll(at + 5, NULL, 10)), n++;
		free(cursor);
		cursor = STEAL(page.next);
		assert_true(++steps < 100);
	} while (cursor);
	return n;
}

static void pages_of_a_local_archive_have_every_run_once(void **state)
{
	const struct rig *r = *state;
	char whole[512], parts[512];

	member_add(r, "20261118T010000Z", 100, 3);
	member_add(r, "20261118T010000Z", 103, 4);
	member_add(r, "20261118T020000Z", 107, 2);
	assert_int_equal(search_all(r, OWNER_ALL, 200, whole, sizeof(whole)), 9);
	assert_string_equal(whole, "100 101 102 103 104 105 106 107 108 ");
	for (size_t limit = 1; limit < 6; limit++) {
		search_all(r, OWNER_ALL, limit, parts, sizeof(parts));
		assert_string_equal(parts, whole);
	}
	search_all(r, OWNER, 2, parts, sizeof(parts));
	assert_string_equal(parts, "101 103 105 107 ");
	search_all(r, OWNER_NOT_ROOT, 2, parts, sizeof(parts));
	assert_string_equal(parts, "101 103 105 107 ");
	assert_int_equal(search_all(r, 1000, 2, parts, sizeof(parts)), 0); /* another owner with the same uid */
}

static void a_member_that_a_crash_left_incomplete_hides_nothing_else(void **state)
{
	const struct rig *r = *state;
	AUTO_TEXT path = xprintf("%s/20261118T010000Z.jsonl.gz", r->dir);
	char ids[512];
	off_t size;
	int fd;

	member_add(r, "20261118T010000Z", 100, 2);
	member_add(r, "20261118T010000Z", 102, 2);
	member_add(r, "20261118T020000Z", 104, 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	size = lseek(fd, 0, SEEK_END);
	assert_int_equal(ftruncate(fd, size - 20), 0);
	close(fd);
	search_all(r, OWNER_ALL, 200, ids, sizeof(ids));
	assert_true(strncmp(ids, "100 101 ", 8) == 0);
	assert_non_null(strstr(ids, "104 "));
}

static void places_outside_of_the_archive_are_not_found(void **state)
{
	static const char *const bad[] = {"", "../x:0:0", "20261118T010000Z", "20261118T010000Z:0:99", "20261118T010000Z:7:0",
		"20261118T010000Z:-1:0", "20261118T030000Z:0:0", "20261118T010000Z:0:1"};
	const struct rig *r = *state;
	AUTO_DONE(buf) out = {};

	member_add(r, "20261118T010000Z", 100, 2);
	for (size_t i = 0; i < ELEMENTS(bad); i++) {
		struct err e = {};

		assert_false(archive_local_output(r->dir,
			&(struct archive_read_request){.name = bad[i], .scope = OWNER_ALL, .length = 10}, &out, &e));
		assert_int_equal(e.kind, ERR_NOT_FOUND);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_follows_from_the_run_and_is_parsed_again),
		TEST(other_names_are_not_runs),
		CASE(pages_of_a_local_archive_have_every_run_once),
		CASE(a_member_that_a_crash_left_incomplete_hides_nothing_else),
		CASE(places_outside_of_the_archive_are_not_found),
	};

	return RUN_TESTS(tests);
}
