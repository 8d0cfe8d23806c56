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
#define PIDNS_HELPER_TIMEOUTS 40 /* times that of its guests: while one of them is in our memory the host must not go */
#define VFORK_FLAGS (CLONE_VM | CLONE_VFORK)

struct launch_stacks {
	char *stack[2]; /* of the child, and of those it makes */
};

/* ---- in the child ---- */

/* A file system of the owner can block chdir() or exec(). A timer kills the child; exec() removes the timer. */
IN_CHILD static int setup_timer_start(const struct launch *o)
{
	const usec_t patience = o->role == LAUNCH_PIDNS_HELPER ? PIDNS_HELPER_TIMEOUTS * o->plan->patience : o->plan->patience;
	struct sigevent end = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec at = {.it_value = {.tv_sec = patience / USEC_SEC, .tv_nsec = patience % USEC_SEC * 1000}};
	int timer;

	if (!patience)
		return 0;
	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &end, &timer) < 0 ||
		syscall(SYS_timer_settime, timer, 0, &at, NULL) < 0 ? errno : 0;
}

IN_CHILD static int pidns_init_entry(void *arg)
{
	const struct launch *o = arg;

	o->word->error = sandbox_exec_init(o->plan->fences, o->marks);
	o->word->stage = STAGE_PIDNS_INIT;
	syscall(SYS_exit_group, 127);
	return 127;
}

IN_CHILD static int launch_entry(void *arg);

/*
 * What we make are children of the spawner like ourselves. The first of them is the keeper: process 1, which hears
 * no signal that it does not want, and the worker, process 2, is one like any other.
 */
IN_CHILD static int pidns_fill(const struct launch *o)
{
	const int flags = VFORK_FLAGS | CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD;
	struct launch guest = *o;

	guest.role = LAUNCH_PIDNS_WORKER;
	o->word->stage = STAGE_PIDNS_INIT;
	if (unshare(CLONE_NEWPID) < 0)
		return errno;
	if (clone(pidns_init_entry, o->stack, flags, &guest, &o->word->keeper) < 0)
		return errno;
	if (o->word->error)
		return o->word->error;
	o->word->stage = STAGE_CLONE;
	if (clone(launch_entry, o->stack, flags, &guest, &o->word->worker) < 0)
		return errno;
	return o->word->error;
}

IN_CHILD static int launch_entry(void *arg)
{
	const struct launch *o = arg;

	o->word->error = setup_timer_start(o);
	if (!o->word->error && child_steps(o))
		o->word->error = pidns_fill(o);
	syscall(SYS_exit_group, 127);
	return 127;
}

/* ---- the process that makes it ---- */

static char *stack_new(void)
{
	char *s = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	return s != MAP_FAILED && mprotect(s, GUARD_SIZE, PROT_NONE) == 0 ? s : NULL;
}

bool launch_stacks_new(struct launch_stacks **ret, struct err *e)
{
	struct launch_stacks *s = xcalloc(1, sizeof(*s));

	s->stack[0] = stack_new();
	s->stack[1] = stack_new();
	if (!s->stack[0] || !s->stack[1]) {
		launch_stacks_free(s);
		return err_errno(e, ENOMEM, "could not allocate the stacks of children");
	}
	*ret = s;
	return true;
}

void launch_stacks_free(struct launch_stacks *s)
{
	if (!s)
		return;
	for (int i = 0; i < 2; i++)
		if (s->stack[i])
			munmap(s->stack[i], STACK_SIZE);
	free(s);
}

/* The variables by which a keeper is known as one of this run's. */
static void run_variables_find(char *const *envp, char *marks[LAUNCH_MARKS + 1])
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
static pid_t first_process_clone(struct launch_stacks *s, struct launch *o)
{
	const int flags = VFORK_FLAGS | CLONE_PARENT_SETTID | (o->plan->beside ? CLONE_PARENT : 0) |
			  (o->plan->fences->namespaces & ~CLONE_NEWPID);
	pid_t pid = -ENOSYS;

	if (o->plan->cgroup && o->plan->born)
		pid = clone_into_cgroup(launch_entry, s->stack[0], STACK_SIZE, (uint64_t)flags, o, &o->word->pid, o->plan->cgroup->dir);
	if (pid != -ENOSYS && pid != -EPERM)
		return pid;
	o->moves = o->plan->cgroup;
	pid = clone(launch_entry, s->stack[0] + STACK_SIZE, flags | SIGCHLD, o, &o->word->pid);
	return pid < 0 ? -errno : pid;
}

int launch_processes(struct launch_stacks *s, const struct child_plan *p, struct child_report *word)
{
	struct launch o = {.plan = p, .word = word, .stack = s->stack[1] + STACK_SIZE,
		.role = p->fences->namespaces & CLONE_NEWPID ? LAUNCH_PIDNS_HELPER : LAUNCH_ALONE};
	pid_t pid;

	*word = (struct child_report){.stage = STAGE_CLONE, .host = o.role == LAUNCH_PIDNS_HELPER};
	run_variables_find(word->host ? p->envp : NULL, o.marks);
	pid = first_process_clone(s, &o);
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
static void pidns_init_kill(pid_t keeper)
{
	if (keeper > 0)
		kill(keeper, SIGKILL);
	reap(keeper);
}

int launch_child_reap(struct child *c)
{
	int status = reap(c->pid);

	close(c->pidfd);
	pidns_init_kill(c->keeper);
	return status;
}

int launch_child(struct launch_stacks *s, const struct child_plan *p, struct child *ret, struct child_report *ret_word)
{
	struct child_report *w = ret_word;
	int r = launch_processes(s, p, w), pidfd = -1;
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
	pidns_init_kill(w->keeper);
	return r;
}
