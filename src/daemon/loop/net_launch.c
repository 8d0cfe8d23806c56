/* SPDX-License-Identifier: Apache-2.0 */
/* Starts jobsched-net for the daemon of a user. */
#include "base/err.h"
#include "base/text.h"
#include "daemon/loop/net_client.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SERVED 69 /* another process holds the lock */

static int net_spawn(pid_t *pid, const char *program, char *const argv[])
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, 0, 1);
	posix_spawn_file_actions_addclosefrom_np(&files, 3);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	r = posix_spawn(pid, program, &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return r;
}

bool net_launch(const char *program, const char *runtime_dir, const char *state_dir, struct err *e)
{
	char *const argv[] = {(char *)"jobsched-net", (char *)"--background", (char *)"--runtime-dir", (char *)runtime_dir,
		(char *)"--state-dir", (char *)state_dir, NULL};
	int status = 0;
	pid_t pid;
	/* The process forks once more and ends with the status of the start when its child listens. */
	int r = net_spawn(&pid, program, argv);

	if (r)
		return err_errno(e, r, "could not start '%s'", program);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_errno(e, errno, "could not wait for '%s'", program);
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_SERVED))
		return true;
	return err_set(e, ERR_INTERNAL, "'%s' did not start, see '%s/net.log'", program, runtime_dir);
}
