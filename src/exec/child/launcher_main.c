/* SPDX-License-Identifier: Apache-2.0 */
/* Main function of a launcher, which is blocked by slow file systems instead of the spawner. */
/*
 * Workers are created like with vfork(), which is fast, and share the memory of the launcher until
 * exec(). So a launcher has one start at a time in its memory, no warrant key and no secrets of
 * other runs. CLONE_PARENT makes the workers children of the spawner.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "exec/child/launch.h"
#include "exec/child/launch_request.h"
#include <errno.h>
#include <fcntl.h>
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
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
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

/* Workers inherit these from the launcher, because that costs less than sending or opening them for each worker. */
struct inherited {
	bool oom_score_set;
	int null; /* standard input of a command without input */
};

static void request_launch(struct launch_stacks *stacks, struct launch_arena *a,
	const struct sandbox_set *all, const struct launch_fds *fds, const struct inherited *own)
{
	AUTO_DONE(launch_request) d = {};

	if (launch_request_decode(&d, a->request, a->len, all, fds)) {
		d.plan.oom_score_set = own->oom_score_set;
		if (d.plan.in < 0)
			d.plan.in = own->null;
		launch_processes(stacks, &d.plan, &a->report);
	} else {
		a->report = (struct child_report){.stage = -1, .error = EPROTO};
	}
}

/*
 * Inherited by workers: before exec() their owner can stop and kill them, but other signals have no
 * effect.
 */
static void signals_reset(void)
{
	static const char preset[64]; /* the kernel's struct sigaction, all zero: SIG_DFL */
	sigset_t all;

	/*
	 * posix_spawn() leaves two signals ignored that sigaction() of the C library cannot change
	 */
	for (int s = 1; s < NSIG; s++)
		syscall(SYS_rt_sigaction, s, preset, NULL, (NSIG - 1) / 8);
	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

int launcher_main(void)
{
	struct launch_arena *arena = mmap(
		NULL, LAUNCH_ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, LAUNCHER_ARENA, 0);
	struct launch_stacks *stacks = NULL;
	struct sandbox_set all;
	struct launch_fds fds;
	struct err e = {};
	struct inherited own;

	signals_reset();
	prctl(PR_SET_NAME, "jobsched-launch");
	/* without root, a non-dumpable process could not use its /proc/self */
	if (arena == MAP_FAILED || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		close_range(LAUNCHER_SOCKET, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ||
		(geteuid() == 0 && prctl(PR_SET_DUMPABLE, 0) < 0))
		return 1;
	(void)madvise(arena, LAUNCH_ARENA_SIZE, MADV_DONTDUMP);
	if (!failpoints_open(&e) || !launch_request_settings_read(&all, LAUNCHER_SETTINGS) ||
		!launch_stacks_new(&stacks, &e))
		return 1;
	close(LAUNCHER_ARENA);
	close(LAUNCHER_SETTINGS);
	own = (struct inherited){
		.oom_score_set = child_oom_score_set(), /* each worker would need 11 us */
		.null = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	if (own.null < 0)
		return 1;
	while (request_receive(&fds)) {
		request_launch(stacks, arena, &all, &fds, &own);
		fds_close(&fds);
		if (send(LAUNCHER_SOCKET, "", 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}
