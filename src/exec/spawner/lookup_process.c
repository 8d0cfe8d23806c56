/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the lookup process; reads its answer. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "core/start/start_plan.h"
#include "exec/spawner/lookup_process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int lookup_process_start(const struct lookup_request *l, pid_t *ret_pid, int *ret_fd)
{
	char *const argv[] = {(char *)"jobsched-spawner", (char *)(l->pam ? "--lookup-account" : "--lookup"),
		(char *)l->whom, NULL};
	char *const none[] = {NULL};
	posix_spawn_file_actions_t files;
	char program[OWN_PROGRAM_MAX];
	posix_spawnattr_t attr;
	sigset_t mask;
	int pipe[2], r;

	if (pipe2(pipe, O_CLOEXEC) < 0)
		return -errno;
	sigemptyset(&mask);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, pipe[1], 1);
	posix_spawn_file_actions_addclosefrom_np(&files, 3);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &mask);
	r = posix_spawn(ret_pid, io_own_program(program), &files, &attr, argv, none);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	close(pipe[1]);
	if (r) {
		close(pipe[0]);
		return -r;
	}
	*ret_fd = pipe[0];
	return 0;
}

static bool has_nul(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

bool lookup_process_answer_valid(const struct lookup_answer *a)
{
	const struct user *u = &a->user;

	return a->magic == LOOKUP_MAGIC && a->failure >= LOOKUP_FOUND && a->failure < START_FAILURE_MAX &&
	       has_nul(a->error, sizeof(a->error)) && has_nul(u->name, sizeof(u->name)) && has_nul(u->home, sizeof(u->home)) &&
	       has_nul(u->shell, sizeof(u->shell)) && u->groups_n <= USER_GROUPS_MAX &&
	       (a->failure != LOOKUP_FOUND || (u->name[0] && u->home[0] == '/'));
}

bool lookup_process_wait(const struct lookup_request *l, struct user *ret, struct err *e)
{
	struct lookup_answer *a = xcalloc(1, sizeof(*a));
	AUTO_TEXT owner = (char *)a;
	AUTO_FD fd = -1;
	size_t got = 0;
	ssize_t n = 1;
	pid_t pid;
	int r = lookup_process_start(l, &pid, &fd);

	(void)owner;
	if (r < 0)
		return err_errno(e, -r, "could not look up '%s'", l->whom);
	while (got < sizeof(*a) && n > 0 &&
	       poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)(LOOKUP_TIMEOUT / USEC_MSEC)) == 1) {
		n = read(fd, (char *)a + got, sizeof(*a) - got);
		got += n > 0 ? (size_t)n : 0;
	}
	kill(pid, SIGKILL); /* not reaped yet, so the pid is not reused */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (got < sizeof(*a) || !lookup_process_answer_valid(a))
		return err_set(e, ERR_BUSY, "the user database did not answer for '%s'", l->whom);
	if (a->failure != LOOKUP_FOUND)
		return err_set(e, ERR_NOT_FOUND, "%s", a->error);
	*ret = a->user;
	return true;
}
