/* SPDX-License-Identifier: Apache-2.0 */
/* How workers end: exit, time limit, cancellation; processes they leave behind. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "spawner/spawner_rig.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct rig g;

static int up(void **state)
{
	(void)state;
	rig_up(&g);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rig_down(&g);
	return 0;
}

static bool alive(pid_t pid)
{
	return kill(pid, 0) == 0;
}

/* ---- time limits and cancellation ---- */

static void a_job_over_its_time_limit_times_out(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap 'echo bye; exit 3' TERM; while :; do sleep 0.01; done");
	AUTO_TEXT out = NULL;
	const struct rig_report *r;

	(void)state;
	p.timeout = 200 * USEC_MSEC;
	r = rig_run(&g, &p);
	assert_int_equal(r->r.outcome, ATTEMPT_TIMED_OUT);
	assert_int_equal(r->r.exit_code, 3);
	assert_true(r->r.ended_at - r->r.started_at >= 190 * USEC_MSEC);
	assert_true(r->r.ended_at - r->r.started_at < 5 * USEC_SEC);
	out = rig_output(&g, r, NULL);
	assert_non_null(strstr(out, "bye\n"));
}

static void a_job_within_its_time_limit_succeeds(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "exit 0");

	(void)state;
	p.timeout = 10 * USEC_SEC;
	assert_int_equal(rig_run(&g, &p)->r.outcome, ATTEMPT_SUCCEEDED);
}

static void a_cancelled_job_gets_sigterm(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "sleep 300");
	const struct rig_report *r;

	(void)state;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_STARTED, p.run);
	spawn_client_cancel(g.client, p.run, p.fence + 1); /* another fence: no effect */
	spawn_client_cancel(g.client, p.run, p.fence);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.outcome, ATTEMPT_CANCELLED);
	assert_int_equal(r->r.term_signal, SIGTERM);
	spawn_client_cancel(g.client, p.run, p.fence); /* after the end: no effect */
}

static void a_job_that_ignores_sigterm_is_killed_after_the_grace_period(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap '' TERM; echo $$ >$RIG/stubborn; while :; do sleep 0.02; done");
	const struct rig_report *r;
	usec_t from;

	(void)state;
	p.grace = 300 * USEC_MSEC;
	rig_start(&g, &p);
	rig_file_pid(&g, "stubborn");
	from = clock_boot(&clock_system);
	spawn_client_cancel(g.client, p.run, p.fence);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.outcome, ATTEMPT_CANCELLED);
	assert_int_equal(r->r.term_signal, SIGKILL);
	assert_true(clock_boot(&clock_system) - from >= 290 * USEC_MSEC);
}

static void without_a_grace_period_a_job_is_killed_at_once(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap '' TERM; echo $$ >$RIG/nograce; while :; do sleep 0.02; done");

	(void)state;
	p.grace = 0;
	rig_start(&g, &p);
	rig_file_pid(&g, "nograce");
	spawn_client_cancel(g.client, p.run, p.fence);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.term_signal, SIGKILL);
}

static bool is_launcher(const char *pid)
{
	AUTO_TEXT path = xprintf("/proc/%s/comm", pid);
	AUTO_DONE(buf) text = {};

	return io_read_file(path, &text, 256) == 0 && text.data && strcmp(text.data, "jobsched-launch\n") == 0;
}

/* Calls fn for each child of the spawner. */
static void children_each(pid_t parent, void (*fn)(const char *pid, void *arg), void *arg)
{
	AUTO_TEXT path = xprintf("/proc/%d/task/%d/children", (int)parent, (int)parent);
	AUTO_DONE(buf) text = {};
	char *rest = NULL;

	assert_int_equal(io_read_file(path, &text, 1 << 20), 0);
	for (char *pid = text.data ? strtok_r(text.data, " ", &rest) : NULL; pid; pid = strtok_r(NULL, " ", &rest))
		fn(pid, arg);
}

static void signal_launcher(const char *pid, void *arg)
{
	if (is_launcher(pid))
		kill((pid_t)strtol(pid, NULL, 10), *(int *)arg);
}

static void signal_launchers(int sig)
{
	children_each(g.spawner, signal_launcher, &sig);
}

static void a_job_that_is_cancelled_before_its_launcher_answers_ends_as_cancelled(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "sleep 300");

	(void)state;
	rig_script(&g, "exit 0"); /* now an idle launcher exists */
	signal_launchers(SIGSTOP);
	rig_start(&g, &p);
	spawn_client_cancel(g.client, p.run, p.fence);
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0); /* the spawner has read the cancellation */
	signal_launchers(SIGCONT);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.outcome, ATTEMPT_CANCELLED);
	assert_int_equal(rig_count(&g, SPAWN_NOT_STARTED, p.run), 0);
	spawn_client_ack(g.client, p.run, p.fence);
}

static void a_stopped_job_can_be_cancelled(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap 'exit 5' TERM; echo $$ >$RIG/stopped; kill -STOP $$; sleep 300");

	(void)state;
	rig_start(&g, &p);
	rig_file_pid(&g, "stopped");
	rig_spin(&g, 50 * USEC_MSEC);
	spawn_client_cancel(g.client, p.run, p.fence);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.exit_code, 5);
}

static void a_job_that_stops_itself_times_out(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap '' TERM; while :; do kill -STOP $$; done");
	const struct rig_report *r;

	(void)state;
	p.timeout = 100 * USEC_MSEC;
	p.grace = 100 * USEC_MSEC;
	r = rig_run(&g, &p);
	assert_int_equal(r->r.outcome, ATTEMPT_TIMED_OUT);
	assert_int_equal(r->r.term_signal, SIGKILL);
}

/* ---- processes left behind ---- */

static void processes_left_in_the_process_group_are_killed(void **state)
{
	const struct rig_report *r = rig_script(&g, "sleep 300 & echo $! >$RIG/left; exit 4");

	(void)state;
	assert_int_equal(r->r.exit_code, 4);
	assert_false(alive(rig_file_pid(&g, "left")));
}

static void a_child_in_another_session_is_killed(void **state)
{
	const struct rig_report *r;

	(void)state;
	r = rig_script(&g, "setsid nohup sh -c 'echo $$ >$RIG/escaped; exec sleep 300' >/dev/null 2>&1 & "
			   "while [ ! -s $RIG/escaped ]; do sleep 0.01; done");
	assert_int_equal(r->r.outcome, ATTEMPT_SUCCEEDED);
	assert_string_equal(r->error, "");
	assert_false(alive(rig_file_pid(&g, "escaped")));
}

static void a_daemon_with_children_in_other_sessions_is_killed(void **state)
{
	(void)state;
	rig_script(&g, "setsid sh -c 'setsid sh -c \"echo \\$\\$ >$RIG/deep; sleep 300\" & sleep 300' & "
		       "while [ ! -s $RIG/deep ]; do sleep 0.01; done");
	assert_false(alive(rig_file_pid(&g, "deep")));
}

static void a_daemon_without_environment_in_the_session_is_killed(void **state)
{
	(void)state;
	rig_script(&g, "env -i sh -c 'echo $$ >'$RIG'/bare; sleep 300' & "
		       "while [ ! -s $RIG/bare ]; do sleep 0.01; done");
	assert_false(alive(rig_file_pid(&g, "bare")));
}

static void an_orphan_lives_until_its_run_ends(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "(setsid sh -c 'echo $$ >$RIG/orphan; sleep 300' &) ; "
					 "while [ ! -e $RIG/finish ]; do sleep 0.02; done");
	AUTO_TEXT finish = xprintf("%s/finish", g.dir);
	pid_t orphan;

	(void)state;
	rig_start(&g, &p);
	orphan = rig_file_pid(&g, "orphan");
	rig_script(&g, "exit 0"); /* its end makes the spawner check its children */
	rig_script(&g, "exit 0");
	assert_true(alive(orphan));
	assert_int_equal(io_write_file(finish, "", 0, 0600), 0);
	rig_wait(&g, SPAWN_ENDED, p.run);
	spawn_client_ack(g.client, p.run, p.fence);
	assert_false(alive(orphan));
}

/* The spawner sees the orphan while the run is running, and again after its end. */
static void an_orphan_of_a_run_that_keeps_leftovers_continues(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "(sh -c 'echo $$ >$RIG/kept; while [ ! -e $RIG/let-go ]; do sleep 0.02; done' &) ; "
					 "while [ ! -e $RIG/finish-kept ]; do sleep 0.02; done");
	AUTO_TEXT finish = xprintf("%s/finish-kept", g.dir);
	AUTO_TEXT let_go = xprintf("%s/let-go", g.dir);
	pid_t orphan;

	(void)state;
	p.spec.leaves = true;
	rig_start(&g, &p);
	orphan = rig_file_pid(&g, "kept");
	rig_script(&g, "exit 0"); /* its end makes the spawner check its children */
	rig_script(&g, "exit 0");
	assert_int_equal(io_write_file(finish, "", 0, 0600), 0);
	rig_wait(&g, SPAWN_ENDED, p.run);
	spawn_client_ack(g.client, p.run, p.fence);
	rig_script(&g, "exit 0");
	assert_true(alive(orphan));
	assert_int_equal(io_write_file(let_go, "", 0, 0600), 0);
	assert_true(rig_wait_gone(orphan));
}

static void cancelling_a_run_kills_all_descendants(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap '' TERM; setsid sleep 300 & echo $! >$RIG/tree; wait; sleep 300");
	pid_t pid;

	(void)state;
	p.grace = 50 * USEC_MSEC;
	rig_start(&g, &p);
	pid = rig_file_pid(&g, "tree");
	spawn_client_cancel(g.client, p.run, p.fence);
	rig_wait(&g, SPAWN_ENDED, p.run);
	assert_false(alive(pid));
}

static void the_end_does_not_wait_for_an_unknown_process_with_the_output_open(void **state)
{
	usec_t from = clock_boot(&clock_system);
	AUTO_TEXT out = NULL;
	const struct rig_report *r;

	(void)state;
	/* without environment and session the spawner cannot identify the process, so the pipe stays open */
	r = rig_script(&g, "echo before; env -i setsid sh -c 'echo $$ >'$RIG'/stranger; exec sleep 300' & "
			   "while [ ! -s $RIG/stranger ]; do sleep 0.01; done; echo after");
	assert_true(clock_boot(&clock_system) - from < 60 * USEC_SEC);
	assert_int_equal(r->r.outcome, ATTEMPT_SUCCEEDED);
	out = rig_output(&g, r, NULL);
	assert_string_equal(out, "before\nafter\n");
	kill(rig_file_pid(&g, "stranger"), SIGKILL);
}

static void the_end_does_not_wait_for_endless_output(void **state)
{
	usec_t from = clock_boot(&clock_system);

	(void)state;
	rig_script(&g, "env -i setsid sh -c 'echo $$ >'$RIG'/babbler; exec yes' & "
		       "while [ ! -s $RIG/babbler ]; do sleep 0.01; done");
	assert_true(clock_boot(&clock_system) - from < 60 * USEC_SEC);
	assert_true(rig_wait_gone(rig_file_pid(&g, "babbler"))); /* by SIGPIPE */
}

static void a_job_that_closes_its_output_keeps_running(void **state)
{
	const struct rig_report *r = rig_script(&g, "echo x; exec >&- 2>&-; sleep 0.2; exit 6");

	(void)state;
	assert_int_equal(r->r.exit_code, 6);
	assert_int_equal(r->r.output_bytes, 2);
	assert_true(r->r.ended_at - r->r.started_at >= 190 * USEC_MSEC);
}

/* ---- leaks ---- */

static size_t entries(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void count_worker(const char *pid, void *arg)
{
	*(size_t *)arg += !is_launcher(pid);
}

/* The number of children of the spawner, without its launchers. */
static size_t children_left(pid_t parent)
{
	size_t n = 0;

	children_each(parent, count_worker, &n);
	return n;
}

static void many_runs_leave_no_descriptors_or_processes(void **state)
{
	AUTO_TEXT fds = xprintf("/proc/%d/fd", (int)g.spawner);
	size_t before = entries(fds);

	(void)state;
	for (int i = 0; i < 300; i++) {
		AUTO_DONE(start_plan) p = rig_plan(&g, i % 3 ? "(exit 0 &) ; echo x" : "exit 0");

		if (i % 7 == 0) {
			strv_done(&p.spec.argv);
			strv_add(&p.spec.argv, "/does/not/exist");
		}
		rig_start(&g, &p);
		if (i % 7 == 0)
			rig_wait(&g, SPAWN_NOT_STARTED, p.run);
		if (i % 7 != 0 && i % 8 == 0)
			spawn_client_ack(g.client, rig_wait(&g, SPAWN_ENDED, 0)->r.run, 1);
	}
	for (int i = 0; i < 300; i++)
		if (i % 7 != 0 && i % 8 != 0)
			spawn_client_ack(g.client, rig_wait(&g, SPAWN_ENDED, 0)->r.run, 1);
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	/* idle launchers end after two seconds; their processes end after their descriptors are closed */
	for (int i = 0; i < 300 && (entries(fds) != before || children_left(g.spawner)); i++)
		rig_spin(&g, 100 * USEC_MSEC);
	assert_int_equal(entries(fds), before);
	assert_int_equal(children_left(g.spawner), 0);
	assert_int_equal(rig_count(&g, SPAWN_HAS, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_over_its_time_limit_times_out),
		TEST(a_job_within_its_time_limit_succeeds),
		TEST(a_cancelled_job_gets_sigterm),
		TEST(a_job_that_ignores_sigterm_is_killed_after_the_grace_period),
		TEST(without_a_grace_period_a_job_is_killed_at_once),
		TEST(a_job_that_is_cancelled_before_its_launcher_answers_ends_as_cancelled),
		TEST(a_stopped_job_can_be_cancelled),
		TEST(a_job_that_stops_itself_times_out),
		TEST(processes_left_in_the_process_group_are_killed),
		TEST(a_child_in_another_session_is_killed),
		TEST(a_daemon_with_children_in_other_sessions_is_killed),
		TEST(a_daemon_without_environment_in_the_session_is_killed),
		TEST(an_orphan_lives_until_its_run_ends),
		TEST(an_orphan_of_a_run_that_keeps_leftovers_continues),
		TEST(cancelling_a_run_kills_all_descendants),
		TEST(the_end_does_not_wait_for_an_unknown_process_with_the_output_open),
		TEST(the_end_does_not_wait_for_endless_output),
		TEST(a_job_that_closes_its_output_keeps_running),
		TEST(many_runs_leave_no_descriptors_or_processes),
	};

	return cmocka_run_group_tests(tests, up, down);
}
