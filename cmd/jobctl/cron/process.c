/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another program and waits for it. */
#include "jobctl/cron/process.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int process_run(const char *const *argv, struct buf *out, size_t max, struct err *e)
{
	posix_spawn_file_actions_t files;
	AUTO_FD from = -1;
	int pipe[2], status, r, read_error;
	pid_t pid;

	if (pipe2(pipe, O_CLOEXEC) < 0) {
		err_errno(e, errno, "could not make a pipe");
		return -1;
	}
	from = pipe[0];
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, pipe[1], 1);
	if (!e)
		posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	r = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	close(pipe[1]);
	if (r) {
		err_errno(e, r, "could not run '%s'", argv[0]);
		return -1;
	}
	read_error = io_read_all(from, out, max);
	auto_fd_close(&from);
	from = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (read_error < 0) {
		err_errno(e, -read_error, "could not read what '%s' writes", argv[0]);
		return -1;
	}
	if (!WIFEXITED(status)) {
		err_set(e, ERR_INTERNAL, "'%s' was killed", argv[0]);
		return -1;
	}
	return WEXITSTATUS(status);
}
