/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the processes of a worker, with a PID namespace if the profile has one. */
#include "exec/child/launch.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "exec/child/child_steps.h"
#include "exec/child/clone.h"
#include "exec/child/in_child.h"
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
#define GUARD_SIZE (64 << 10) /* inaccessible lower part of a stack; a multiple of any page size */
#define PIDNS_HELPER_TIMEOUTS 40 /* times that of its children, which use its memory until exec() */
#define VFORK_FLAGS (CLONE_VM | CLONE_VFORK)

struct launch_stacks {
	char *stack[2]; /* of the child; of the processes that a helper creates */
};

/* ---- in the child ---- */

/*
 * A user-controlled file system can block chdir() or exec(). A timer kills the child; exec()
 * removes the timer.
 */
static IN_CHILD int setup_timer_start(const struct launch *o)
{
	const usec_t timeout = o->plan->setup_timeout *
		(o->role == LAUNCH_PIDNS_HELPER ? PIDNS_HELPER_TIMEOUTS : 1);
	struct sigevent end = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec at = {
		.it_value = {.tv_sec = timeout / USEC_SEC, .tv_nsec = timeout % USEC_SEC * 1000}};
	int timer;

	if (!timeout)
		return 0;
	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &end, &timer) < 0 ||
		syscall(SYS_timer_settime, timer, 0, &at, NULL) < 0 ? errno : 0;
}

static IN_CHILD int pidns_init_entry(void *arg)
{
	const struct launch *o = arg;

	o->report->error = sandbox_exec_init(o->plan->sandbox, o->init_env);
	o->report->stage = STAGE_PIDNS_INIT;
	syscall(SYS_exit_group, 127);
	return 127;
}

static IN_CHILD int launch_entry(void *arg);

/*
 * Both processes become children of the spawner (CLONE_PARENT). jobsched-init is process 1 of the
 * namespace, to which the kernel delivers only signals that it handles. So the worker is process 2,
 * where signals work as usual.
 */
static IN_CHILD int pidns_fill(const struct launch *o)
{
	const int flags = VFORK_FLAGS | CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD;
	struct launch worker = *o;

	worker.role = LAUNCH_PIDNS_WORKER;
	o->report->stage = STAGE_PIDNS_INIT;
	if (unshare(CLONE_NEWPID) < 0)
		return errno;
	if (clone(pidns_init_entry, o->stack, flags, &worker, &o->report->pidns_init) < 0)
		return errno;
	if (o->report->error)
		return o->report->error;
	o->report->stage = STAGE_CLONE;
	if (clone(launch_entry, o->stack, flags, &worker, &o->report->worker) < 0)
		return errno;
	return o->report->error;
}

static IN_CHILD int launch_entry(void *arg)
{
	const struct launch *o = arg;

	o->report->error = setup_timer_start(o);
	if (!o->report->error && child_steps(o))
		o->report->error = pidns_fill(o);
	syscall(SYS_exit_group, 127);
	return 127;
}

/* ---- in the creating process ---- */

static char *stack_new(void)
{
	char *s = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

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

/* The variables that identify the run, for the environment of jobsched-init. */
static void run_variables_find(char *const *envp, char *ret[LAUNCH_INIT_VARS + 1])
{
	static const char *const names[LAUNCH_INIT_VARS] = {
		CHILD_VAR_SPAWNER "=", CHILD_VAR_RUN "=", CHILD_VAR_FENCE "="};
	int n = 0;

	for (; envp && *envp; envp++)
		for (int i = 0; i < LAUNCH_INIT_VARS && n < LAUNCH_INIT_VARS; i++)
			if (text_starts(*envp, names[i]))
				ret[n++] = *envp;
	ret[n] = NULL;
}

/* The pid, or -errno. The processes that a helper creates start in its control group. */
static pid_t first_process_clone(struct launch_stacks *s, struct launch *o)
{
	const int flags = VFORK_FLAGS | CLONE_PARENT_SETTID |
		(o->plan->clone_parent ? CLONE_PARENT : 0) |
		(o->plan->sandbox->namespaces & ~CLONE_NEWPID);
	pid_t pid = -ENOSYS;

	if (o->plan->cgroup && o->plan->cgroup_clone)
		pid = clone_into_cgroup(launch_entry, s->stack[0], STACK_SIZE, (uint64_t)flags, o,
			&o->report->pid, *o->plan->cgroup);
	if (pid != -ENOSYS && pid != -EPERM)
		return pid;
	o->moves = o->plan->cgroup;
	pid = clone(launch_entry, s->stack[0] + STACK_SIZE, flags | SIGCHLD, o, &o->report->pid);
	return pid < 0 ? -errno : pid;
}

int launch_processes(
	struct launch_stacks *s, const struct child_plan *p, struct child_report *report)
{
	struct launch o = {.plan = p, .report = report, .stack = s->stack[1] + STACK_SIZE,
		.role = p->sandbox->namespaces & CLONE_NEWPID ? LAUNCH_PIDNS_HELPER : LAUNCH_ALONE};
	pid_t pid;

	*report = (struct child_report){
		.stage = STAGE_CLONE, .pidns_helper = o.role == LAUNCH_PIDNS_HELPER};
	run_variables_find(report->pidns_helper ? p->envp : NULL, o.init_env);
	pid = first_process_clone(s, &o);
	if (pid < 0) {
		report->pid = 0;
		report->error = -pid;
	} else if (report->pidns_helper && !report->error && report->worker <= 0) {
		report->error = EINTR; /* the helper was killed */
	}
	return -report->error;
}

/* ---- a child of the caller ---- */

static int process_reap(pid_t pid)
{
	int status = 0;

	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/*
 * The process is an unreaped child, so its pid is not reused. It cannot end before the worker is
 * reaped.
 */
static void pidns_init_kill(pid_t init)
{
	if (init > 0)
		kill(init, SIGKILL);
	process_reap(init);
}

int launch_child_reap(struct child *c)
{
	int status = process_reap(c->pid);

	close(c->pidfd);
	pidns_init_kill(c->pidns_init);
	return status;
}

int launch_child(struct launch_stacks *s, const struct child_plan *p, struct child *ret,
	struct child_report *ret_report)
{
	struct child_report *w = ret_report;
	int r = launch_processes(s, p, w), pidfd = -1;
	const pid_t worker = w->pidns_helper ? w->worker : w->pid;

	if (w->pidns_helper)
		process_reap(w->pid);
	if (r == 0 && (pidfd = (int)syscall(SYS_pidfd_open, worker, 0)) < 0) {
		w->stage = STAGE_CLONE;
		w->error = errno;
		r = -w->error;
	}
	if (r == 0) {
		*ret = (struct child){.pid = worker, .pidfd = pidfd, .pidns_init = w->pidns_init};
		return 0;
	}
	if (worker > 0)
		kill(worker, SIGKILL);
	process_reap(worker);
	pidns_init_kill(w->pidns_init);
	return r;
}
