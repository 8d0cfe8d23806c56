/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a worker's process, and where it gets a PID namespace, the process that keeps it. */
#include "base/auto.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "exec/cgroup.h"
#include "exec/child_steps.h"
#include "exec/clone.h"
#include "exec/in_child.h"
#include "exec/procfs.h"
#include "exec/sandbox.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE (128 << 10)
#define GUARD_SIZE (64 << 10) /* of these, below: a multiple of any page size */
#define HOST_PATIENCE 40 /* times that of its guests: while one of them is in our memory the host must not go */
#define STALL_LOOK_MS 20 /* from the kill to where it can be seen */
#define LIKE_VFORK (CLONE_VM | CLONE_VFORK)

struct launcher {
	char *stack[2];          /* of the child, and of those it makes */
	struct child_word *word; /* shared, so that a child with its own memory can write it too */
};

/* ---- in the child ---- */

/* An owner can hold his program or directory back for as long as he likes. Exec takes the timer away. */
IN_CHILD static int set_patience(const struct launch *o)
{
	const usec_t patience = o->role == LAUNCH_HOST ? HOST_PATIENCE * o->plan->patience : o->plan->patience;
	struct sigevent end = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec at = {.it_value = {.tv_sec = patience / USEC_SEC, .tv_nsec = patience % USEC_SEC * 1000}};
	int timer;

	if (!patience)
		return 0;
	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &end, &timer) < 0 ||
		syscall(SYS_timer_settime, timer, 0, &at, NULL) < 0 ? errno : 0;
}

/* The memory is our own, and nobody listens but who reads the output. */
static void say_failure(const struct launch *o)
{
	dprintf(o->plan->out, "jobsched: could not run '%s' (%s): %s\n", o->plan->argv[0], child_stage_name(o->word),
		strerror(o->word->error));
}

IN_CHILD static int keeper_main(void *arg)
{
	const struct launch *o = arg;

	o->word->error = fences_keep(o->plan->fences, o->marks);
	o->word->stage = STAGE_KEEPER;
	syscall(SYS_exit_group, 127);
	return 127;
}

IN_CHILD static int child_main(void *arg);

/*
 * What we make are children of the spawner like ourselves. The first of them is the keeper: process 1, which hears
 * no signal that it does not want, and the worker, process 2, is one like any other.
 */
IN_CHILD static int make_guests(const struct launch *o)
{
	const int flags = LIKE_VFORK | CLONE_PARENT | SIGCHLD;
	struct launch guest = *o;
	pid_t pid;

	guest.role = LAUNCH_GUEST;
	o->word->stage = STAGE_KEEPER;
	if (unshare(CLONE_NEWPID) < 0)
		return errno;
	pid = clone(keeper_main, o->stack, flags, &guest);
	if (pid < 0)
		return errno;
	o->word->keeper = pid;
	if (o->word->error)
		return o->word->error;
	o->word->stage = STAGE_CLONE;
	pid = clone(child_main, o->stack, flags, &guest);
	if (pid < 0)
		return errno;
	o->word->worker = pid;
	return o->word->error;
}

IN_CHILD static int child_main(void *arg)
{
	const struct launch *o = arg;

	o->word->error = set_patience(o);
	if (!o->word->error && child_steps(o))
		o->word->error = make_guests(o);
	if (o->plan->aside)
		say_failure(o);
	syscall(SYS_exit_group, 127);
	return 127;
}

/* ---- the spawner ---- */

static char *stack_new(void)
{
	char *s = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	return s != MAP_FAILED && mprotect(s, GUARD_SIZE, PROT_NONE) == 0 ? s : NULL;
}

bool launcher_new(struct launcher **ret, struct err *e)
{
	struct launcher *l = xcalloc(1, sizeof(*l));

	l->stack[0] = stack_new();
	l->stack[1] = stack_new();
	l->word = mmap(NULL, sizeof(*l->word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!l->stack[0] || !l->stack[1] || l->word == MAP_FAILED) {
		launcher_free(l);
		return err_errno(e, ENOMEM, "could not prepare for launching");
	}
	*ret = l;
	return true;
}

void launcher_free(struct launcher *l)
{
	if (!l)
		return;
	for (int i = 0; i < 2; i++)
		if (l->stack[i])
			munmap(l->stack[i], STACK_SIZE);
	if (l->word != MAP_FAILED)
		munmap(l->word, sizeof(*l->word));
	free(l);
}

static int reap(pid_t pid)
{
	int status = 0;

	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* It is our child and not reaped, so the number is its own. It does not end before we have reaped the worker. */
static void keeper_end(pid_t keeper)
{
	if (keeper > 0)
		kill(keeper, SIGKILL);
	reap(keeper);
}

int child_reap(struct child *c)
{
	int status = reap(c->pid);

	close(c->pidfd);
	keeper_end(c->keeper);
	return status;
}

/* The variables by which a keeper is known as one of this run's. */
static void find_marks(char *const *envp, char *marks[LAUNCH_MARKS + 1])
{
	static const char *const names[LAUNCH_MARKS] = {PROCFS_SPAWNER "=", PROCFS_RUN "=", PROCFS_FENCE "="};
	int n = 0;

	for (; envp && *envp; envp++)
		for (int i = 0; i < LAUNCH_MARKS && n < LAUNCH_MARKS; i++)
			if (text_starts(*envp, names[i]))
				marks[n++] = *envp;
	marks[n] = NULL;
}

/* The host is gone; what it has made is ours. */
static int take_guests(struct child_word *word, pid_t host, struct child *ret)
{
	reap(host);
	if (!word->error && word->worker <= 0) { /* it was killed; what it had made ends, and is reaped when it comes up */
		if (word->keeper > 0)
			kill(word->keeper, SIGKILL);
		word->error = EINTR;
		return -word->error;
	}
	if (!word->error) {
		*ret = (struct child){.pid = word->worker, .keeper = word->keeper};
		ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
		if (ret->pidfd >= 0)
			return 0;
		*word = (struct child_word){.stage = STAGE_CLONE, .error = errno, .worker = word->worker, .keeper = word->keeper};
		kill(word->worker, SIGKILL);
	}
	reap(word->worker);
	keeper_end(word->keeper);
	return -word->error;
}

/* The child's number, or -errno. What it makes is born where it is. */
static pid_t give_birth(struct launcher *l, struct launch *o, int *pidfd)
{
	const int flags = (o->plan->aside ? 0 : LIKE_VFORK) | CLONE_PIDFD | (o->plan->beside ? CLONE_PARENT : 0) |
			  (o->plan->fences->namespaces & ~CLONE_NEWPID);
	pid_t pid = -ENOSYS;
	int error = o->plan->argv ? failpoint(FP_SPAWN_FORK) : 0;

	if (error)
		return -error;
	if (o->plan->cgroup && o->plan->born)
		pid = clone_into_cgroup(child_main, l->stack[0], STACK_SIZE, (uint64_t)flags, o, pidfd, o->plan->cgroup->dir);
	if (pid != -ENOSYS && pid != -EPERM)
		return pid;
	o->moves = o->plan->cgroup;
	pid = clone(child_main, l->stack[0] + STACK_SIZE, flags | SIGCHLD, o, pidfd);
	return pid < 0 ? -errno : pid;
}

bool child_can_aside(const struct child_plan *p)
{
	return !(p->fences->namespaces & CLONE_NEWPID);
}

bool child_stalled(const struct child *c, const struct child_plan *p, usec_t began)
{
	struct pollfd dead = {.fd = c->pidfd, .events = POLLIN};
	siginfo_t si = {};

	if (!p->patience || clock_boot(&clock_system) - began < p->patience)
		return false;
	if (poll(&dead, 1, STALL_LOOK_MS) != 1 || waitid(P_PIDFD, (id_t)c->pidfd, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		return false;
	return si.si_code == CLD_KILLED && si.si_status == SIGKILL;
}

int child_make(struct launcher *l, const struct child_plan *p, struct child_made *ret, int *ret_pidfd)
{
	struct launch o = {.plan = p, .word = l->word, .stack = l->stack[1] + STACK_SIZE,
		.role = p->fences->namespaces & CLONE_NEWPID ? LAUNCH_HOST : LAUNCH_ALONE};
	struct child_word apart = {.stage = STAGE_CLONE}; /* ours stays as it is */

	*ret = (struct child_made){.host = o.role == LAUNCH_HOST};
	if (p->aside)
		o.word = &apart;
	find_marks(ret->host ? p->envp : NULL, o.marks);
	*l->word = (struct child_word){.stage = STAGE_CLONE};
	ret->pid = give_birth(l, &o, ret_pidfd);
	ret->word = ret->pid < 0 ? (struct child_word){.stage = STAGE_CLONE, .error = -ret->pid} : *l->word;
	return ret->pid < 0 ? ret->pid : 0;
}

static int take(struct child_made *m, int pidfd, struct child *ret)
{
	if (m->host) {
		close(pidfd);
		return take_guests(&m->word, m->pid, ret);
	}
	if (m->word.error) {
		reap(m->pid);
		close(pidfd);
		return -m->word.error;
	}
	*ret = (struct child){.pid = m->pid, .pidfd = pidfd};
	return 0;
}

static bool our_child(pid_t pid)
{
	siginfo_t si;

	return pid == 0 || (pid > 0 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0);
}

int child_take(struct child_made *m, struct child *ret)
{
	int pidfd;

	if (m->pid <= 0 || !our_child(m->pid) || !our_child(m->word.worker) || !our_child(m->word.keeper))
		return -ECHILD;
	pidfd = (int)syscall(SYS_pidfd_open, m->pid, 0);
	if (pidfd < 0) {
		int error = errno;

		kill(m->pid, SIGKILL);
		reap(m->pid);
		return -error;
	}
	return take(m, pidfd, ret);
}

int child_launch(struct launcher *l, const struct child_plan *p, struct child *ret, struct child_word *ret_word)
{
	struct child_made m;
	int pidfd = -1, r = child_make(l, p, &m, &pidfd);

	if (r == 0)
		r = take(&m, pidfd, ret);
	*ret_word = m.word;
	return r;
}
