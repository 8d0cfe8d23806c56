/* SPDX-License-Identifier: Apache-2.0 */
/* The command of an at job: runs /bin/sh on its standard input and mails the output to the owner. */
/*
 * usage: jobsched-at-run output|always|never USER
 * It runs with the rights of the owner. The output is also written to standard output, where the
 * scheduler keeps it.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENDMAIL "/usr/sbin/sendmail"
#define MAIL_MAX (10 * 1024 * 1024) /* bytes of output in a mail */
#define NO_ENVIRONMENT ((char *[]){NULL})

/*
 * The script sets the whole environment. The variables of the scheduler are not passed on, because
 * the spawner kills processes that have them after the run.
 */
static void exec_shell(int out)
{
	if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		_exit(EXIT_FAILURE);
	signal(SIGPIPE, SIG_DFL);
	execle("/bin/sh", "sh", (char *)NULL, NO_ENVIRONMENT);
	_exit(127);
}

/* Passes one block of output on and keeps it. False: the end of the output, or nothing more now. */
static bool copy_block(int from, struct buf *kept, bool *ret_end)
{
	char block[16384];
	ssize_t n = read(from, block, sizeof(block));

	*ret_end = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	(void)io_write_all(STDOUT_FILENO, block, (size_t)n);
	if (kept->len < MAIL_MAX)
		buf_add(kept, block, (size_t)n);
	return true;
}

/*
 * Copies until the shell has ended and what it wrote is copied. Processes that the commands left in
 * the background may still have the pipe. True: all of them have closed it.
 */
static bool copy_output(int from, int shell, struct buf *kept)
{
	struct pollfd p[] = {{.fd = from, .events = POLLIN}, {.fd = shell, .events = POLLIN}};
	bool end = false;

	while (!end && !(p[1].revents & POLLIN)) {
		if (poll(p, ELEMENTS(p), -1) < 0 && errno != EINTR)
			return true;
		while (copy_block(from, kept, &end))
			;
	}
	while (!end && copy_block(from, kept, &end))
		;
	return end;
}

/* A process that reads the rest, so that those in the background do not get SIGPIPE. */
static void discard_later_output(int from)
{
	int none = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (none < 0 || fork() != 0)
		return;
	(void)fcntl(from, F_SETFL, 0); /* blocking */
	if (setsid() < 0 || dup2(from, STDIN_FILENO) < 0 || dup2(none, STDOUT_FILENO) < 0 ||
		dup2(none, STDERR_FILENO) < 0)
		_exit(EXIT_FAILURE);
	execle("/bin/cat", "cat", (char *)NULL, NO_ENVIRONMENT);
	_exit(127);
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void put_mail(const char *user, const struct buf *output, struct buf *mail)
{
	const char *job = getenv("JOBSCHED_JOB");

	buf_printf(mail, "Subject: Output from your job %8s\nTo: %s\n\n", job ? job : "", user);
	buf_add(mail, output->data, output->len);
	if (output->len >= MAIL_MAX)
		buf_printf(mail, "\n[the rest of the output was not mailed; see 'jobctl log %s']\n",
			job ? job : "JOB");
}

static void send_mail(const char *user, const struct buf *output)
{
	AUTO_DONE(buf) mail = {};
	AUTO_FD fd = -1;
	pid_t pid;

	if (access(SENDMAIL, X_OK) < 0) {
		fprintf(stderr, "jobsched-at-run: the output is not mailed: no " SENDMAIL "\n");
		return;
	}
	put_mail(user, output, &mail);
	fd = io_memfd_sealed("mail", mail.data, mail.len);
	pid = fd < 0 ? -1 : fork();
	if (pid == 0) {
		if (lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0)
			_exit(EXIT_FAILURE);
		execl(SENDMAIL, "sendmail", "-i", user, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait_for(pid) != 0)
		fprintf(stderr, "jobsched-at-run: the output could not be mailed to %s\n", user);
}

/* The commands of the job decide how it ended. */
static int end_like(int status)
{
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

/* Starts the shell. The pipe is read without blocking. False: a message was printed. */
static bool start_shell(pid_t *ret_pid, int *ret_shell, int *ret_output)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || io_set_nonblock(ends[0]) < 0 || (*ret_pid = fork()) < 0) {
		perror("jobsched-at-run");
		return false;
	}
	if (*ret_pid == 0)
		exec_shell(ends[1]);
	close(ends[1]);
	*ret_output = ends[0];
	*ret_shell = (int)syscall(SYS_pidfd_open, *ret_pid, 0);
	if (*ret_shell < 0)
		perror("jobsched-at-run: pidfd_open");
	return *ret_shell >= 0;
}

int main(int argc, char **argv)
{
	AUTO_DONE(buf) output = {};
	AUTO_FD shell = -1;
	AUTO_FD from = -1;
	pid_t pid;
	int status;
	bool end;

	if (argc != 3 || argv[2][0] == '-') {
		fputs("usage: jobsched-at-run output|always|never USER\n", stderr);
		return EXIT_FAILURE;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!start_shell(&pid, &shell, &from))
		return EXIT_FAILURE;
	end = copy_output(from, shell, &output);
	status = wait_for(pid);
	if (strcmp(argv[1], "always") == 0 || (strcmp(argv[1], "output") == 0 && output.len > 0))
		send_mail(argv[2], &output);
	if (!end)
		discard_later_output(from);
	return end_like(status);
}
