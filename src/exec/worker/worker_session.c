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
#define OPEN_PATIENCE (2 * SESSION_PATIENCE + 2 * USEC_SEC)
#define CLOSE_PATIENCE (SESSION_PATIENCE + 2 * USEC_SEC) /* the process ends itself before that, unless it cannot */

static void settled(struct worker *w)
{
	w->all->opening--;
	deadline_clear(&w->all->deadlines, &w->deadline);
	w->all->look_wanted = true; /* the dead were left alone, see awaited() */
}

/* Whatever its process still makes ends in a group that nobody else gets. */
static void fail(struct worker *w, enum start_failure reason, char *why /* moved */)
{
	settled(w);
	w->all->running--;
	if (w->group.dir >= 0)
		cgroup_kill(&w->group);
	worker_not_started(w, reason, why);
	worker_post(w, 0);
}

void worker_session_give_up(struct worker *w, enum start_failure reason, const char *why)
{
	fail(w, reason, xstrdup(why));
}

static void give_up(struct worker *w, void *arg)
{
	if (w->phase == WORKER_OPENING)
		worker_give_up(w, START_TRANSIENT, arg);
}

/*
 * A start that a launcher has under way may have become its command already, and would run again after 'not started'. So
 * launchers get LAUNCH_PATIENCE to finish. A start that has a process by then goes on; one without a process is given up.
 */
void workers_give_up(struct workers *ws, const char *why)
{
	launchers_settle(&ws->launchers, LAUNCH_PATIENCE);
	workers_each(ws, give_up, (void *)why);
}

static bool our_child(pid_t pid)
{
	siginfo_t si;

	return pid == 0 || (pid > 0 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0);
}

/* The numbers come from a process in which modules run. */
static bool our_children(const struct child_word *made)
{
	return our_child(made->pid) && our_child(made->worker) && our_child(made->keeper);
}

static void settle(struct worker *w, struct session_word *word)
{
	struct child child;
	int r = our_children(&word->made) ? worker_take(w->all, &word->made, &child) : -ECHILD;

	word->text[sizeof(word->text) - 1] = '\0';
	if (word->failure != SESSION_STARTED || !word->made.pid) {
		fail(w, word->failure >= 0 && word->failure < START_FAILURE_MAX ? (enum start_failure)word->failure : START_ERROR,
			xstrdup(word->text));
		return;
	}
	if (r < 0) {
		fail(w, START_TRANSIENT, xprintf("could not take over a process from its session: %s", strerror(-r)));
		return;
	}
	settled(w);
	if (word->text[0]) {
		free(w->error);
		w->error = xstrdup(word->text);
	}
	w->started_at = word->started_at;
	worker_started(w, &child);
	worker_post(w, 0);
}

static void on_session(struct source *s, uint32_t events)
{
	struct worker *w = SOURCE_OWNER(s, struct worker, session);
	struct session_word word = {};
	ssize_t n;

	(void)events;
	if (s->fd < 0)
		return;
	n = recv(s->fd, &word, sizeof(word), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (w->phase == WORKER_OPENING && n == (ssize_t)sizeof(word) && word.magic == SESSION_MAGIC) {
		settle(w, &word);
		return;
	}
	if (w->phase == WORKER_OPENING)
		fail(w, START_TRANSIENT, xprintf("its PAM session was not opened: the process that does so crashed, or modules took more than %d seconds",
						 (int)(SESSION_PATIENCE / USEC_SEC)));
	else if (n != 1)
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
			"the session of run %" PRId64 " was not closed: its process crashed, was killed, or modules took more than %d seconds",
			w->run, (int)(SESSION_PATIENCE / USEC_SEC));
	source_close(s);
}

void worker_session_open(struct worker *w, const struct session_plan *p)
{
	struct workers *ws = w->all;
	pid_t pid;
	int r = session_fork(p, &pid, &w->session.fd);

	if (r < 0) {
		worker_not_started(w, START_TRANSIENT, xprintf("could not start a process for its session: %s", strerror(-r)));
		return;
	}
	workers_know_helper(ws, pid);
	w->session.on_ready = on_session;
	if (source_watch(ws->ep, &w->session, EPOLL_CTL_ADD, EPOLLIN) < 0) {
		worker_not_started(w, START_TRANSIENT, xprintf("could not watch its session: %s", strerror(errno)));
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
	source_close(&w->session);
	return true;
}
