/* SPDX-License-Identifier: Apache-2.0 */
/* Re-exec of the spawner: no run is lost, ended or reported twice. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/spawner/conn.h"
#include "exec/spawner/reexec_state.h"
#include "exec/worker/worker.h"
#include "exec/worker/workers.h"
#include "spawner/spawner_rig.h"
#include "unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

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
	assert_int_equal(rig_count(&g, SPAWN_GONE, 0), 0);
	rig_down(&g);
	return 0;
}

static void a_running_job_keeps_its_output_and_exit_code(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo before; echo $$ >$RIG/begun; until [ -e $RIG/go ]; do sleep 0.01; done; "
					 "echo after; exit 7");
	AUTO_TEXT go = xprintf("%s/go", g.dir);
	AUTO_TEXT out = NULL;
	const struct rig_report *r;

	(void)state;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_STARTED, p.run);
	rig_file_pid(&g, "begun");
	rig_reload(&g);
	rig_reload(&g); /* twice: resumed state can be passed on again */
	assert_int_equal(rig_count(&g, SPAWN_ENDED, p.run), 0);
	assert_int_equal(io_write_file(go, "", 0, 0600), 0);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.exit_code, 7);
	assert_int_equal(r->r.outcome, ATTEMPT_FAILED);
	out = rig_output(&g, r, NULL);
	assert_string_equal(out, "before\nafter\n");
	spawn_client_ack(g.client, p.run, p.fence);
}

static void time_limit_and_grace_period_continue(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "trap '' TERM; echo $$ >$RIG/deaf; while :; do sleep 0.02; done");
	const struct rig_report *r;

	(void)state;
	p.timeout = 4 * USEC_SEC; /* long enough for the shell to set its trap on a busy machine */
	p.grace = 800 * USEC_MSEC;
	rig_start(&g, &p);
	rig_file_pid(&g, "deaf");
	rig_reload(&g);
	rig_spin(&g, 4200 * USEC_MSEC); /* SIGTERM has been sent by now, most likely */
	rig_reload(&g);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.outcome, ATTEMPT_TIMED_OUT);
	assert_int_equal(r->r.term_signal, SIGKILL);
	assert_true(r->r.ended_at - r->r.started_at >= 4790 * USEC_MSEC);
	spawn_client_ack(g.client, p.run, p.fence);
}

static void an_unacknowledged_end_is_kept(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "exit 9");
	const struct rig_report *r;

	(void)state;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_ENDED, p.run);
	rig_reload(&g);
	rig_spin(&g, 50 * USEC_MSEC);
	assert_int_equal(rig_count(&g, SPAWN_ENDED, p.run), 0); /* it was already reported to this daemon */
	rig_disconnect(&g);
	rig_reload(&g);
	rig_connect(&g);
	spawn_client_list(g.client);
	r = rig_wait(&g, SPAWN_ENDED, p.run);
	assert_int_equal(r->r.exit_code, 9);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	spawn_client_ack(g.client, p.run, p.fence);
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(rig_count(&g, SPAWN_ENDED, p.run), 0);
}

static void the_spawner_keeps_its_id_and_pid(void **state)
{
	AUTO_TEXT id = xstrdup(spawn_client_spawner(g.client));

	(void)state;
	rig_reload(&g);
	rig_disconnect(&g);
	rig_connect(&g);
	assert_string_equal(spawn_client_spawner(g.client), id);
	assert_int_equal(kill(g.spawner, 0), 0);
}

static void a_job_can_be_cancelled_with_its_descendants_after_a_reload(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "setsid sh -c 'echo $$ >$RIG/far; sleep 300' & echo $$ >$RIG/near; wait");
	pid_t far, near;

	(void)state;
	rig_start(&g, &p);
	far = rig_file_pid(&g, "far");
	near = rig_file_pid(&g, "near");
	rig_reload(&g);
	spawn_client_cancel(g.client, p.run, p.fence);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.outcome, ATTEMPT_CANCELLED);
	assert_true(rig_wait_gone(near));
	assert_true(rig_wait_gone(far));
	spawn_client_ack(g.client, p.run, p.fence);
}

/* ---- unusable new programs ---- */

static void copy_program(const char *to)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT copy = xprintf("cp '%s/jobsched-spawner' '%s.new' && mv '%s.new' '%s'", build ? build : ".", to, to, to);

	assert_int_equal(system(copy), 0);
}

static void without_a_usable_new_program_the_old_one_continues(void **state)
{
	char dir[] = "/tmp/rig.XXXXXX";
	struct rig own = {.next_run = 1};
	AUTO_TEXT program = NULL;
	AUTO_TEXT clean = NULL;
	AUTO_TEXT swap = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	program = xprintf("%s/spawner", dir);
	copy_program(program);
	rig_up_program(&own, program);

	unlink(program);
	kill(own.spawner, SIGHUP);
	rig_wait_logged(&own, "not reloaded", 1);
	rig_expect(&own, "echo still here", "still here\n");

	swap = xprintf("cp /bin/false '%s'", program);
	assert_int_equal(system(swap), 0);
	kill(own.spawner, SIGHUP);
	rig_wait_logged(&own, "does not read version", 1);
	rig_expect(&own, "echo here, too", "here, too\n");

	copy_program(program);
	rig_reload(&own);
	rig_expect(&own, "echo new", "new\n");
	assert_int_equal(rig_count(&own, SPAWN_GONE, 0), 0);
	rig_down(&own);
	clean = xprintf("rm -rf '%s'", dir);
	assert_int_equal(system(clean), 0);
}

/* The daemon restarts runs that a stop has ended. A restart that is lost with the spawner would count as an attempt. */
static void starts_during_a_stop_are_refused_as_stopping(void **state)
{
	struct rig own;

	(void)state;
	rig_up(&own);
	{
		AUTO_DONE(start_plan) p = rig_plan(&own, "sleep 300");
		AUTO_DONE(start_plan) again = rig_plan(&own, "echo again");

		rig_start(&own, &p);
		rig_wait(&own, SPAWN_STARTED, p.run);
		kill(own.spawner, SIGTERM);
		assert_int_equal(rig_wait(&own, SPAWN_ENDED, p.run)->r.outcome, ATTEMPT_LOST);
		kill(own.spawner, SIGSTOP); /* so that it receives both frames within its quiet time, however busy the machine is */
		spawn_client_ack(own.client, p.run, p.fence);
		rig_start(&own, &again);
		rig_spin(&own, 20 * USEC_MSEC);
		kill(own.spawner, SIGCONT);
		assert_true(rig_wait(&own, SPAWN_NOT_STARTED, again.run)->r.reason == START_STOPPING);
	}
	rig_down(&own);
}

/* Waits until exec() of another process has asked the kernel to end the write lease on a file. */
static void wait_for_exec(int leased)
{
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;

	while (fcntl(leased, F_GETLEASE) == F_WRLCK && clock_boot(&clock_system) < until)
		rig_spin(&g, 5 * USEC_MSEC);
	assert_int_not_equal(fcntl(leased, F_GETLEASE), F_WRLCK);
}

/* The write lease of this process on the program blocks exec() until the file is closed. */
static void a_start_that_has_a_process_survives_a_reload(void **state)
{
	AUTO_TEXT program = xprintf("%s/leased", g.dir);
	AUTO_DONE(start_plan) p = rig_plan(&g, "");
	int fd;

	(void)state;
	signal(SIGIO, SIG_IGN);
	assert_int_equal(io_write_file(program, "#!/bin/sh\nexit 7\n", 17, 0700), 0);
	fd = open(program, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	strv_done(&p.spec.argv);
	strv_add(&p.spec.argv, program);
	rig_start(&g, &p);
	wait_for_exec(fd);
	rig_reload(&g);
	rig_wait(&g, SPAWN_STARTED, p.run);
	assert_int_equal(rig_count(&g, SPAWN_NOT_STARTED, p.run), 0);
	close(fd);
	assert_int_equal(rig_wait(&g, SPAWN_ENDED, p.run)->r.exit_code, 7);
	spawn_client_ack(g.client, p.run, p.fence);
}

static void can_read_state_reports_the_supported_versions(void **state)
{
	const char *build = getenv("top_builddir");
	AUTO_TEXT own = xprintf("'%s/jobsched-spawner' --can-read-state %d", build ? build : ".", REEXEC_STATE_VERSION);
	AUTO_TEXT next = xprintf("'%s/jobsched-spawner' --can-read-state %d", build ? build : ".", REEXEC_STATE_VERSION + 1);

	(void)state;
	assert_int_equal(system(own), 0);
	assert_int_not_equal(system(next), 0);
}

/* ---- under load ---- */

#define JOBS 50
#define RELOADS 20

static unsigned seed;
static size_t repeated; /* starts */

static void pause_a_moment(void)
{
	rig_spin(&g, (usec_t)(rand_r(&seed) % 60000));
}

static void start_run(int64_t run, int64_t fence, const char *script)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, script);

	if (fence > 1)
		g.next_run--; /* the run keeps its number */
	p.run = run;
	p.fence = p.attempt = fence;
	rig_start(&g, &p);
}

/*
 * Waits for the next end. A start that was incomplete at a reload is reported as not started; it is repeated, as the
 * daemon does.
 */
static const struct rig_report *next_end(char *(*script)(int64_t run))
{
	usec_t until = clock_boot(&clock_system) + RIG_TIMEOUT;

	while (!rig_count(&g, SPAWN_ENDED, 0) && clock_boot(&clock_system) < until) {
		if (rig_count(&g, SPAWN_NOT_STARTED, 0)) {
			const struct rig_report *r = rig_wait(&g, SPAWN_NOT_STARTED, 0);
			AUTO_TEXT again = script(r->r.run);

			if (r->r.reason != START_TRANSIENT)
				fail_msg("run %lld was not started: %s", (long long)r->r.run, r->error);
			if (strcmp(r->error, "the spawner is being upgraded") != 0)
				print_message("# not started: %s\n", r->error);
			start_run(r->r.run, r->r.fence + 1, again);
			repeated++;
		}
		sd_event_run(g.ev, 100000);
	}
	return rig_wait(&g, SPAWN_ENDED, 0);
}

static char *short_script(int64_t run)
{
	(void)run;
	return xstrdup("echo short; exit 3");
}

/* Fifty jobs write and end at different times, some at their time limit; short jobs start and end meanwhile. */
static void fifty_jobs_survive_twenty_reloads(void **state)
{
	int64_t runs[JOBS];
	size_t shorts = 0;

	(void)state;
	for (int i = 0; i < JOBS; i++) {
		AUTO_TEXT script = xprintf("n=0; while [ $n -lt %d ]; do echo line $n; n=$((n+1)); sleep 0.05; done; exit %d",
			i % 10 == 9 ? 100000 : 10 + i, i);
		AUTO_DONE(start_plan) p = rig_plan(&g, script);

		runs[i] = p.run;
		p.timeout = i % 10 == 9 ? 1500 * USEC_MSEC : 0;
		rig_start(&g, &p);
	}
	for (int i = 0; i < JOBS; i++)
		rig_wait(&g, SPAWN_STARTED, runs[i]);
	for (int i = 0; i < RELOADS; i++) {
		AUTO_TEXT script = short_script(g.next_run);

		start_run(g.next_run, 1, script);
		shorts++;
		pause_a_moment();
		rig_reload(&g);
	}
	for (int i = 0; i < JOBS; i++) {
		const struct rig_report *r = rig_wait(&g, SPAWN_ENDED, runs[i]);
		AUTO_TEXT out = rig_output(&g, r, NULL);
		AUTO_TEXT last = xprintf("line %d\n", 10 + i - 1);

		assert_int_equal(r->r.outcome, i % 10 == 9 ? ATTEMPT_TIMED_OUT : i ? ATTEMPT_FAILED : ATTEMPT_SUCCEEDED);
		assert_int_equal(r->r.exit_code, i % 10 == 9 ? -1 : i);
		if (i % 10 != 9)
			assert_string_equal(out + strlen(out) - strlen(last), last);
		spawn_client_ack(g.client, runs[i], 1);
	}
	for (size_t i = 0; i < shorts; i++) {
		const struct rig_report *r = next_end(short_script);

		assert_int_equal(r->r.exit_code, 3);
		spawn_client_ack(g.client, r->r.run, r->r.fence);
	}
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(rig_count(&g, SPAWN_ENDED, 0), 0);
	assert_int_equal(rig_count(&g, SPAWN_NOT_STARTED, 0), 0);
	assert_int_equal(rig_count(&g, SPAWN_HAS, 0), 0);
}

/* Each run appends one byte to its file. */
static char *counted_script(int64_t run)
{
	return xprintf("printf x >>$RIG/ran.%d; echo out; exit %d", (int)run, (int)(run % 100));
}

static void assert_ran_once(int64_t run)
{
	AUTO_TEXT path = xprintf("%s/ran.%d", g.dir, (int)run);
	AUTO_DONE(buf) text = {};

	assert_int_equal(io_read_file(path, &text, 4096), 0);
	assert_int_equal(text.len, 1);
}

/* Signals are sent at random times, several in a row, without waiting for the reload. */
static void reloads_at_random_times_lose_no_run(void **state)
{
	usec_t until = clock_boot(&clock_system) + 3 * USEC_SEC, next = 0;
	size_t started = 0, ended = 0;

	(void)state;
	while (clock_boot(&clock_system) < until || ended < started) {
		usec_t now = clock_boot(&clock_system);

		if (now < until && started - ended < 8) {
			AUTO_TEXT script = counted_script(g.next_run);

			start_run(g.next_run, 1, script);
			started++;
		}
		if (now < until && now >= next) {
			kill(g.spawner, SIGHUP);
			next = now + rand_r(&seed) % 30000;
		}
		if (started - ended == 8 || now >= until || rand_r(&seed) % 2) {
			const struct rig_report *r = next_end(counted_script);

			assert_int_equal(r->r.exit_code, r->r.run % 100);
			assert_int_equal(r->r.output_bytes, 4);
			assert_ran_once(r->r.run);
			spawn_client_ack(g.client, r->r.run, r->r.fence);
			ended++;
		}
	}
	assert_int_equal(rig_count(&g, SPAWN_ENDED, 0), 0);
	assert_int_equal(rig_count(&g, SPAWN_NOT_STARTED, 0), 0);
	print_message("# %zu runs, %zu starts repeated, %zu reloads so far\n", started, repeated, rig_logged(&g, "resumed with"));
}

/* ---- damaged state ---- */

static int sample(struct buf *ret)
{
	struct worker w = {.run = 5, .fence = 1, .attempt = 1, .phase = WORKER_ENDED, .exit = {-1, NULL}, .out = {-1, NULL}, .session = {-1, NULL},
		.output.fd = -1, .results_fd = -1, .gate_fd = -1, .results = (char *)"a=1\nb=2\n", .signs = {.pipe.fd = -1, .socket.fd = -1}, .group = {.dir = -1, .events.fd = -1}, .exit_code = 3, .error = (char *)"a text"};
	struct reexec_state_head h = {.listen = open("/dev/null", O_RDONLY | O_CLOEXEC), .output_dir = open("/", O_RDONLY | O_CLOEXEC),
		.lock = open("/dev/null", O_RDONLY | O_CLOEXEC), .groups = -1, .id = "abc"};
	struct reexec_state_fds fds = {};
	struct workers ws = {};
	struct conns cs = {};
	int fd;

	w.all = &ws;
	map_put(&ws.by_run, w.run, &w);
	fd = reexec_state_save(&h, &cs, &ws, &fds);
	assert_true(fd >= 0);
	assert_true(fds.n >= 4);
	reexec_state_fds_inherit(&fds, true);
	reexec_state_fds_done(&fds);
	map_done(&ws.by_run);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(io_read_all(fd, ret, 1 << 20), 0);
	return fd;
}

/* Reads the state in a child, because reading closes all descriptors that it does not name. 0: accepted, 1: refused. */
static int read_in_child(const struct buf *b)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct reexec_state *s = NULL;
		int fd = io_memfd_sealed("test", b->data, b->len);
		bool ok = reexec_state_open(fd, &s, &(struct err){});

		reexec_state_free(s);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_damaged_state_never_crashes_the_reader(void **state)
{
	AUTO_DONE(buf) b = {};
	int fd = sample(&b), taken = 0;

	(void)state;
	assert_int_equal(read_in_child(&b), 0);
	for (size_t cut = 0; cut < b.len; cut += 7) {
		struct buf part = {b.data, cut, b.cap};

		assert_int_equal(read_in_child(&part), 1);
	}
	for (int i = 0; i < 200; i++) {
		AUTO_DONE(buf) other = {};

		buf_add(&other, b.data, b.len);
		other.data[(size_t)rand_r(&seed) % b.len] ^= (char)(1 << rand_r(&seed) % 8);
		taken += read_in_child(&other) == 0;
	}
	assert_true(taken < 200);
	b.data[4]++; /* an unknown version */
	assert_int_equal(read_in_child(&b), 1);
	close(fd);
}

static void a_state_that_names_a_descriptor_twice_is_refused(void **state)
{
	AUTO_DONE(buf) b = {};
	int fd = sample(&b);

	(void)state;
	memcpy(b.data + 16, b.data + 24, 8); /* listen becomes output_dir */
	assert_int_equal(read_in_child(&b), 1);
	close(fd);
}

int main(void)
{
	const char *given = getenv("SEED");
	const struct CMUnitTest tests[] = {
		TEST(a_running_job_keeps_its_output_and_exit_code),
		TEST(time_limit_and_grace_period_continue),
		TEST(an_unacknowledged_end_is_kept),
		TEST(the_spawner_keeps_its_id_and_pid),
		TEST(a_job_can_be_cancelled_with_its_descendants_after_a_reload),
		TEST(without_a_usable_new_program_the_old_one_continues),
		TEST(starts_during_a_stop_are_refused_as_stopping),
		TEST(a_start_that_has_a_process_survives_a_reload),
		TEST(can_read_state_reports_the_supported_versions),
		TEST(fifty_jobs_survive_twenty_reloads),
		TEST(reloads_at_random_times_lose_no_run),
		TEST(a_damaged_state_never_crashes_the_reader),
		TEST(a_state_that_names_a_descriptor_twice_is_refused),
	};

	seed = given ? (unsigned)atoi(given) : (unsigned)clock_now(&clock_system);
	print_message("# SEED=%u\n", seed);
	return cmocka_run_group_tests(tests, up, down);
}
