/* SPDX-License-Identifier: Apache-2.0 */
/* Resource usage of a run, read from the files of its control group. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/io.h"
#include "base/text.h"
#include "exec/worker/cgroup.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
	char path[32];
	struct cgroups all;
	struct cgroup group;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.path = "/tmp/cgroup.XXXXXX",
		.all = {.root = -1},
		.group = {.dir = -1, .events.fd = -1}};
	assert_non_null(mkdtemp(f->path));
	f->group.dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->group.dir >= 0);
}

static void fixture_done(struct fixture *f)
{
	unlinkat(f->group.dir, "cpu.stat", 0);
	close(f->group.dir);
	assert_int_equal(rmdir(f->path), 0);
}

static struct cgroup_usage usage_with(struct fixture *f, const char *text)
{
	AUTO_TEXT path = xprintf("%s/cpu.stat", f->path);
	struct cgroup_usage u;

	unlink(path);
	if (text)
		assert_int_equal(io_write_file(path, text, strlen(text), 0600), 0);
	cgroup_usage(&f->all, &f->group, &u);
	return u;
}

static void a_reused_group_counts_each_run_separately(void **state)
{
	struct cgroup_usage u;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	u = usage_with(&f, "usage_usec 900\nuser_usec 700\nsystem_usec 200\n");
	assert_int_equal(u.cpu_user, 700);
	assert_int_equal(u.cpu_system, 200);
	u = usage_with(&f, "usage_usec 1000\nuser_usec 750\nsystem_usec 250\n");
	assert_int_equal(u.cpu_user, 50);
	assert_int_equal(u.cpu_system, 50);
	assert_false(f.group.single_use);
	fixture_done(&f);
}

static void an_unreadable_counter_is_unknown_and_not_negative(void **state)
{
	struct cgroup_usage u;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	usage_with(&f, "usage_usec 900\nuser_usec 700\nsystem_usec 200\n");
	u = usage_with(&f, NULL);
	assert_int_equal(u.cpu_user, -1);
	assert_int_equal(u.cpu_system, -1);
	assert_true(f.group.single_use); /* the next run has no start value */
	u = usage_with(&f, "usage_usec 900\n");
	assert_int_equal(u.cpu_user, -1);
	u = usage_with(&f, "usage_usec 800\nuser_usec 650\nsystem_usec 200\n");
	assert_int_equal(u.cpu_user, 0);
	assert_int_equal(u.cpu_system, 0);
	fixture_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reused_group_counts_each_run_separately),
		TEST(an_unreadable_counter_is_unknown_and_not_negative),
	};

	return RUN_TESTS(tests);
}
