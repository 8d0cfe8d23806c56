/* SPDX-License-Identifier: Apache-2.0 */
/* Failpoints: what may be asked for, at which passage it happens, and that a program for use has none. */
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#ifndef JOBSCHED_FAILPOINTS

static void a_build_for_use_does_not_even_read_the_variable(void **state)
{
	struct err e = {};

	(void)state;
	setenv("JOBSCHED_FAILPOINTS", "no.such_point=kill,submit.pre_commit=error:EIO", 1);
	assert_true(failpoints_open(&e));
	assert_int_equal(failpoint(FP_SUBMIT_PRE), 0);
	assert_true(failpoint_ok(FP_SUBMIT_PRE, &e));
	failpoint_pass(FP_SUBMIT_PRE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_build_for_use_does_not_even_read_the_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static bool ask(const char *text, const char *dir)
{
	struct err e = {};
	bool ok;

	setenv("JOBSCHED_FAILPOINTS", text, 1);
	if (dir)
		setenv("JOBSCHED_FAILPOINTS_DIR", dir, 1);
	else
		unsetenv("JOBSCHED_FAILPOINTS_DIR");
	ok = failpoints_open(&e);
	if (!ok)
		assert_int_equal(e.kind, ERR_INVALID);
	return ok;
}

static void an_unknown_failpoint_is_refused(void **state)
{
	static const char *const bad[] = {"kill", "no.such_point=kill", "=kill", "submit.pre_commit", "submit.pre_commit=",
		"submit.pre_commit=die", "submit.pre_commit=kill:1", "submit.pre_commit=stop", "submit.pre_commit=stop:0",
		"submit.pre_commit=stop:x", "submit.pre_commit=delay:-1", "submit.pre_commit=error:5", "submit.pre_commit=error:ENOSUCH",
		"submit.pre_commit=kill@0", "submit.pre_commit=kill@", "submit.pre_commit=kill@1x", " submit.pre_commit=kill",
		"submit.pre_commit=kill,no.such_point=kill", "end.pre_report=error:EIO"};

	(void)state;
	for (size_t i = 0; i < ELEMENTS(bad); i++)
		if (ask(bad[i], NULL))
			fail_msg("'%s' was taken", bad[i]);
	assert_true(ask("submit.pre_commit=kill@3,end.pre_report=stop:9,mat.pre_commit=error:EIO@2,renew.post_commit=delay:5", NULL));
	assert_true(ask("", NULL));
}

static void it_happens_at_the_passage_that_was_asked_for_and_no_other(void **state)
{
	struct err e = {};

	(void)state;
	assert_true(ask("mat.pre_commit=error:ENOSPC@2,mat.pre_commit=error:EIO@4", NULL));
	assert_int_equal(failpoint(FP_MAT_PRE), 0);
	assert_int_equal(failpoint(FP_MAT_POST), 0);
	assert_int_equal(failpoint(FP_MAT_PRE), ENOSPC);
	assert_int_equal(failpoint(FP_MAT_PRE), 0);
	assert_false(failpoint_ok(FP_MAT_PRE, &e));
	assert_int_equal(e.kind, ERR_UNCERTAIN);
	assert_non_null(strstr(e.msg, "mat.pre_commit"));
	assert_true(failpoint_ok(FP_MAT_PRE, &e));
}

static void an_error_is_of_the_kind_a_library_would_give(void **state)
{
	struct err e = {};

	(void)state;
	assert_true(ask("mat.pre_commit=error:ENOSPC@1,mat.pre_commit=error:EAGAIN@2,mat.pre_commit=error:ECONNRESET@3", NULL));
	assert_false(failpoint_ok(FP_MAT_PRE, &e));
	assert_int_equal(e.kind, ERR_FULL);
	assert_false(failpoint_ok(FP_MAT_PRE, &e));
	assert_int_equal(e.kind, ERR_BUSY);
	assert_false(failpoint_ok(FP_MAT_PRE, &e));
	assert_int_equal(e.kind, ERR_UNREACHABLE);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* How a process ends that passes where 'text' asks for something; *stopped: whether it stood still. */
static int end_of(const char *text, bool *stopped)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(ask(text, NULL) && failpoint(FP_RENEW_PRE) == 0 ? 0 : 99);
	}
	*stopped = false;
	do {
		assert_int_equal(waitpid(pid, &status, WUNTRACED | WCONTINUED), pid);
		*stopped |= WIFSTOPPED(status);
	} while (WIFSTOPPED(status) || WIFCONTINUED(status));
	return status;
}

static void a_process_is_killed_leaves_waits_or_stands_still_for_a_while(void **state)
{
	int64_t began = now_ms();
	bool stopped;
	int status;

	(void)state;
	status = end_of("renew.pre_commit=kill", &stopped);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = end_of("renew.pre_commit=exit", &stopped);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_false(stopped);
	status = end_of("renew.pre_commit=stop:1", &stopped);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(stopped);
	assert_true(now_ms() - began >= 1000);
	began = now_ms();
	assert_int_equal(end_of("renew.pre_commit=delay:200", &stopped), 0);
	assert_false(stopped);
	assert_true(now_ms() - began >= 200);
}

static void a_fired_failpoint_leaves_a_mark_and_does_not_fire_in_the_next_process(void **state)
{
	char dir[] = "/tmp/failpoint.XXXXXX", line[128] = "", want[128];
	AUTO_TEXT mark = NULL;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_true(ask("mat.pre_commit=error:EIO,mat.post_commit=error:EIO", dir));
	assert_int_equal(failpoint(FP_MAT_PRE), EIO);
	mark = xprintf("%s/mat.pre_commit=error:EIO", dir);
	f = fopen(mark, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	snprintf(want, sizeof(want), "%d", (int)getpid());
	assert_string_equal(line, want);
	assert_true(ask("mat.pre_commit=error:EIO,mat.post_commit=error:EIO", dir));
	assert_int_equal(failpoint(FP_MAT_PRE), 0);
	unlink(mark);
	assert_int_equal(failpoint(FP_MAT_POST), EIO);
	free(mark);
	mark = xprintf("%s/mat.post_commit=error:EIO", dir);
	assert_int_equal(unlink(mark), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_failpoint_is_refused),
		cmocka_unit_test(it_happens_at_the_passage_that_was_asked_for_and_no_other),
		cmocka_unit_test(an_error_is_of_the_kind_a_library_would_give),
		cmocka_unit_test(a_process_is_killed_leaves_waits_or_stands_still_for_a_while),
		cmocka_unit_test(a_fired_failpoint_leaves_a_mark_and_does_not_fire_in_the_next_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
