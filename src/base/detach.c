/* SPDX-License-Identifier: Apache-2.0 */
/* Forks the background process and reports its start through a pipe. */
#include "base/detach.h"
#include "base/auto.h"
#include "base/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int detach_start(int log)
{
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned char status = EXIT_FAILURE;
	int pipe[2];
	pid_t pid;

	/* of the daemon that starts this program: READY=1 is sent by the daemon only */
	unsetenv("NOTIFY_SOCKET");
	if (null < 0 || pipe2(pipe, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return -errno;
	if (pid > 0) {
		close(pipe[1]);
		_exit(read(pipe[0], &status, 1) == 1 ? status : EXIT_FAILURE);
	}
	close(pipe[0]);
	setsid();
	dup2(null, 0);
	dup2(null, 1);
	dup2(log >= 0 ? log : null, 2);
	return pipe[1];
}

void detach_report(int *fd, int status)
{
	unsigned char byte = (unsigned char)status;

	if (*fd >= 0)
		(void)io_write_all(*fd, &byte, 1);
	auto_fd_close(fd);
	*fd = -1;
}
