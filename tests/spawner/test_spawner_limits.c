/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of workers without control groups: resource limits of the process, or a refusal. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/text.h"
#include "core/job/limits.h"
#include "core/start/start_failure.h"
#include "spawner/spawner_rig.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static struct rig g;

static int up(void **state)
{
	static const char *const options[] = {"--cgroup", "none", NULL};

	(void)state;
	rig_up_with(&g, options);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rig_down(&g);
	return 0;
}

static void expect(const struct start_plan *p, const char *output)
{
	const struct rig_report *r = rig_run(&g, p);
	AUTO_TEXT out = rig_output(&g, r, NULL);

	assert_string_equal(out, output);
	assert_int_equal(r->r.outcome, ATTEMPT_SUCCEEDED);
}

static void resource_limits_are_set(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "ulimit -n; ulimit -f; ulimit -Hn; ulimit -c");

	(void)state;
	strv_add(&p.spec.limits, "nofile=77");
	strv_add(&p.spec.limits, "fsize=1048576");
	expect(&p, "77\n2048\n77\n0\n"); /* ulimit -f counts blocks of 512 bytes */
}

static void a_limit_above_that_of_the_spawner_is_refused(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo ran");
	struct rlimit ours;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &ours);
	if (ours.rlim_max == RLIM_INFINITY)
		skip();
	strv_take(&p.spec.limits, xprintf("nofile=%llu", (unsigned long long)ours.rlim_max + 1));
	rig_start(&g, &p);
	assert_non_null(strstr(rig_wait(&g, SPAWN_NOT_STARTED, p.run)->error, "nofile"));
}

static void without_control_groups_memory_is_limited_per_process(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "ulimit -v");

	(void)state;
	p.spec.mem = 256 << 20;
	expect(&p, "262144\n");
}

static void nice_and_ionice_are_applied(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "cut -d' ' -f19 /proc/self/stat; ionice");
	AUTO_DONE(start_plan) idle = rig_plan(&g, "ionice");

	(void)state;
	p.spec.nice = 7;
	(void)limit_ionice_parse("best-effort:6", &p.spec.ionice, NULL);
	expect(&p, "7\nbest-effort: prio 6\n");
	(void)limit_ionice_parse("idle", &idle.spec.ionice, NULL);
	expect(&idle, "idle\n");
}

static int oom_score(pid_t pid)
{
	AUTO_TEXT path = xprintf("/proc/%d/oom_score_adj", (int)pid);
	FILE *f = fopen(path, "r");
	int score = -1;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &score), 1);
	fclose(f);
	return score;
}

static void jobs_have_a_higher_oom_score_than_the_spawner(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "cat /proc/self/oom_score_adj");

	(void)state;
	expect(&p, "200\n");
	assert_true(oom_score(g.spawner) < 200);
}

static void workers_inherit_the_oom_score_of_their_launcher(void **state)
{
	AUTO_TEXT children = xprintf("/proc/%d/task/%d/children", (int)g.spawner, (int)g.spawner);
	AUTO_DONE(start_plan) p = rig_plan(&g, "true");
	FILE *f;
	int pid, n = 0;

	(void)state;
	expect(&p, "");
	f = fopen(children, "r");
	assert_non_null(f);
	for (; fscanf(f, "%d", &pid) == 1; n++)
		assert_int_equal(oom_score(pid), 200);
	fclose(f);
	assert_true(n > 0);
}

static void limits_that_cannot_be_enforced_are_announced_and_refused(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo ran");
	AUTO_DONE(start_plan) q = rig_plan(&g, "echo ran");

	(void)state;
	assert_int_equal(spawn_client_limits_refused(g.client), LIMIT_CPU | LIMIT_PIDS);
	p.spec.cpu = 50;
	rig_start(&g, &p);
	assert_int_equal(rig_wait(&g, SPAWN_NOT_STARTED, p.run)->r.reason, START_LIMIT);
	q.spec.pids = 5;
	rig_start(&g, &q);
	assert_int_equal(rig_wait(&g, SPAWN_NOT_STARTED, q.run)->r.reason, START_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(resource_limits_are_set),
		TEST(a_limit_above_that_of_the_spawner_is_refused),
		TEST(without_control_groups_memory_is_limited_per_process),
		TEST(nice_and_ionice_are_applied),
		TEST(jobs_have_a_higher_oom_score_than_the_spawner),
		TEST(workers_inherit_the_oom_score_of_their_launcher),
		TEST(limits_that_cannot_be_enforced_are_announced_and_refused),
	};

	return cmocka_run_group_tests(tests, up, down);
}
