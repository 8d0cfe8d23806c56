/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the new program reads the state, then executes it. */
#include "exec/spawner/reexec.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/spawner/reexec_state.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK_TIMEOUT_MS 5000
#define RESUME "--resume"

bool reexec_init(struct reexec *x, char *const *argv, struct err *e)
{
	static const char gone[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return err_errno(e, errno, "could not read the path of this program");
	path[n] = '\0';
	if ((size_t)n > strlen(gone) && strcmp(path + n - strlen(gone), gone) == 0)
		/* The file was replaced since this program was executed. */
		path[n - (ssize_t)strlen(gone)] = '\0';
	*x = (struct reexec){.path = xstrdup(path), .argv = argv};
	return true;
}

void reexec_done(struct reexec *x)
{
	free(x->path);
	x->path = NULL;
}

/*
 * Returns the exit status, or -1 if the process did not exit within the timeout or was killed by a
 * signal.
 */
static int exit_status_wait(pid_t pid)
{
	AUTO_FD pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	siginfo_t si = {};

	if (pidfd < 0 ||
		poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, CHECK_TIMEOUT_MS) != 1)
		kill(pid, SIGKILL); /* not reaped yet, so the pid is not reused */
	while (waitid(P_PID, (id_t)pid, &si, WEXITED) < 0 && errno == EINTR)
		;
	return si.si_code == CLD_EXITED ? si.si_status : -1;
}

/*
 * The arguments of this program without an earlier --resume, then 'option' with its value. The
 * caller frees the array.
 */
static char **argv_with_option(const struct reexec *x, char *option, char *value)
{
	char **argv;
	size_t n = 0, kept = 0;

	while (x->argv[n])
		n++;
	argv = xcalloc(n + 3, sizeof(*argv));
	for (size_t i = 0; i < n; i++) {
		if (strcmp(x->argv[i], RESUME) == 0 && x->argv[i + 1])
			i++;
		else
			argv[kept++] = x->argv[i];
	}
	argv[kept++] = option;
	argv[kept] = value;
	return argv;
}

/* The descriptor guarantees that the file that answers is the file that is executed later. */
int reexec_check(const struct reexec *x, struct err *e)
{
	AUTO_FD fd = open(x->path, O_PATH | O_CLOEXEC);
	AUTO_TEXT program = xprintf("/proc/self/fd/%d", fd);
	AUTO_TEXT version = xprintf("%d", REEXEC_STATE_VERSION);
	char **argv = NULL;
	pid_t pid;
	int r;

	if (fd < 0) {
		err_errno(e, errno, "could not open '%s'", x->path);
		return -1;
	}
	argv = argv_with_option(x, (char *)"--can-read-state", version);
	r = posix_spawn(&pid, program, NULL, NULL, argv, environ);
	free(argv);
	if (r) {
		err_errno(e, r, "could not run '%s'", x->path);
		return -1;
	}
	r = exit_status_wait(pid);
	if (r == 0)
		return STEAL_FD(fd);
	err_set(e, ERR_REFUSED, "'%s' does not read version %d of the state (exit status %d); to upgrade, stop the jobs and restart the spawner",
		x->path, REEXEC_STATE_VERSION, r);
	return -1;
}

bool reexec_exec(const struct reexec *x, int program, int state, const struct reexec_state_fds *fds,
	struct err *e)
{
	AUTO_TEXT number = xprintf("%d", state);
	char **argv = argv_with_option(x, (char *)RESUME, number);

	reexec_state_fds_inherit(fds, true);
	syscall(SYS_execveat, program, "", argv, environ, AT_EMPTY_PATH);
	err_errno(e, errno, "could not execute '%s'", x->path);
	reexec_state_fds_inherit(fds, false);
	free(argv);
	return false;
}
