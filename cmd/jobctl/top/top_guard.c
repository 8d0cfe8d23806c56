/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the screen process; passes signals on; restores the terminal after a crash. */
#include "jobctl/top/top_guard.h"

#include "base/err.h"
#include "base/io.h"
#include "jobctl/ctl.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Leaves the alternate screen, resets colours and the scroll region, shows the cursor. */
static const char reset[] = "\033[r\033[0m\033[?1l\033>\033[?25h\033[?1049l\r\n";

static void restore_terminal(const struct termios *saved)
{
	(void)io_write_all(STDOUT_FILENO, reset, strlen(reset));
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, saved);
}

/*
 * The child has stopped itself after it restored the terminal. This process stops too, so that the
 * shell continues; both are continued by the shell.
 */
static void stop_too(pid_t child)
{
	raise(SIGSTOP);
	kill(child, SIGCONT);
}

static int wait_child(pid_t child, sigset_t *set, const struct termios *saved)
{
	for (;;) {
		int sig, status;

		if (sigwait(set, &sig) != 0)
			continue;
		if (sig != SIGCHLD) {
			kill(child, sig);
			continue;
		}
		while (waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
			if (WIFSTOPPED(status)) {
				stop_too(child);
				continue;
			}
			if (WIFEXITED(status))
				return WEXITSTATUS(status);
			restore_terminal(saved);
			ctl_say("jobctl: top was ended by signal %d (%s)", WTERMSIG(status),
				strsignal(WTERMSIG(status)));
			return 128 + WTERMSIG(status);
		}
	}
}

int top_guard_run(int (*fn)(void *arg), void *arg, struct err *e)
{
	static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCHLD};
	struct termios saved;
	sigset_t set, before;
	pid_t child;
	int code;

	if (tcgetattr(STDIN_FILENO, &saved) < 0) {
		err_errno(e, errno, "cannot read the settings of the terminal");
		return -1;
	}
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &before);
	fflush(NULL);
	child = fork();
	if (child < 0) {
		err_errno(e, errno, "cannot start a process");
		return -1;
	}
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		prctl(PR_SET_PDEATHSIG, SIGHUP);
		code = fn(arg);
		fflush(NULL);
		_exit(code);
	}
	code = wait_child(child, &set, &saved);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}
