/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a worker: its output, its time limits, its end. */
#include "exec/worker.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child.h"
#include "exec/frame.h"
#include "exec/launcher.h"
#include "exec/procfs.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FDS_PER_WORKER 4                /* process, both ends of the pipe, output */
#define FDS_RESERVED 48                 /* for ourselves, connections and what they pass */
#define CHUNK (64 << 10)
#define CHUNKS_PER_TURN 4               /* of one worker's output, so that a fast writer delays nobody */
#define DRAIN_PATIENCE USEC_SEC         /* for output that does not stop after the main process has */
#define LEFT_PATIENCE (5 * USEC_SEC)    /* for killed processes that do not go */
#define STOP_GRACE_MAX (30 * USEC_SEC)

static void on_launched(struct source *s, uint32_t events);

bool workers_init(struct workers *ws, int ep, int output_dir, const char *spawner, struct err *e)
{
	struct rlimit more;

	*ws = (struct workers){.ep = ep, .output_dir = output_dir, .spawner = spawner, .pid = getpid()};
	ws->outbox_end = &ws->outbox;
	ws->children = procfs_children_open();
	if (ws->children < 0)
		return err_errno(e, -ws->children, "could not open the list of our children in '/proc'");
	if (getrlimit(RLIMIT_NOFILE, &ws->nofile) < 0)
		return err_errno(e, errno, "could not read the limit of open files");
	more = (struct rlimit){ws->nofile.rlim_max, ws->nofile.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &more) < 0)
		more = ws->nofile;
	ws->running_max = more.rlim_cur > FDS_RESERVED ? (more.rlim_cur - FDS_RESERVED) / FDS_PER_WORKER : 0;
	environ_base_init(&ws->base, spawner);
	ws->chunk = xcalloc(1, CHUNK);
	if (!launcher_new(&ws->launcher, e))
		return false;
	ws->launched = (struct source){launcher_fd(ws->launcher), on_launched};
	return source_watch(ep, &ws->launched, EPOLL_CTL_ADD, EPOLLIN) == 0 ||
	       err_errno(e, errno, "could not watch the launcher");
}

static void pipe_close(struct worker *w)
{
	source_close(w->all->ep, &w->out);
	auto_fd_close(&w->out_end);
	w->out_end = -1;
}

static void worker_free(struct worker *w)
{
	deadline_clear(&w->all->deadlines, &w->deadline);
	source_close(w->all->ep, &w->exit);
	pipe_close(w);
	output_writer_done(&w->output);
	free(w->error);
	free(w);
}

void workers_done(struct workers *ws)
{
	struct worker *w, *next;
	void *known;

	for (size_t i = 0; (w = map_next(&ws->by_run, &i));)
		for (; w; w = next) {
			next = w->same_run;
			worker_free(w);
		}
	for (w = ws->dead; w; w = next) {
		next = w->next_dead;
		worker_free(w);
	}
	for (size_t i = 0; (known = map_next(&ws->adopted, &i));)
		free(known);
	map_done(&ws->by_run);
	map_done(&ws->by_pid);
	map_done(&ws->adopted);
	deadlines_done(&ws->deadlines);
	environ_base_done(&ws->base);
	launcher_free(ws->launcher);
	buf_done(&ws->children_text);
	free(ws->pids);
	free(ws->chunk);
	if (ws->children >= 0)
		close(ws->children);
}

struct worker *workers_find(const struct workers *ws, int64_t run, int64_t fence)
{
	struct worker *w = map_get(&ws->by_run, run);

	while (w && w->fence != fence)
		w = w->same_run;
	return w;
}

void workers_each(struct workers *ws, void (*fn)(struct worker *w, void *arg), void *arg)
{
	struct worker *w;

	for (size_t i = 0; (w = map_next(&ws->by_run, &i));)
		for (; w; w = w->same_run)
			fn(w, arg);
}

void worker_forget(struct worker *w)
{
	struct workers *ws = w->all;
	struct worker *first = map_get(&ws->by_run, w->run);

	if (first != w) {
		while (first->same_run != w)
			first = first->same_run;
		first->same_run = w->same_run;
	} else if (w->same_run) {
		map_put(&ws->by_run, w->run, w->same_run);
	} else {
		map_take(&ws->by_run, w->run);
	}
	ws->count--;
	w->same_run = NULL;
	w->news = 0;
	w->next_dead = ws->dead;
	ws->dead = w;
}

/* ---- what the engine is to be told ---- */

void worker_post(struct worker *w, unsigned news)
{
	struct workers *ws = w->all;

	if (w->asked || news == NEWS_ENDED) /* nobody else waits for the rest */
		w->news |= news;
	if (!w->asked || !w->news || w->posted)
		return;
	w->posted = true;
	w->next_posted = NULL;
	*ws->outbox_end = w;
	ws->outbox_end = &w->next_posted;
}

struct worker *workers_unpost(struct workers *ws)
{
	struct worker *w = ws->outbox;

	if (!w)
		return NULL;
	ws->outbox = w->next_posted;
	if (!ws->outbox)
		ws->outbox_end = &ws->outbox;
	w->posted = false;
	return w;
}

/* ---- output ---- */

/* False: there is more. The end of the pipe is not seen, since we hold its other end ourselves. */
static bool worker_drain(struct worker *w)
{
	for (int i = 0; i < CHUNKS_PER_TURN; i++) {
		ssize_t n = read(w->out.fd, w->all->chunk, CHUNK);

		if (n > 0)
			output_write(&w->output, w->all->chunk, (size_t)n);
		else if (n == 0 || errno != EINTR)
			return true;
	}
	return false;
}

static void on_output(struct source *s, uint32_t events)
{
	struct worker *w = SOURCE_OWNER(s, struct worker, out);

	(void)events;
	if (s->fd >= 0)
		(void)worker_drain(w);
}

/* ---- the end ---- */

/*
 * The main process is gone but not reaped, so its number is still its own: whatever is left in its group is
 * killed by that number before it is given back.
 */
static void on_exit_ready(struct source *s, uint32_t events)
{
	struct worker *w = SOURCE_OWNER(s, struct worker, exit);
	siginfo_t si = {};

	(void)events;
	if (s->fd < 0)
		return;
	kill(-w->pid, SIGKILL);
	if (syscall(SYS_waitid, P_PIDFD, s->fd, &si, WEXITED | WNOHANG, &w->usage) < 0) {
		log_error("could not learn how process %d ended: %s", (int)w->pid, strerror(errno));
		w->forced = ATTEMPT_LOST;
	} else if (si.si_pid == 0) {
		return;
	}
	w->exit_code = si.si_code == CLD_EXITED ? si.si_status : -1;
	w->term_signal = si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED ? si.si_status : 0;
	w->ended_at = clock_now(&clock_system);
	if (w->ended_at < w->started_at)
		w->ended_at = w->started_at; /* the clock was set back */
	w->died = clock_boot(&clock_system);
	w->phase = WORKER_ENDING;
	w->looked = false;
	map_take(&w->all->by_pid, w->pid);
	source_close(w->all->ep, &w->exit);
	deadline_set(&w->all->deadlines, &w->deadline, w->died + DRAIN_PATIENCE);
	worker_ending_add(w);
}

void worker_ending_add(struct worker *w)
{
	w->next_ending = w->all->ending;
	w->all->ending = w;
	w->all->look_wanted = true;
}

static void worker_ended(struct worker *w)
{
	if (w->left && !w->error)
		w->error = xprintf("%zu of its processes could not be ended", w->left);
	pipe_close(w);
	output_writer_done(&w->output);
	deadline_clear(&w->all->deadlines, &w->deadline);
	w->phase = WORKER_ENDED;
	w->all->running--;
	worker_post(w, NEWS_ENDED);
}

static bool worker_try_end(struct worker *w, usec_t now)
{
	if (!w->looked && now < w->died + LEFT_PATIENCE)
		return false;
	if (w->left && now < w->died + LEFT_PATIENCE) {
		deadline_set(&w->all->deadlines, &w->deadline, w->died + LEFT_PATIENCE);
		return false;
	}
	if (!worker_drain(w) && now < w->died + DRAIN_PATIENCE)
		return false;
	worker_ended(w);
	return true;
}

static void signal_group(const struct worker *w, int sig)
{
	if (kill(-w->pid, sig) < 0 && errno != ESRCH)
		log_line(LOG_LEVEL_WARNING, &(struct log_about){.run = w->run},
			"could not send signal %d to process group %d: %s", sig, (int)w->pid, strerror(errno));
}

void worker_end(struct worker *w, enum attempt_outcome why)
{
	usec_t grace = w->grace;

	if (w->phase == WORKER_LAUNCHING && w->forced == ATTEMPT_RUNNING)
		w->forced = why; /* and done as soon as it runs */
	if (w->phase != WORKER_RUNNING)
		return;
	if (w->all->stopping && grace > STOP_GRACE_MAX)
		grace = STOP_GRACE_MAX;
	w->forced = why;
	w->phase = WORKER_TERMINATING;
	signal_group(w, SIGTERM);
	signal_group(w, SIGCONT); /* a stopped process hears nothing else */
	deadline_set(&w->all->deadlines, &w->deadline, clock_boot(&clock_system) + grace);
}

static void worker_due(struct worker *w)
{
	if (w->phase == WORKER_RUNNING) {
		worker_end(w, ATTEMPT_TIMED_OUT);
	} else if (w->phase == WORKER_TERMINATING) {
		w->phase = WORKER_KILLED;
		signal_group(w, SIGKILL);
	}
}

static void stop_one(struct worker *w, void *arg)
{
	(void)arg;
	worker_end(w, ATTEMPT_LOST);
	if (w->forced == ATTEMPT_LOST && !w->error)
		w->error = xstrdup("ended because the spawner was stopped");
}

void workers_stop(struct workers *ws)
{
	ws->stopping = true;
	workers_each(ws, stop_one, NULL);
}

/* ---- the loop ---- */

usec_t workers_next(const struct workers *ws)
{
	usec_t next = deadlines_next(&ws->deadlines);

	return ws->look_wanted && ws->look_after < next ? ws->look_after : next;
}

void workers_turn(struct workers *ws)
{
	usec_t now = clock_boot(&clock_system);
	struct deadline *d;

	while ((d = deadlines_take(&ws->deadlines, now)))
		worker_due(SOURCE_OWNER(d, struct worker, deadline));
	if (ws->look_wanted && now >= ws->look_after)
		workers_look(ws, now);
	for (struct worker **at = &ws->ending, *w; (w = *at);) {
		if (worker_try_end(w, now))
			*at = w->next_ending;
		else
			at = &w->next_ending;
	}
	for (struct worker **at = &ws->dead, *w; (w = *at);) {
		if (w->posted) {
			at = &w->next_dead;
			continue;
		}
		*at = w->next_dead;
		worker_free(w);
	}
}

/* ---- the start ---- */

static struct worker *worker_new(struct workers *ws, const struct frame_start *s)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	*w = (struct worker){.all = ws, .run = s->run, .fence = s->fence, .attempt = s->attempt,
		.timeout = s->timeout, .grace = s->grace, .exit = {-1, on_exit_ready}, .out = {-1, on_output},
		.out_end = -1, .exit_code = -1};
	output_writer_init(&w->output, ws->output_dir, s->run, s->attempt, s->output_limit);
	w->same_run = map_get(&ws->by_run, w->run);
	map_put(&ws->by_run, w->run, w);
	ws->count++;
	return w;
}

static void not_started(struct worker *w, int errnum, char *why /* moved */)
{
	w->phase = WORKER_NOT_STARTED;
	w->transient = child_error_transient(errnum);
	free(w->error);
	w->error = why;
	w->news |= NEWS_NOT_STARTED;
}

struct worker *workers_refuse(struct workers *ws, const struct frame_start *s, const char *why)
{
	struct worker *w = worker_new(ws, s);

	not_started(w, EAGAIN, xstrdup(why));
	return w;
}

static char *launch_error(const struct child_word *word, const struct child_plan *p)
{
	const char *stage = child_stage_name(word), *cause = strerror(word->error);

	if (strcmp(stage, "exec") == 0)
		return xprintf("could not run '%s': %s", p->argv[0], cause);
	if (strcmp(stage, "directory") == 0)
		return xprintf("could not enter directory '%s': %s", p->cwd, cause);
	return xprintf("could not start a process (%s): %s", stage, cause);
}

/* Without these we would not learn of its output and end: it must not run then. */
static bool worker_watch(struct worker *w)
{
	if (source_watch(w->all->ep, &w->exit, EPOLL_CTL_ADD, EPOLLIN) == 0 &&
		source_watch(w->all->ep, &w->out, EPOLL_CTL_ADD, EPOLLIN) == 0)
		return true;
	not_started(w, ENOMEM, xprintf("could not watch the process: %s", strerror(errno)));
	kill(-w->pid, SIGKILL);
	syscall(SYS_waitid, P_PIDFD, w->exit.fd, NULL, WEXITED, NULL);
	source_close(w->all->ep, &w->exit);
	return false;
}

static void worker_launched(struct worker *w, const struct launch *one)
{
	struct workers *ws = w->all;
	enum attempt_outcome forced = w->forced;

	ws->launching--;
	ws->listed -= w->listed;
	w->listed = false;
	w->pid = one->child.pid;
	w->exit.fd = one->child.pidfd;
	if (one->result < 0)
		not_started(w, -one->result, launch_error(&one->word, &one->plan));
	if (one->result < 0 || !worker_watch(w)) {
		ws->running--;
		if (w->asked)
			worker_post(w, 0);
		else
			worker_forget(w);
		return;
	}
	if (one->word.cwd_error)
		w->error = xprintf("could not enter '%s', ran in '/': %s", one->plan.cwd,
			strerror(one->word.cwd_error));
	w->started_at = one->started_at;
	w->phase = WORKER_RUNNING;
	map_put(&ws->by_pid, w->pid, w);
	if (w->timeout)
		deadline_set(&ws->deadlines, &w->deadline, clock_boot(&clock_system) + w->timeout);
	worker_post(w, NEWS_STARTED);
	if (forced != ATTEMPT_RUNNING)
		worker_end(w, forced);
}

static void on_launched(struct source *s, uint32_t events)
{
	struct workers *ws = SOURCE_OWNER(s, struct workers, launched);
	struct launch *one;

	(void)events;
	while ((one = launcher_take(ws->launcher))) {
		worker_launched(one->owner, one);
		launch_free(one);
	}
}

static int pipe_open(struct worker *w)
{
	int pipe[2];

	if (pipe2(pipe, O_CLOEXEC) < 0)
		return -errno;
	w->out.fd = pipe[0];
	w->out_end = pipe[1];
	return fcntl(w->out.fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

struct worker *workers_start(struct workers *ws, const struct frame_start *s, struct payload *p, int stdin_fd)
{
	struct worker *w = worker_new(ws, s);
	AUTO(launch) *one = xcalloc(1, sizeof(*one));
	AUTO_FD in = stdin_fd;
	int r = pipe_open(w);

	one->payload = *p;
	*p = (struct payload){};
	p = &one->payload;
	environ_build(&one->vars, &ws->base, p, s->run, s->fence);
	one->owner = w;
	one->plan = (struct child_plan){.argv = p->argv, .envp = one->vars.envp, .path = environ_get(&one->vars, "PATH"),
		.cwd = p->cwd ? p->cwd : ws->base.home, .cwd_optional = !p->cwd, .umask = (mode_t)s->umask,
		.nofile = ws->nofile, .parent = ws->pid};
	output_remove(ws->output_dir, s->run, s->attempt, NULL); /* of another store */
	if (r == 0)
		r = launcher_submit(ws->launcher, one, in, w->out_end);
	if (r < 0) {
		not_started(w, -r, xprintf("could not hand over to the launcher: %s", strerror(-r)));
		return w;
	}
	(void)STEAL(one);
	w->phase = WORKER_LAUNCHING;
	ws->running++;
	ws->launching++;
	return w;
}
