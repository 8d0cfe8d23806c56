/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in control groups: all processes of a run end with it. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "spawner/spawner_rig.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

static struct rig g;
static char place[128];
static const char *options[] = {"--cgroup", place, NULL};

/* The cgroup2 mount point in which groups can be created; NULL: none. */
static const char *mounted(void)
{
	static const char *const places[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};

	for (size_t i = 0; i < ELEMENTS(places); i++) {
		AUTO_TEXT file = xprintf("%s/cgroup.procs", places[i]);
		AUTO_TEXT controllers = xprintf("%s/cgroup.controllers", places[i]);

		if (access(file, W_OK) == 0 && access(controllers, R_OK) == 0)
			return places[i];
	}
	return NULL;
}

static int up(void **state)
{
	(void)state;
	snprintf(place, sizeof(place), "%s/jobsched-test.%d", mounted(), (int)getpid());
	rig_up_with(&g, options);
	return 0;
}

static size_t groups(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	while (d && (entry = readdir(d)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
			AUTO_TEXT below = xprintf("%s/%s", path, entry->d_name);

			n += 1 + groups(below);
		}
	if (d)
		closedir(d);
	return n;
}

static int down(void **state)
{
	(void)state;
	rig_down(&g);
	assert_int_equal(groups(place), 0);
	return rmdir(place);
}

/* Whether the process exists and is not a zombie. */
static bool runs(pid_t pid)
{
	AUTO_TEXT path = xprintf("/proc/%d/stat", (int)pid);
	AUTO_DONE(buf) stat = {};
	const char *state;

	if (io_read_file(path, &stat, 4096) < 0 || !stat.data)
		return false;
	state = strrchr(stat.data, ')');
	return state && state[2] != 'Z' && state[2] != 'X';
}

/* A script that leaves a process that only its control group identifies. */
#define DAEMON(name) "setsid env -i sh -c 'setsid sh -c \"echo \\$\\$ >'$RIG'/" name "; exec sleep 300\" & ' & "

static void a_daemon_without_session_and_environment_is_killed(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, DAEMON("daemon") "until [ -s $RIG/daemon ]; do sleep 0.01; done; exit 4");
	const struct rig_report *r = rig_run(&g, &p);

	(void)state;
	assert_int_equal(r->r.exit_code, 4);
	assert_string_equal(r->error, "");
	assert_true(rig_wait_gone(rig_file_pid(&g, "daemon")));
}

static void daemons_are_killed_before_the_end_is_reported(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		AUTO_TEXT script = xprintf(DAEMON("daemon%d") "until [ -s $RIG/daemon%d ]; do sleep 0.01; done", i, i);
		AUTO_TEXT name = xprintf("daemon%d", i);
		AUTO_DONE(start_plan) p = rig_plan(&g, script);

		rig_run(&g, &p);
		assert_false(runs(rig_file_pid(&g, name)));
	}
}

static void cancelling_kills_the_whole_group_after_the_grace_period(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap '' TERM; " DAEMON("deaf") "while :; do sleep 0.05; done");
	const struct rig_report *r;

	(void)state;
	p.grace = 200 * USEC_MSEC;
	rig_start(&g, &p);
	rig_file_pid(&g, "deaf");
	spawn_client_cancel(g.client, p.run, p.fence);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.outcome, ATTEMPT_CANCELLED);
	assert_int_equal(r->r.term_signal, SIGKILL);
	assert_true(rig_wait_gone(rig_file_pid(&g, "deaf")));
	spawn_client_ack(g.client, p.run, p.fence);
}

static void a_job_that_keeps_forking_ends(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "f() { setsid sh -c 'while :; do setsid sleep 0.2 & sleep 0.05; done' & }; f; f; f; f; "
					 "sleep 0.2; exit 6");

	(void)state;
	assert_int_equal(rig_run(&g, &p)->r.exit_code, 6);
}

static void a_stopped_daemon_is_killed(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "setsid env -i sh -c 'echo $$ >'$RIG'/still; kill -STOP $$' & "
					 "until [ -s $RIG/still ]; do sleep 0.01; done; sleep 0.05");

	(void)state;
	assert_int_equal(rig_run(&g, &p)->r.exit_code, 0);
	assert_true(rig_wait_gone(rig_file_pid(&g, "still")));
}

static void processor_time_of_unreaped_processes_is_counted(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "sh -c 'setsid sh -c \"i=0; while [ \\$i -lt 100000 ]; do i=\\$((i+1)); done; touch $RIG/counted\" &'; "
					 "until [ -e $RIG/counted ]; do sleep 0.02; done");
	AUTO_DONE(start_plan) idle = rig_plan(&g, "exit 0");
	const struct rig_report *r = rig_run(&g, &p);
	usec_t busy = r->r.cpu_user + r->r.cpu_system;

	(void)state;
	assert_true(busy > 20 * USEC_MSEC);
	r = rig_run(&g, &idle); /* in the same group: usage of the earlier run is not counted */
	assert_true(r->r.cpu_user + r->r.cpu_system < busy / 2 + 10 * USEC_MSEC);
}

static void groups_are_reused_and_removed_when_idle(void **state)
{
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;

	(void)state;
	for (int i = 0; i < 50; i++)
		rig_script(&g, "exit 0");
	assert_true(groups(place) <= 3 + 8); /* jobs-, uid-, and one for each run that ran at the same time */
	while (groups(place) > 1 && clock_boot(&clock_system) < until)
		rig_spin(&g, 100 * USEC_MSEC);
	assert_int_equal(groups(place), 1);
	rig_expect(&g, "echo again", "again\n");
}

static void groups_are_kept_over_a_reload(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, DAEMON("kept") "until [ -e $RIG/end ]; do sleep 0.01; done; exit 8");
	AUTO_TEXT end = xprintf("%s/end", g.dir);

	(void)state;
	rig_script(&g, "exit 0"); /* leaves an empty group */
	rig_start(&g, &p);
	rig_file_pid(&g, "kept");
	rig_reload(&g);
	rig_expect(&g, "echo beside", "beside\n");
	assert_int_equal(io_write_file(end, "", 0, 0600), 0);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.exit_code, 8);
	assert_true(rig_wait_gone(rig_file_pid(&g, "kept")));
	spawn_client_ack(g.client, p.run, p.fence);
}

static void processes_of_a_killed_spawner_end_before_the_next_one_listens(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, DAEMON("left") "sleep 300");
	pid_t left;

	(void)state;
	rig_start(&g, &p);
	left = rig_file_pid(&g, "left");
	rig_disconnect(&g);
	rig_spawner_kill(&g);
	assert_true(runs(left));
	rig_spawner_start(&g);
	assert_false(runs(left));
	rig_connect(&g);
	rig_expect(&g, "echo new life", "new life\n");
}

/* Some kernels kill a child that is cloned into a new group by a parent whose group was killed before; then children are moved there. */
static void a_spawner_in_a_group_that_was_killed_before_starts_jobs(void **state)
{
	AUTO_TEXT group = xprintf("%s/killed", place);
	AUTO_TEXT kill_it = xprintf("mkdir %s && echo 1 >%s/cgroup.kill", group, group);
	AUTO_TEXT enter = xprintf("echo $$ >%s/cgroup.procs && exec \"$0\" \"$@\"", group);
	const char *const wrapper[] = {"sh", "-c", enter, NULL};
	struct rig own;

	(void)state;
	assert_int_equal(system(kill_it), 0);
	rig_up_wrapped(&own, wrapper, options);
	own.wrapper = NULL;
	rig_expect(&own, "echo lives", "lives\n");
	rig_expect(&own, DAEMON("other") "until [ -s $RIG/other ]; do sleep 0.01; done", "");
	assert_false(runs(rig_file_pid(&own, "other")));
	rig_down(&own);
	assert_int_equal(rmdir(group), 0);
}

static void a_path_outside_of_cgroup2_is_refused(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT command = xprintf("'%s/jobsched-spawner' --runtime-dir %s/x --output-dir %s/y --cgroup /tmp 2>/dev/null",
		build ? build : ".", g.dir, g.dir);

	(void)state;
	assert_int_not_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_daemon_without_session_and_environment_is_killed),
		TEST(daemons_are_killed_before_the_end_is_reported),
		TEST(cancelling_kills_the_whole_group_after_the_grace_period),
		TEST(a_job_that_keeps_forking_ends),
		TEST(a_stopped_daemon_is_killed),
		TEST(processor_time_of_unreaped_processes_is_counted),
		TEST(groups_are_reused_and_removed_when_idle),
		TEST(groups_are_kept_over_a_reload),
		TEST(processes_of_a_killed_spawner_end_before_the_next_one_listens),
		TEST(a_spawner_in_a_group_that_was_killed_before_starts_jobs),
		TEST(a_path_outside_of_cgroup2_is_refused),
	};

	if (!mounted()) {
		print_message("1..0 # SKIP no writable cgroup2 file system\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, up, down);
}
