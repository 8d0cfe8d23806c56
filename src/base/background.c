/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program with --background; interprets the exit status of its first process. */
#include "base/background.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_OTHER 69 /* of both programs: another process holds the lock */

int background_start(const char *program, char *const argv[], pid_t *ret)
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
	r = posix_spawn(ret, program, &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

enum background_result background_result(int status)
{
	if (!WIFEXITED(status))
		return BACKGROUND_FAILED;
	return WEXITSTATUS(status) == 0 ? BACKGROUND_LISTENS : WEXITSTATUS(status) == EXIT_OTHER ? BACKGROUND_OTHER : BACKGROUND_FAILED;
}
