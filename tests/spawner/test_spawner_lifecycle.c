/* SPDX-License-Identifier: Apache-2.0 */
/* Start, stop and idle exit of spawners; the client of a spawner that does not answer. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/proto/spawner_launch.h"
#include "spawner_rig.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

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

static void a_second_spawner_exits_with_69(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT command = xprintf("'%s/jobsched-spawner' --runtime-dir '%s' --output-dir '%s' 2>/dev/null",
		build ? build : ".", g.dir, g.output);
	int status = system(command);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 69);
	rig_expect_serving(&g);
}

static void a_new_spawner_kills_processes_that_a_killed_one_left(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo $$ >$RIG/main; setsid sh -c 'echo $$ >$RIG/side; sleep 300; :' >/dev/null & "
					 "trap '' TERM; sleep 300; :");
	AUTO_TEXT old = xstrdup(spawn_client_spawner(g.client));
	pid_t main_pid, side;

	(void)state;
	rig_start(&g, &p);
	main_pid = rig_file_pid(&g, "main");
	side = rig_file_pid(&g, "side");
	rig_spawner_kill(&g);
	rig_wait(&g, SPAWN_GONE, 0);
	assert_true(rig_wait_gone(main_pid)); /* killed by PR_SET_PDEATHSIG */
	assert_int_equal(kill(side, 0), 0);
	rig_spawner_start(&g);
	assert_true(kill(side, 0) < 0 || rig_wait_gone(side));
	rig_disconnect(&g);
	rig_connect(&g);
	assert_string_not_equal(spawn_client_spawner(g.client), old);
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(rig_count(&g, SPAWN_HAS, 0), 0);
}

static void a_stopping_spawner_ends_its_jobs_and_reports_them(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "sleep 300");
	AUTO_DONE(start_plan) late = rig_plan(&g, "exit 0");
	const struct rig_report *r;

	(void)state;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_STARTED, p.run);
	kill(g.spawner, SIGTERM);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.outcome, ATTEMPT_LOST);
	assert_string_equal(r->error, "ended because the spawner was stopped");
	rig_start(&g, &late);
	assert_true(rig_wait(&g, SPAWN_NOT_STARTED, late.run)->r.reason == START_STOPPING);
	spawn_client_ack(g.client, p.run, p.fence);
	rig_wait(&g, SPAWN_GONE, 0);
	assert_int_equal(waitpid(g.spawner, NULL, 0), g.spawner);
	rig_disconnect(&g);
	rig_spawner_start(&g);
	rig_connect(&g);
}

static void a_missing_socket_is_reported_as_unreachable(void **state)
{
	AUTO_TEXT path = xprintf("%s/nothing.sock", g.dir);
	struct spawn_client *c = NULL;
	struct err e = {};

	(void)state;
	assert_false(spawn_client_open(g.ev, path, "rig", NULL, NULL, &c, &e));
	assert_int_equal(e.kind, ERR_UNREACHABLE);
	assert_null(c);
}

/* A listening socket of this process that never accepts. */
static int silent_listener(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void take_kinds(const struct spawn_report *r, void *arg)
{
	unsigned *kinds = arg;

	*kinds |= 1U << r->kind;
	if (r->kind == SPAWN_GONE)
		assert_string_equal(r->error, "the spawner does not answer");
}

/* The welcome timeout of the first connection expires before that of the second. */
static void the_client_waits_for_a_stopped_spawner_but_not_for_a_silent_one(void **state)
{
	AUTO_TEXT path = xprintf("%s/silent.sock", g.dir);
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;
	struct spawn_client *stopped = NULL, *silent = NULL;
	unsigned of_stopped = 0, of_silent = 0;
	AUTO_FD fd = silent_listener(path);
	struct spawn_health h;
	struct err e = {};

	(void)state;
	kill(g.spawner, SIGSTOP);
	assert_true(spawn_client_connect(g.ev, g.sock, "rig", take_kinds, &of_stopped, &stopped, &e));
	assert_true(spawn_client_connect(g.ev, path, "rig", take_kinds, &of_silent, &silent, &e));
	assert_int_equal(of_stopped | of_silent, 0);
	while (!of_silent && clock_boot(&clock_system) < until)
		sd_event_run(g.ev, 100000);
	assert_int_equal(of_silent, 1U << SPAWN_GONE);
	assert_int_equal(of_stopped, 0);
	spawn_client_health(stopped, &h);
	assert_true(h.stopped);
	kill(g.spawner, SIGCONT);
	while (!of_stopped && clock_boot(&clock_system) < until + RIG_TIMEOUT)
		sd_event_run(g.ev, 100000);
	assert_int_equal(of_stopped, 1U << SPAWN_CONNECTED);
	assert_string_equal(spawn_client_spawner(stopped), spawn_client_spawner(g.client));
	spawn_client_free(silent);
	spawn_client_free(stopped);
	rig_wait(&g, SPAWN_SUPERSEDED, 0);
	rig_disconnect(&g);
	rig_connect(&g);
}

static void a_launched_spawner_serves_in_its_own_session(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT program = xprintf("%s/jobsched-spawner", build ? build : ".");
	struct rig other = {.next_run = 1, .ev = g.ev};
	AUTO_TEXT clean = NULL;
	AUTO_TEXT log = NULL;
	struct err e = {};
	pid_t pid;

	(void)state;
	strcpy(other.dir, "/tmp/rig.XXXXXX");
	assert_non_null(mkdtemp(other.dir));
	snprintf(other.sock, sizeof(other.sock), "%s/spawner.sock", other.dir);
	snprintf(other.output, sizeof(other.output), "%s/output", other.dir);
	assert_true(spawner_launch(program, other.dir, other.output, &e));
	assert_true(spawner_launch(program, other.dir, other.output, &e)); /* a spawner is running: no effect */
	other.output_dir = open(other.output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rig_connect(&other);
	rig_expect(&other, "echo $PPID >$RIG/pid; echo hi", "hi\n");
	pid = rig_file_pid(&other, "pid");
	assert_int_equal(getsid(pid), pid);
	kill(pid, SIGTERM);
	rig_wait(&other, SPAWN_GONE, 0);
	assert_true(rig_wait_gone(pid));
	assert_false(spawner_launch("/does/not/exist", other.dir, other.output, &e));
	rig_disconnect(&other);
	free(other.reports);
	close(other.output_dir);
	log = xprintf("grep -q 'spawner .* exits' %s/spawner.log", other.dir);
	assert_int_equal(system(log), 0);
	clean = xprintf("rm -rf %s", other.dir);
	assert_int_equal(system(clean), 0);
}

static void an_idle_spawner_exits_unless_an_end_is_unreported(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT command = NULL;
	struct rig other = {.next_run = 1, .ev = g.ev};
	usec_t from;

	(void)state;
	strcpy(other.dir, "/tmp/rig.XXXXXX");
	assert_non_null(mkdtemp(other.dir));
	snprintf(other.sock, sizeof(other.sock), "%s/spawner.sock", other.dir);
	snprintf(other.output, sizeof(other.output), "%s/output", other.dir);
	command = xprintf("'%s/jobsched-spawner' --background --runtime-dir %s --output-dir %s --linger 1",
		build ? build : ".", other.dir, other.output);
	assert_int_equal(system(command), 0);
	{
		AUTO_DONE(start_plan) p = rig_plan(&other, "exit 0");

		rig_connect(&other);
		rig_start(&other, &p);
		rig_wait(&other, SPAWN_ENDED, p.run);
		rig_disconnect(&other);
		poll(NULL, 0, 1500);
		rig_connect(&other); /* still running */
		spawn_client_list(other.client);
		rig_wait(&other, SPAWN_ENDED, p.run);
		spawn_client_ack(other.client, p.run, p.fence);
		spawn_client_list(other.client);
		rig_wait(&other, SPAWN_LIST_DONE, 0);
		rig_wait(&other, SPAWN_LIST_DONE, 0);
		rig_disconnect(&other);
	}
	from = clock_boot(&clock_system);
	while (access(other.sock, F_OK) == 0 && clock_boot(&clock_system) - from < RIG_TIMEOUT)
		poll(NULL, 0, 20);
	assert_true(clock_boot(&clock_system) - from >= 900 * USEC_MSEC);
	assert_true(access(other.sock, F_OK) < 0);
	free(other.reports);
	free(command);
	command = xprintf("rm -rf %s", other.dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_second_spawner_exits_with_69),
		TEST(a_new_spawner_kills_processes_that_a_killed_one_left),
		TEST(a_stopping_spawner_ends_its_jobs_and_reports_them),
		TEST(a_missing_socket_is_reported_as_unreachable),
		TEST(the_client_waits_for_a_stopped_spawner_but_not_for_a_silent_one),
		TEST(a_launched_spawner_serves_in_its_own_session),
		TEST(an_idle_spawner_exits_unless_an_end_is_unreported),
	};

	return cmocka_run_group_tests(tests, up, down);
}
