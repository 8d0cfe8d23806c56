/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a worker's process, and where it gets a PID namespace, the process that keeps it. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/worker/cgroup.h"
#include "exec/child/child_steps.h"
#include "exec/child/clone.h"
#include "exec/child/in_child.h"
#include "exec/worker/procfs.h"
#include "exec/child/sandbox.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE (128 << 10)
#define GUARD_SIZE (64 << 10) /* of these, below: a multiple of any page size */
#define HOST_PATIENCE 40 /* times that of its guests: while one of them is in our memory the host must not go */
#define LIKE_VFORK (CLONE_VM | CLONE_VFORK)

struct child_stacks {
	char *stack[2]; /* of the child, and of those it makes */
};

/* ---- in the child ---- */

/* A file system of the owner can block chdir() or exec(). A timer kills the child; exec() removes the timer. */
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
	const int flags = LIKE_VFORK | CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD;
	struct launch guest = *o;

	guest.role = LAUNCH_GUEST;
	o->word->stage = STAGE_KEEPER;
	if (unshare(CLONE_NEWPID) < 0)
		return errno;
	if (clone(keeper_main, o->stack, flags, &guest, &o->word->keeper) < 0)
		return errno;
	if (o->word->error)
		return o->word->error;
	o->word->stage = STAGE_CLONE;
	if (clone(child_main, o->stack, flags, &guest, &o->word->worker) < 0)
		return errno;
	return o->word->error;
}

IN_CHILD static int child_main(void *arg)
{
	const struct launch *o = arg;

	o->word->error = set_patience(o);
	if (!o->word->error && child_steps(o))
		o->word->error = make_guests(o);
	syscall(SYS_exit_group, 127);
	return 127;
}

/* ---- the process that makes it ---- */

static char *stack_new(void)
{
	char *s = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	return s != MAP_FAILED && mprotect(s, GUARD_SIZE, PROT_NONE) == 0 ? s : NULL;
}

bool child_stacks_new(struct child_stacks **ret, struct err *e)
{
	struct child_stacks *s = xcalloc(1, sizeof(*s));

	s->stack[0] = stack_new();
	s->stack[1] = stack_new();
	if (!s->stack[0] || !s->stack[1]) {
		child_stacks_free(s);
		return err_errno(e, ENOMEM, "could not allocate the stacks of children");
	}
	*ret = s;
	return true;
}

void child_stacks_free(struct child_stacks *s)
{
	if (!s)
		return;
	for (int i = 0; i < 2; i++)
		if (s->stack[i])
			munmap(s->stack[i], STACK_SIZE);
	free(s);
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

/* The child's number, or -errno. What it makes is born where it is. */
static pid_t give_birth(struct child_stacks *s, struct launch *o)
{
	const int flags = LIKE_VFORK | CLONE_PARENT_SETTID | (o->plan->beside ? CLONE_PARENT : 0) |
			  (o->plan->fences->namespaces & ~CLONE_NEWPID);
	pid_t pid = -ENOSYS;

	if (o->plan->cgroup && o->plan->born)
		pid = clone_into_cgroup(child_main, s->stack[0], STACK_SIZE, (uint64_t)flags, o, &o->word->pid, o->plan->cgroup->dir);
	if (pid != -ENOSYS && pid != -EPERM)
		return pid;
	o->moves = o->plan->cgroup;
	pid = clone(child_main, s->stack[0] + STACK_SIZE, flags | SIGCHLD, o, &o->word->pid);
	return pid < 0 ? -errno : pid;
}

int child_make(struct child_stacks *s, const struct child_plan *p, struct child_word *word)
{
	struct launch o = {.plan = p, .word = word, .stack = s->stack[1] + STACK_SIZE,
		.role = p->fences->namespaces & CLONE_NEWPID ? LAUNCH_HOST : LAUNCH_ALONE};
	pid_t pid;

	*word = (struct child_word){.stage = STAGE_CLONE, .host = o.role == LAUNCH_HOST};
	find_marks(word->host ? p->envp : NULL, o.marks);
	pid = give_birth(s, &o);
	if (pid < 0) {
		word->pid = 0;
		word->error = -pid;
	} else if (word->host && !word->error && word->worker <= 0) {
		word->error = EINTR; /* the host was killed */
	}
	return -word->error;
}

/* ---- a child of our own ---- */

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

int child_launch(struct child_stacks *s, const struct child_plan *p, struct child *ret, struct child_word *ret_word)
{
	struct child_word *w = ret_word;
	int r = child_make(s, p, w), pidfd = -1;
	const pid_t worker = w->host ? w->worker : w->pid;

	if (w->host)
		reap(w->pid);
	if (r == 0 && (pidfd = (int)syscall(SYS_pidfd_open, worker, 0)) < 0) {
		w->stage = STAGE_CLONE;
		w->error = errno;
		r = -w->error;
	}
	if (r == 0) {
		*ret = (struct child){.pid = worker, .pidfd = pidfd, .keeper = w->keeper};
		return 0;
	}
	if (worker > 0)
		kill(worker, SIGKILL);
	reap(worker);
	keeper_end(w->keeper);
	return r;
}
