/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's side of PAM sessions: a worker waits for its session before it runs, and its end for that of the session. */
#include "base/auto.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/worker/pam_session.h"
#include "exec/worker/worker.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* For modules to open it and for the worker to be its command; the process ends both itself before that, unless it is blocked. */
#define OPEN_PATIENCE (2 * PAM_SESSION_TIMEOUT + 2 * USEC_SEC)
#define CLOSE_PATIENCE (PAM_SESSION_TIMEOUT + 2 * USEC_SEC) /* the process ends itself before that, unless it cannot */

static void session_opening_done(struct worker *w)
{
	w->all->opening--;
	deadline_clear(&w->all->deadlines, &w->deadline);
	w->all->scan_wanted = true; /* the dead were left alone, see awaited() */
}

/* Whatever its process still makes ends in a group that nobody else gets. */
static void fail(struct worker *w, enum start_failure reason, char *why /* moved */)
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
	fail(w, reason, xstrdup(why));
}

static void session_worker_give_up(struct worker *w, void *arg)
{
	if (w->phase == WORKER_OPENING)
		worker_start_give_up(w, START_TRANSIENT, arg);
}

/*
 * A start that a launcher has under way may have become its command already, and would run again after 'not started'. So
 * launchers get LAUNCH_BLOCKED_AFTER to finish. A start that has a process by then goes on; one without a process is given up.
 */
void workers_give_up(struct workers *ws, const char *why)
{
	launchers_settle(&ws->launchers, LAUNCH_BLOCKED_AFTER);
	workers_each(ws, session_worker_give_up, (void *)why);
}

static bool is_own_child(pid_t pid)
{
	siginfo_t si;

	return pid == 0 || (pid > 0 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0);
}

/* The numbers come from a process in which modules run. */
static bool are_own_children(const struct child_report *made)
{
	return is_own_child(made->pid) && is_own_child(made->worker) && is_own_child(made->keeper);
}

static void session_report_apply(struct worker *w, struct pam_session_report *word)
{
	struct child child;
	int r = are_own_children(&word->made) ? worker_launch_adopt(w->all, &word->made, &child) : -ECHILD;

	word->text[sizeof(word->text) - 1] = '\0';
	if (word->failure != PAM_SESSION_STARTED || !word->made.pid) {
		fail(w, word->failure >= 0 && word->failure < START_FAILURE_MAX ? (enum start_failure)word->failure : START_ERROR,
			xstrdup(word->text));
		return;
	}
	if (r < 0) {
		fail(w, START_TRANSIENT, xprintf("could not take over a process from its session: %s", strerror(-r)));
		return;
	}
	session_opening_done(w);
	if (word->text[0]) {
		free(w->error);
		w->error = xstrdup(word->text);
	}
	w->started_at = word->started_at;
	worker_start_done(w, &child);
	worker_report_queue(w, 0);
}

static void on_session(struct source *s, uint32_t events)
{
	struct worker *w = CONTAINER_OF(s, struct worker, session);
	struct pam_session_report word = {};
	ssize_t n;

	(void)events;
	if (s->fd < 0)
		return;
	n = recv(s->fd, &word, sizeof(word), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (w->phase == WORKER_OPENING && n == (ssize_t)sizeof(word) && word.magic == PAM_SESSION_MAGIC) {
		session_report_apply(w, &word);
		return;
	}
	if (w->phase == WORKER_OPENING)
		fail(w, START_TRANSIENT, xprintf("its PAM session was not opened: the process that does so crashed, or modules took more than %d seconds",
						 (int)(PAM_SESSION_TIMEOUT / USEC_SEC)));
	else if (n != 1)
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
			"the session of run %" PRId64 " was not closed: its process crashed, was killed, or modules took more than %d seconds",
			w->run, (int)(PAM_SESSION_TIMEOUT / USEC_SEC));
	epoll_source_close(s);
}

void worker_session_open(struct worker *w, const struct pam_session_plan *p)
{
	struct workers *ws = w->all;
	pid_t pid;
	int r = pam_session_fork(p, &pid, &w->session.fd);

	if (r < 0) {
		worker_start_failed(w, START_TRANSIENT, xprintf("could not start a process for its session: %s", strerror(-r)));
		return;
	}
	orphans_add_helper(ws, pid);
	w->session.on_ready = on_session;
	if (epoll_source_watch(ws->ep, &w->session, EPOLL_CTL_ADD, EPOLLIN) < 0) {
		worker_start_failed(w, START_TRANSIENT, xprintf("could not watch its session: %s", strerror(errno)));
		return;
	}
	w->phase = WORKER_OPENING;
	deadline_set(&ws->deadlines, &w->deadline, clock_boot(&clock_system) + OPEN_PATIENCE);
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
	if (now < w->closing + CLOSE_PATIENCE) {
		deadline_set(&w->all->deadlines, &w->deadline, w->closing + CLOSE_PATIENCE);
		return false;
	}
	log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run}, "the session of run %" PRId64 " is not closed yet: nobody waits for it any more",
		w->run);
	epoll_source_close(&w->session);
	return true;
}
