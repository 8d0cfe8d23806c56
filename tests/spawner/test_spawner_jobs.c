/* SPDX-License-Identifier: Apache-2.0 */
/* Environment, input, output and reports of commands that a real spawner starts. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/proto/output_file.h"
#include "spawner/spawner_rig.h"
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
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

/* ---- environment of the command ---- */

static void the_environment_contains_only_the_defined_variables(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "");
	const struct passwd *pw = getpwuid(geteuid());
	const char *lang = getenv("LANG");
	AUTO_TEXT expected = xprintf("HOME=%s\nLOGNAME=%s\nUSER=%s\nSHELL=%s\n"
				     "PATH=%s\nLANG=%s\nJOBSCHED_ATTEMPT=1\nRIG=%s\nA=2\n"
				     "JOBSCHED_RUN=%lld\nJOBSCHED_FENCE=1\nJOBSCHED_SPAWNER=%s\n",
		pw->pw_dir, pw->pw_name, pw->pw_name, pw->pw_shell,
		geteuid() == 0 ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" : "/usr/local/bin:/usr/bin:/bin", lang && lang[0] ? lang : "C.UTF-8", g.dir,
		(long long)p.run, spawn_client_spawner(g.client));
	AUTO_TEXT out = NULL;

	(void)state;
	setenv("STRAY", "from the test", 1);
	strv_done(&p.spec.argv);
	strv_add(&p.spec.argv, "/usr/bin/env");
	strv_add(&p.spec.env, "A=1");
	strv_add(&p.spec.env, "A=2");
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, expected);
}

static void a_variable_of_the_job_replaces_the_default(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo \"$HOME $PATH\"");
	AUTO_TEXT out = NULL;

	(void)state;
	strv_add(&p.spec.env, "HOME=/elsewhere");
	strv_add(&p.spec.env, "PATH=/bin");
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, "/elsewhere /bin\n");
}

static void a_job_cannot_set_the_spawner_and_run_variables(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo $JOBSCHED_SPAWNER $JOBSCHED_RUN $JOBSCHED_FENCE");
	AUTO_TEXT expected = xprintf("%s %lld 1\n", spawn_client_spawner(g.client), (long long)p.run);
	AUTO_TEXT out = NULL;

	(void)state;
	strv_add(&p.vars, "JOBSCHED_SPAWNER=forged");
	strv_add(&p.vars, "JOBSCHED_RUN=99999");
	strv_add(&p.vars, "JOBSCHED_FENCE=99999");
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, expected);
}

static void arguments_can_contain_every_byte_except_nul(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "printf %s \"$1\"");
	AUTO_TEXT out = NULL;
	char bytes[256];
	size_t len;

	(void)state;
	for (int i = 0; i < 255; i++)
		bytes[i] = (char)(i + 1);
	bytes[255] = '\0';
	strv_add(&p.spec.argv, "sh");
	strv_add(&p.spec.argv, bytes);
	out = rig_output(&g, rig_run(&g, &p), &len);
	assert_int_equal(len, 255);
	assert_memory_equal(out, bytes, 255);
}

static void empty_arguments_are_kept(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo $#:$1:$2:$3");
	AUTO_TEXT out = NULL;

	(void)state;
	strv_add(&p.spec.argv, "sh");
	strv_add(&p.spec.argv, "");
	strv_add(&p.spec.argv, "x");
	strv_add(&p.spec.argv, "");
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, "3::x:\n");
}

static void binary_input_is_passed_unchanged(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "cat");
	AUTO_TEXT out = NULL;
	size_t len;

	(void)state;
	p.stdin_data = (struct blob){xcalloc(1, 300000), 300000};
	for (size_t i = 0; i < p.stdin_data.len; i++)
		p.stdin_data.data[i] = (char)(i * 7 >> 3);
	out = rig_output(&g, rig_run(&g, &p), &len);
	assert_int_equal(len, p.stdin_data.len);
	assert_memory_equal(out, p.stdin_data.data, len);
}

static void input_of_16_mebibytes_is_accepted_and_more_is_refused(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "wc -c; wc -c </proc/self/fd/0; (: >/proc/self/fd/0) 2>/dev/null || echo sealed");
	AUTO_TEXT out = NULL;
	struct err e = {};

	(void)state;
	p.stdin_data = (struct blob){xcalloc(1, (16 << 20) + 1), 16 << 20};
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, "16777216\n16777216\nsealed\n");
	p.stdin_data.len++;
	assert_false(spawn_client_start(g.client, &p, &e));
	assert_int_equal(e.kind, ERR_TOO_LARGE);
}

static void empty_input_is_an_empty_file(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "readlink /proc/self/fd/0 | cut -c1-22; cat");
	AUTO_TEXT out = NULL;

	(void)state;
	p.stdin_data = (struct blob){xcalloc(1, 1), 0};
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, "/memfd:jobsched-stdin \n");
}

static void without_input_stdin_is_dev_null(void **state)
{
	(void)state;
	rig_expect(&g, "cat; readlink /proc/self/fd/0", "/dev/null\n");
}

static void only_descriptors_0_to_2_are_open(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "");
	AUTO_TEXT out = NULL;

	(void)state;
	strv_done(&p.spec.argv);
	strv_add(&p.spec.argv, "ls");
	strv_add(&p.spec.argv, "/proc/self/fd");
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, "0\n1\n2\n3\n"); /* 3 is the directory that ls reads */
}

static void umask_directory_and_limits_are_applied(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "umask; pwd; ulimit -c; ulimit -Sn");
	AUTO_TEXT expected = NULL;
	AUTO_TEXT out = NULL;
	struct rlimit nofile;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &nofile);
	p.spec.umask = 027;
	expected = xprintf("0027\n%s\n0\n%llu\n", g.dir, (unsigned long long)nofile.rlim_cur);
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, expected);
}

static void a_worker_has_its_own_session_and_default_signals(void **state)
{
	(void)state;
	rig_expect(&g, "set -- $(cut -d' ' -f5,6 /proc/$$/stat); [ $1 = $$ ] && [ $2 = $$ ] && echo yes", "yes\n");
	rig_expect(&g, "grep -E 'Sig(Blk|Ign)' /proc/$$/status | tr '\\n\\t' '  '",
		"SigBlk: 0000000000000000 SigIgn: 0000000000000000 ");
}

static void without_a_directory_the_command_runs_in_the_home_directory(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "pwd");
	AUTO_TEXT expected = xprintf("%s\n", getpwuid(geteuid())->pw_dir);
	AUTO_TEXT out = NULL;

	(void)state;
	free(STEAL(p.spec.cwd));
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, expected);
}

/* ---- starts that fail ---- */

static void a_command_that_cannot_be_executed_is_not_started(void **state)
{
	AUTO_TEXT plain = xprintf("%s/plain", g.dir);
	AUTO_TEXT binary = xprintf("%s/binary", g.dir);
	AUTO_TEXT make = xprintf("echo x >%s; printf 'garbage\\001' >%s; chmod 755 %s", plain, binary, binary);
	AUTO_TEXT huge = xcalloc(1, 200000);
	const struct {
		const char *argv0, *argv1, *cwd, *says;
		bool transient;
	} table[] = {
		{"/does/not/exist", NULL, "/", "could not run '/does/not/exist': No such file or directory", false},
		{"no-such-command-here", NULL, "/", "could not run 'no-such-command-here': No such file or directory", false},
		{plain, NULL, "/", ": Permission denied", false},
		{"/", NULL, "/", "could not run '/': Permission denied", false},
		{binary, NULL, "/", ": Exec format error", false},
		{"/bin/true", huge, "/", "could not run '/bin/true': Argument list too long", false},
		{"/bin/true", NULL, "/nowhere", "could not enter directory '/nowhere': No such file or directory", false},
		{"/bin/true", NULL, plain, ": Not a directory", false},
	};

	(void)state;
	memset(huge, 'x', 199999);
	assert_int_equal(system(make), 0);
	for (size_t i = 0; i < ELEMENTS(table); i++) {
		AUTO_DONE(start_plan) p = rig_plan(&g, "");
		const struct rig_report *r;

		strv_done(&p.spec.argv);
		strv_add(&p.spec.argv, table[i].argv0);
		if (table[i].argv1)
			strv_add(&p.spec.argv, table[i].argv1);
		free(p.spec.cwd);
		p.spec.cwd = xstrdup(table[i].cwd);
		rig_start(&g, &p);
		r = rig_wait(&g, SPAWN_NOT_STARTED, p.run);
		assert_non_null(strstr(r->error, table[i].says));
		assert_int_equal(r->r.transient, table[i].transient);
	}
	assert_int_equal(rig_count(&g, SPAWN_STARTED, 0), 0);
}

static void a_program_open_for_writing_is_a_transient_error(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "");
	AUTO_TEXT copy = xprintf("%s/copy", g.dir);
	AUTO_TEXT make = xprintf("cp /bin/true %s", copy);
	AUTO_FD writer = -1;
	const struct rig_report *r;

	(void)state;
	assert_int_equal(system(make), 0);
	writer = open(copy, O_WRONLY | O_CLOEXEC);
	strv_done(&p.spec.argv);
	strv_add(&p.spec.argv, copy);
	rig_start(&g, &p);
	r = rig_wait(&g, SPAWN_NOT_STARTED, p.run);
	assert_true(r->r.transient);
	assert_non_null(strstr(r->error, "Text file busy"));
	close(STEAL_FD(writer));
	assert_int_equal(rig_run(&g, &p)->r.outcome, ATTEMPT_SUCCEEDED);
}

static void the_command_is_searched_in_the_path_of_the_job(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "");
	AUTO_TEXT make = xprintf("mkdir -p %s/a %s/b && echo no >%s/a/hi && printf '#!/bin/sh\\necho found $0\\n' >%s/b/hi "
				 "&& chmod 755 %s/b/hi", g.dir, g.dir, g.dir, g.dir, g.dir);
	AUTO_TEXT expected = xprintf("found %s/b/hi\n", g.dir);
	AUTO_TEXT out = NULL;

	(void)state;
	assert_int_equal(system(make), 0);
	strv_done(&p.spec.argv);
	strv_add(&p.spec.argv, "hi");
	strv_take(&p.spec.env, xprintf("PATH=/nowhere:%s/a:%s/b", g.dir, g.dir));
	out = rig_output(&g, rig_run(&g, &p), NULL);
	assert_string_equal(out, expected);
}

static void an_inaccessible_home_directory_is_reported(void **state)
{
	struct rig nobody;

	(void)state;
	if (!rig_up_as_nobody(&nobody, NULL))
		skip();
	{
		AUTO_DONE(start_plan) p = rig_plan(&nobody, "pwd");
		const struct rig_report *r;

		free(STEAL(p.spec.cwd));
		r = rig_run(&nobody, &p);
		assert_int_equal(r->r.outcome, ATTEMPT_SUCCEEDED);
		assert_non_null(strstr(r->error, "', ran in '/': No such file or directory"));
		rig_expect(&nobody, "id -u; cd /; pwd", "65534\n/\n");
	}
	rig_down(&nobody);
}

static void the_process_limit_is_a_transient_error(void **state)
{
	struct rig nobody;

	(void)state;
	if (!rig_up_as_nobody(&nobody, "1"))
		skip();
	{
		AUTO_DONE(start_plan) p = rig_plan(&nobody, "exit 0");
		const struct rig_report *r;

		rig_start(&nobody, &p);
		r = rig_wait(&nobody, SPAWN_NOT_STARTED, p.run);
		assert_true(r->r.transient);
		assert_string_equal(r->error, "could not start a process (clone): Resource temporarily unavailable");
	}
	rig_down(&nobody);
}

/* ---- reports ---- */

static void exit_codes_and_signals_are_reported(void **state)
{
	const struct rig_report *r;

	(void)state;
	r = rig_script(&g, "exit 7");
	assert_int_equal(r->r.exit_code, 7);
	assert_int_equal(r->r.term_signal, 0);
	assert_int_equal(r->r.outcome, ATTEMPT_FAILED);
	r = rig_script(&g, "kill -9 $$");
	assert_int_equal(r->r.exit_code, -1);
	assert_int_equal(r->r.term_signal, SIGKILL);
	assert_int_equal(r->r.outcome, ATTEMPT_FAILED);
	assert_string_equal(r->error, "");
}

static void time_and_memory_are_reported(void **state)
{
	usec_t before = clock_now(&clock_system);
	const struct rig_report *r = rig_script(&g, "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.05");

	(void)state;
	assert_true(r->r.started_at >= before && r->r.ended_at <= clock_now(&clock_system));
	assert_true(r->r.ended_at - r->r.started_at >= 50 * USEC_MSEC);
	assert_true(r->r.cpu_user > 1000 && r->r.cpu_user < 20 * USEC_SEC);
	assert_true(r->r.max_rss > 100 << 10 && r->r.max_rss < 1 << 30);
	assert_true(r->r.pid > 1);
}

/* ---- output ---- */

static void a_command_without_output_has_no_file(void **state)
{
	const struct rig_report *r = rig_script(&g, ":");

	(void)state;
	assert_int_equal(r->r.output_bytes, 0);
	assert_int_equal(output_file_open(g.output_dir, r->r.run, 1), -ENOENT);
}

static void both_streams_are_kept_in_order(void **state)
{
	(void)state;
	rig_expect(&g, "echo one; echo two >&2; echo three", "one\ntwo\nthree\n");
}

static void the_output_file_has_mode_0640(void **state)
{
	const struct rig_report *r = rig_script(&g, "echo x");
	AUTO_FD fd = output_file_open(g.output_dir, r->r.run, 1);
	struct stat st;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void the_head_and_tail_of_large_output_are_kept(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "i=0; while [ $i -lt 10000 ]; do echo \"line $((1000000 + i))\"; i=$((i+1)); done");
	AUTO_TEXT all = NULL;
	AUTO_TEXT out = NULL;
	const struct rig_report *r;
	size_t len;

	(void)state;
	p.output_limit = 13000; /* a tenth of the output */
	r = rig_run(&g, &p);
	assert_int_equal(r->r.output_bytes, 130000);
	assert_int_equal(r->r.output_dropped, 117000);
	out = rig_output(&g, r, &len);
	assert_int_equal(len, 13000);
	all = xcalloc(1, 130001 + 16);
	for (int i = 0; i < 10000; i++)
		snprintf(all + i * 13, 14, "line %d\n", 1000000 + i);
	assert_memory_equal(out, all, 1300);
	assert_memory_equal(out + 1300, all + 130000 - 11700, 11700);
}

static void output_can_be_read_while_it_grows(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "echo one; while [ ! -e $RIG/go ]; do sleep 0.02; done; echo two");
	AUTO_TEXT path = xprintf("%s/go", g.dir);
	AUTO_FD fd = -1;
	struct err e = {};
	char text[64];
	int64_t at = 0;
	size_t n = 0;

	(void)state;
	rig_start(&g, &p);
	while ((fd = output_file_open(g.output_dir, p.run, 1)) < 0)
		rig_spin(&g, 10 * USEC_MSEC);
	for (; n == 0; rig_spin(&g, 10 * USEC_MSEC))
		assert_true(output_file_read(fd, 0, text, sizeof(text), &at, &n, &e));
	assert_int_equal(n, 4);
	assert_true(output_file_read(fd, 4, text, sizeof(text), &at, &n, &e) && n == 0);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	rig_wait(&g, SPAWN_ENDED, p.run);
	assert_true(output_file_read(fd, 4, text, sizeof(text), &at, &n, &e));
	assert_int_equal(at, 4);
	assert_memory_equal(text, "two\n", 4);
}

static void a_leftover_output_file_is_not_read(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, ":");
	AUTO_TEXT link = xprintf("%s/%lld.1", g.output, (long long)p.run);

	(void)state;
	assert_int_equal(symlink("/etc/passwd", link), 0);
	rig_run(&g, &p);
	assert_int_equal(output_file_open(g.output_dir, p.run, 1), -ENOENT);
}

static void forget_output_removes_the_file(void **state)
{
	const struct rig_report *r = rig_script(&g, "echo x");
	int64_t run = r->r.run;
	AUTO_FD fd = output_file_open(g.output_dir, run, 1);

	(void)state;
	assert_true(fd >= 0);
	spawn_client_forget_output(g.client, run, 1);
	spawn_client_forget_output(g.client, run, 1);
	spawn_client_list(g.client);
	rig_wait(&g, SPAWN_LIST_DONE, 0);
	assert_int_equal(output_file_open(g.output_dir, run, 1), -ENOENT);
}

static void a_worker_with_heavy_output_does_not_delay_others(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "exec dd if=/dev/zero bs=1M count=100000 2>/dev/null");
	usec_t worst = 0;

	(void)state;
	rig_start(&g, &p);
	rig_wait(&g, SPAWN_STARTED, p.run);
	for (int i = 0; i < 10; i++, rig_spin(&g, 30 * USEC_MSEC)) {
		usec_t from = clock_boot(&clock_system), took;

		rig_script(&g, ":");
		took = clock_boot(&clock_system) - from;
		worst = took > worst ? took : worst;
	}
	spawn_client_cancel(g.client, p.run, 1);
	assert_true(rig_wait(&g, SPAWN_ENDED, p.run)->r.output_bytes > 10 << 20);
	assert_true(worst < 2 * USEC_SEC);
}

static void a_full_disk_loses_only_output(void **state)
{
	AUTO_DONE(start_plan) p = rig_plan(&g, "head -c 2000000 /dev/zero; echo end >&2");
	AUTO_TEXT mount = xprintf("mount -t tmpfs -o size=512k none %s 2>/dev/null", g.output);
	AUTO_TEXT umount = xprintf("umount %s", g.output);
	const struct rig_report *r;

	(void)state;
	/* the spawner has the old directory open, so it is restarted */
	kill(g.spawner, SIGTERM);
	rig_wait(&g, SPAWN_GONE, 0);
	rig_disconnect(&g);
	rig_spawner_kill(&g);
	if (system(mount) != 0) {
		rig_spawner_start(&g);
		rig_connect(&g);
		skip(); /* not allowed to mount */
	}
	rig_spawner_start(&g);
	rig_connect(&g);
	p.output_limit = 4 << 20;
	r = rig_run(&g, &p);
	assert_int_equal(r->r.exit_code, 0);
	assert_int_equal(r->r.output_bytes, 2000004);
	assert_true(r->r.output_dropped > 1000000 && r->r.output_dropped < 2000004);
	kill(g.spawner, SIGTERM);
	rig_wait(&g, SPAWN_GONE, 0);
	rig_disconnect(&g);
	rig_spawner_kill(&g);
	assert_int_equal(system(umount), 0);
	rig_spawner_start(&g);
	rig_connect(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_environment_contains_only_the_defined_variables),
		TEST(a_variable_of_the_job_replaces_the_default),
		TEST(a_job_cannot_set_the_spawner_and_run_variables),
		TEST(arguments_can_contain_every_byte_except_nul),
		TEST(empty_arguments_are_kept),
		TEST(binary_input_is_passed_unchanged),
		TEST(input_of_16_mebibytes_is_accepted_and_more_is_refused),
		TEST(empty_input_is_an_empty_file),
		TEST(without_input_stdin_is_dev_null),
		TEST(only_descriptors_0_to_2_are_open),
		TEST(umask_directory_and_limits_are_applied),
		TEST(a_worker_has_its_own_session_and_default_signals),
		TEST(without_a_directory_the_command_runs_in_the_home_directory),
		TEST(a_command_that_cannot_be_executed_is_not_started),
		TEST(a_program_open_for_writing_is_a_transient_error),
		TEST(the_command_is_searched_in_the_path_of_the_job),
		TEST(an_inaccessible_home_directory_is_reported),
		TEST(the_process_limit_is_a_transient_error),
		TEST(exit_codes_and_signals_are_reported),
		TEST(time_and_memory_are_reported),
		TEST(a_command_without_output_has_no_file),
		TEST(both_streams_are_kept_in_order),
		TEST(the_output_file_has_mode_0640),
		TEST(the_head_and_tail_of_large_output_are_kept),
		TEST(output_can_be_read_while_it_grows),
		TEST(a_leftover_output_file_is_not_read),
		TEST(forget_output_removes_the_file),
		TEST(a_worker_with_heavy_output_does_not_delay_others),
		TEST(a_full_disk_loses_only_output),
	};

	return cmocka_run_group_tests(tests, up, down);
}
