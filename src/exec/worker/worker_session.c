/* SPDX-License-Identifier: Apache-2.0 */
/* Connects a worker to its PAM session. */
#include "exec/worker/worker_session.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/child/launch.h"
#include "exec/worker/orphans.h"
#include "exec/worker/pam_session.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_launch.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/*
 * The session process has shorter timeouts of its own for opening, starting and closing. These
 * apply only if it is blocked.
 */
#define OPEN_TIMEOUT (2 * PAM_SESSION_TIMEOUT + 2 * USEC_SEC)
#define CLOSE_TIMEOUT (PAM_SESSION_TIMEOUT + 2 * USEC_SEC)

static void session_opening_done(struct worker *w)
{
	w->all->opening--;
	deadline_clear(&w->all->deadlines, &w->deadline);
	/* exited children were not reaped meanwhile, see orphan_may_be_worker() */
	w->all->scan_wanted = true;
}

/* The killed group is not reused, so processes that the session process still creates end in it. */
static void session_failed(struct worker *w, enum start_failure reason, char *why /* moved */)
{
	session_opening_done(w);
	w->all->running--;
	if (w->group.dir >= 0)
		cgroup_kill(&w->group);
	worker_start_failed(w, reason, why);
	worker_report_queue(w, 0);
}

void worker_session_give_up(struct worker *w, enum start_failure reason, const char *why)
{
	session_failed(w, reason, xstrdup(why));
}

static bool is_own_child(pid_t pid)
{
	siginfo_t si;

	return pid == 0 ||
		(pid > 0 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0);
}

/* The pids come from a process that runs PAM modules, so they are checked. */
static bool are_own_children(const struct child_report *made)
{
	return is_own_child(made->pid) && is_own_child(made->worker) &&
		is_own_child(made->pidns_init);
}

static void session_report_apply(struct worker *w, struct pam_session_report *report)
{
	struct child child;
	int r = are_own_children(&report->made) ? worker_launch_adopt(w->all, &report->made, &child)
						: -ECHILD;

	report->text[sizeof(report->text) - 1] = '\0';
	if (report->failure != PAM_SESSION_STARTED || !report->made.pid) {
		session_failed(w,
			report->failure >= 0 && report->failure < START_FAILURE_MAX
				? (enum start_failure)report->failure
				: START_ERROR,
			xstrdup(report->text));
		return;
	}
	if (r < 0) {
		session_failed(w, START_TRANSIENT,
			xprintf("could not take over the process from its PAM session: %s",
				strerror(-r)));
		return;
	}
	session_opening_done(w);
	if (report->text[0]) {
		free(w->error);
		w->error = xstrdup(report->text);
	}
	w->started_at = report->started_at;
	worker_start_done(w, &child);
	worker_report_queue(w, 0);
}

static void on_session(struct epoll_source *s, uint32_t events)
{
	struct worker *w = CONTAINER_OF(s, struct worker, session);
	struct pam_session_report report = {};
	ssize_t n;

	(void)events;
	if (s->fd < 0)
		return;
	n = recv(s->fd, &report, sizeof(report), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (w->phase == WORKER_OPENING && n == (ssize_t)sizeof(report) &&
		report.magic == PAM_SESSION_MAGIC) {
		session_report_apply(w, &report);
		return;
	}
	if (w->phase == WORKER_OPENING)
		session_failed(w, START_TRANSIENT,
			xprintf("its PAM session was not opened: its process crashed, or the modules took more than %d seconds",
				(int)(PAM_SESSION_TIMEOUT / USEC_SEC)));
	else if (n != 1)
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
			"the PAM session of run %" PRId64
			" was not closed: its process crashed or was killed, or the modules took more than %d seconds",
			w->run, (int)(PAM_SESSION_TIMEOUT / USEC_SEC));
	epoll_source_close(s);
}

void worker_session_open(struct worker *w, const struct pam_session_plan *p)
{
	struct workers *ws = w->all;
	pid_t pid;
	int r = pam_session_fork(p, &pid, &w->session.fd);

	if (r < 0) {
		worker_start_failed(w, START_TRANSIENT,
			xprintf("could not start the process of its PAM session: %s",
				strerror(-r)));
		return;
	}
	orphans_add_helper(ws, pid);
	w->session.on_ready = on_session;
	if (epoll_source_watch(ws->ep, &w->session, EPOLL_CTL_ADD, EPOLLIN) < 0) {
		worker_start_failed(w, START_TRANSIENT,
			xprintf("could not watch its PAM session: %s", strerror(errno)));
		return;
	}
	w->phase = WORKER_OPENING;
	deadline_set(&ws->deadlines, &w->deadline, clock_boot(&clock_system) + OPEN_TIMEOUT);
	ws->opening++;
	ws->running++;
}

void worker_session_adopt(struct worker *w)
{
	w->session.on_ready = on_session;
}

bool worker_session_closed(struct worker *w, usec_t now)
{
	if (w->session.fd < 0)
		return true;
	if (!w->closing) {
		w->closing = now;
		shutdown(w->session.fd, SHUT_WR);
	}
	if (now < w->closing + CLOSE_TIMEOUT) {
		deadline_set(&w->all->deadlines, &w->deadline, w->closing + CLOSE_TIMEOUT);
		return false;
	}
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
		"the PAM session of run %" PRId64
		" is not closed yet; the run ends without waiting for it",
		w->run);
	epoll_source_close(&w->session);
	return true;
}
