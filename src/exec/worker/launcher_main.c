/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher: a process of the spawner's program that makes workers, and may be blocked by their owners in its place. */
/*
 * Workers are made like vfork, which is fast, and share this process's memory until they are the command: it holds one start
 * at a time, no warrant key and no other run's secrets. CLONE_PARENT makes them children of the spawner.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "exec/worker/launch_request.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fds_close(struct launch_fds *f)
{
	while (f->n > 0)
		close(f->v[--f->n]);
}

/* False: the spawner has closed its end. */
static bool request_receive(struct launch_fds *ret)
{
	char byte, control[CMSG_SPACE(sizeof(int) * LAUNCH_FDS_MAX)];
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t n;

	ret->n = 0;
	do
		n = recvmsg(LAUNCHER_SOCKET, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			ret->n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(ret->v, CMSG_DATA(c), ret->n * sizeof(int));
		}
	return true;
}

static void launch(struct launch_stacks *stacks, struct launch_arena *a, const struct sandboxes *all, const struct launch_fds *fds)
{
	AUTO_DONE(launch_request) d = {};

	if (launch_request_decode(&d, a->request, a->len, all, fds))
		launch_processes(stacks, &d.plan, &a->word);
	else
		a->word = (struct child_report){.stage = -1, .error = EPROTO};
}

/* Children inherit this: before a worker is its command, its owner can stop and kill it but not end it by another signal. */
static void signals_reset(void)
{
	static const char preset[64]; /* the kernel's struct sigaction, all zero: SIG_DFL */
	sigset_t all;

	for (int s = 1; s < NSIG; s++) /* posix_spawn() leaves two of them ignored that the C library does not let us change */
		syscall(SYS_rt_sigaction, s, preset, NULL, (NSIG - 1) / 8);
	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

int launcher_main(void)
{
	struct launch_arena *arena = mmap(NULL, LAUNCH_ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, LAUNCHER_ARENA, 0);
	struct launch_stacks *stacks = NULL;
	struct sandboxes all;
	struct launch_fds fds;
	struct err e = {};

	signals_reset();
	prctl(PR_SET_NAME, "jobsched-launch");
	if (arena == MAP_FAILED || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || close_range(LAUNCHER_SOCKET, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ||
		(geteuid() == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)) /* others need their /proc/self to be their own */
		return 1;
	(void)madvise(arena, LAUNCH_ARENA_SIZE, MADV_DONTDUMP);
	if (!failpoints_open(&e) || !launch_request_settings_read(&all, LAUNCHER_SETTINGS) || !launch_stacks_new(&stacks, &e))
		return 1;
	close(LAUNCHER_ARENA);
	close(LAUNCHER_SETTINGS);
	while (request_receive(&fds)) {
		launch(stacks, arena, &all, &fds);
		fds_close(&fds);
		if (send(LAUNCHER_SOCKET, "", 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}
