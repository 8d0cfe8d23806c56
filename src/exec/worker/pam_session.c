/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a PAM session, which creates the worker inside of the session. */
#include "exec/worker/pam_session.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/child/launch.h"
#include "exec/child/sandbox.h"
#include "exec/child/user.h"
#include "exec/worker/cgroup.h"
#include "exec/worker/environment.h"
#include "exec/worker/pam.h"
#include "exec/worker/worker_launch.h"
#include "exec/worker/worker_start.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEPT_MAX (CHILD_EXTRA_FDS_MAX + 16)
#define TIMERS 2 /* the first kills this process and its children; the second follows as SIGKILL */
#define WORKER_END_MS 2000 /* for the killed worker to exit */

struct session {
	const struct pam_session_plan *plan;
	int socket;
	bool timed;
	int timers[TIMERS];      /* kernel ids, if timed */
	int worker;              /* pidfd; -1: none */
	struct pam_session *account;
	struct strv env;
};

/* ---- cleanup of the copy of the spawner before modules run ---- */

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void close_fds_except(int *keep, size_t n)
{
	unsigned next = 3;

	qsort(keep, n, sizeof(*keep), compare_fds);
	for (size_t i = 0; i < n; i++) {
		unsigned fd = (unsigned)keep[i];

		if (keep[i] < (int)next)
			continue; /* -1, a standard descriptor or a duplicate */
		if (fd > next)
			close_range(next, fd - 1, 0);
		next = fd + 1;
	}
	close_range(next, ~0U, 0);
}

static void close_unneeded_fds(const struct session *s)
{
	const struct child_plan *c = s->plan->child;
	const struct sandbox_set *all = c->sandbox->all;
	int keep[KEPT_MAX] = {s->socket, c->in, c->out, c->artifact, c->cgroup ? *c->cgroup : -1,
		all->ruleset, all->network, all->init, all->self};
	size_t n = 9;

	for (size_t i = 0; i < c->extra_fds_n; i++)
		keep[n++] = c->extra_fds[i];
	close_fds_except(keep, n);
}

/*
 * Only the spawner ends this process, so signals to the service or terminal are blocked. Helpers of
 * modules need the others.
 */
static void detach_from_spawner(void)
{
	static const int held[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
	sigset_t mask;

	setsid();
	prctl(PR_SET_NAME, "jobsched-pam");
	sigemptyset(&mask);
	for (size_t i = 0; i < ELEMENTS(held); i++)
		sigaddset(&mask, held[i]);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	clearenv();
	umask(077);
	if (chdir("/") < 0)
		_exit(1);
}

/*
 * Kills the children too, because helpers of modules would outlive this process. Async-signal-safe.
 */
static void on_timeout_signal(int sig)
{
	char text[4096];
	int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	pid_t pid = 0;

	(void)sig;
	for (ssize_t i = 0; i < n; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			pid = pid * 10 + (text[i] - '0');
		} else if (pid > 0) { /* an unreaped child, so its pid is not reused */
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			pid = 0;
		}
	}
	kill(getpid(), SIGKILL);
}

/*
 * The second timer sends SIGKILL, because a module can block or replace any other signal. 0: stops
 * the timers.
 */
static bool timeout_start(struct session *s, usec_t timeout)
{
	const int signals[TIMERS] = {SIGRTMAX - 1, SIGKILL};
	const struct sigaction end = {.sa_handler = on_timeout_signal};

	if (sigaction(signals[0], &end, NULL) < 0)
		return false;
	for (int i = 0; i < TIMERS; i++) {
		const usec_t after = timeout ? timeout + i * USEC_SEC : 0;
		const struct itimerspec at = {.it_value = {.tv_sec = after / USEC_SEC,
						      .tv_nsec = after % USEC_SEC * 1000}};
		struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signals[i]};

		if (!s->timed &&
			syscall(SYS_timer_create, CLOCK_MONOTONIC, &how, &s->timers[i]) < 0)
			return false;
		if (syscall(SYS_timer_settime, s->timers[i], 0, &at, NULL) < 0)
			return false;
	}
	s->timed = true;
	return true;
}

/* ---- the start ---- */

static bool report_send(const struct session *s, enum start_failure why,
	const struct child_report *made, usec_t started_at, const char *text)
{
	struct pam_session_report w = {
		.magic = PAM_SESSION_MAGIC, .failure = (int32_t)why, .started_at = started_at};

	if (made)
		w.made = *made;
	snprintf(w.text, sizeof(w.text), "%.*s", (int)sizeof(w.text) - 1, text ? text : "");
	return send(s->socket, &w, sizeof(w), MSG_NOSIGNAL) == (ssize_t)sizeof(w);
}

/*
 * Default limits are set before the session, which may replace them. *ret gets the limits of the
 * job, which are set last.
 */
static bool default_limits_apply(const struct child_limits *l, struct child_limits *ret)
{
	*ret = *l;
	ret->n = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (!l->v[i].is_default)
			ret->v[ret->n++] = l->v[i];
		else if (setrlimit((__rlimit_resource_t)l->v[i].resource, &l->v[i].limit) < 0)
			return false;
	}
	return true;
}

static long session_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
}

static char *start_note(const struct child_report *m, const struct child_plan *p)
{
	if (!m->error)
		return m->cwd_error ? xprintf("could not enter '%s', ran in '/': %s", p->cwd,
					      strerror(m->cwd_error))
				    : NULL;
	if (strcmp(child_stage_name(m), "limits") == 0 && m->error == EPERM)
		return xstrdup(
			"a limit of the job is higher than the PAM session of its user allows");
	return worker_launch_error(m, p);
}

static bool worker_create(struct session *s, struct child_plan *p)
{
	const struct user *u = s->plan->environ->user;
	struct launch_stacks *stacks = NULL;
	struct child_report made;
	AUTO_TEXT note = NULL;
	usec_t began;
	struct err e = {};
	pid_t worker;

	if (!launch_stacks_new(&stacks, &e)) {
		report_send(s, START_TRANSIENT, NULL, 0, e.msg);
		return false;
	}
	began = clock_now(&clock_system);
	launch_processes(stacks, p, &made);
	note = start_note(&made, p);
	if (made.error) {
		report_send(s, worker_start_failure(made.error), made.pid > 0 ? &made : NULL, began,
			note);
		return false;
	}
	worker = made.pidns_helper ? made.worker : made.pid;
	s->worker = (int)syscall(SYS_pidfd_open, worker, 0);
	log_line(LOG_LEVEL_INFO, &(struct log_about){.run = s->plan->run},
		"audit: run %" PRId64 " starts as '%s' (uid %u), pid %d, in a session",
		s->plan->run, u->name, (unsigned)u->uid, (int)worker);
	return report_send(s, (enum start_failure)PAM_SESSION_STARTED, &made, began, note);
}

static bool worker_create_in_session(
	struct session *s, const struct child_limits *limits, bool has_keyring)
{
	struct environment_source from = *s->plan->environ;
	struct child_plan p = *s->plan->child;
	__attribute__((cleanup(environment_done))) struct environment vars = {};

	from.session = &s->env;
	environment_build(&vars, &from);
	p.envp = vars.envp;
	p.path = environment_get(&vars, "PATH");
	p.limits = limits;
	p.keyring = has_keyring;
	p.clone_parent = true;
	/* a module may have moved this process to a group from which CLONE_INTO_CGROUP fails */
	p.cgroup_clone = false;
	p.setup_timeout = PAM_SESSION_TIMEOUT;
	return worker_create(s, &p);
}

/* ---- the end ---- */

static bool spawner_is_gone(const struct session *s)
{
	return poll(&(struct pollfd){.fd = s->socket, .events = POLLIN | POLLRDHUP}, 1, 0) != 0;
}

static void wait_for_spawner(const struct session *s)
{
	char byte;

	while (recv(s->socket, &byte, 1, 0) < 0 && errno == EINTR)
		;
}

/* The worker has usually exited. It must not outlive its session, so it is killed if it has not. */
static void worker_kill(const struct session *s)
{
	if (s->worker < 0)
		return;
	syscall(SYS_pidfd_send_signal, s->worker, SIGKILL, NULL, 0);
	poll(&(struct pollfd){.fd = s->worker, .events = POLLIN}, 1, WORKER_END_MS);
}

static void session_close(struct session *s)
{
	struct err e = {};
	char byte = 0;

	timeout_start(s, PAM_SESSION_TIMEOUT);
	if (!pam_session_close(s->account, &e))
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = s->plan->run},
			"could not close the PAM session of run %" PRId64 ": %s", s->plan->run,
			e.msg);
	send(s->socket, &byte, 1, MSG_NOSIGNAL);
}

static void session_main(struct session *s)
{
	struct child_limits limits;
	struct err e = {};
	long keys;

	detach_from_spawner();
	close_unneeded_fds(s);
	if (!default_limits_apply(s->plan->child->limits, &limits) ||
		!timeout_start(s, PAM_SESSION_TIMEOUT)) {
		report_send(s, START_TRANSIENT, NULL, 0,
			"could not prepare the process of its PAM session");
		return;
	}
	keys = session_keyring();
	if (!pam_session_open(s->plan->environ->user->name, &s->account, &s->env, &e)) {
		report_send(s, START_ACCOUNT_DENIED, NULL, 0, e.msg);
		return;
	}
	timeout_start(s, 0);
	if (!spawner_is_gone(s) &&
		worker_create_in_session(s, &limits, session_keyring() != keys)) {
		int keep[] = {s->socket, s->worker};

		close_fds_except(keep, ELEMENTS(keep));
		wait_for_spawner(s);
	}
	worker_kill(s);
	session_close(s);
}

int pam_session_fork(const struct pam_session_plan *p, pid_t *ret_pid, int *ret_socket)
{
	struct session s = {.plan = p, .worker = -1};
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		s.socket = pair[1];
		session_main(&s);
		_exit(0);
	}
	if (pid < 0) {
		int error = errno;

		close(pair[0]);
		close(pair[1]);
		return -error;
	}
	close(pair[1]);
	io_set_nonblock(pair[0]);
	*ret_pid = pid;
	*ret_socket = pair[0];
	return 0;
}
