/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a worker: its output, its time limits, its end. */
#include "exec/worker.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/child.h"
#include "exec/frame.h"
#include "exec/procfs.h"
#include "exec/sandbox.h"
#include "exec/state.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FDS_PER_WORKER 5                /* process, pipe, output, control group and its events */
#define FDS_RESERVED 48                 /* for ourselves, connections and what they pass */
#define CHUNK (64 << 10)
#define CHUNKS_PER_TURN 4               /* of one worker's output, so that a fast writer delays nobody */
#define DRAIN_PATIENCE USEC_SEC         /* for output that does not stop after the main process has */
#define LEFT_PATIENCE (5 * USEC_SEC)    /* for killed processes that do not go */
#define STOP_GRACE_MAX (30 * USEC_SEC)

bool workers_init(struct workers *ws, int ep, int output_dir, const char *spawner, struct cgroups *groups, struct err *e)
{
	struct rlimit more;

	*ws = (struct workers){.ep = ep, .output_dir = output_dir, .spawner = spawner, .groups = groups};
	ws->outbox_end = &ws->outbox;
	ws->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ws->children = procfs_children_open();
	if (ws->null < 0 || ws->children < 0)
		return err_errno(e, ws->null < 0 ? errno : -ws->children, "could not open '%s'",
			ws->null < 0 ? "/dev/null" : "/proc/self/task/…/children");
	if (getrlimit(RLIMIT_NOFILE, &ws->nofile) < 0)
		return err_errno(e, errno, "could not read the limit of open files");
	more = (struct rlimit){ws->nofile.rlim_max, ws->nofile.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &more) < 0)
		more = ws->nofile;
	ws->running_max = more.rlim_cur > FDS_RESERVED ? (more.rlim_cur - FDS_RESERVED) / FDS_PER_WORKER : 0;
	ws->lang = getenv("LANG");
	ws->chunk = xcalloc(1, CHUNK);
	return launcher_new(&ws->launcher, e);
}

bool workers_fence(struct workers *ws, const struct sandbox_list *profiles, bool report, const char *init, struct err *e)
{
	if (!sandboxes_open(&ws->sandboxes, profiles, report, init, ws->launcher, e))
		return false;
	for (size_t i = 0; i < ws->sandboxes->n; i++) {
		const struct fences *f = &ws->sandboxes->v[i];

		if (f->missing)
			log_warning("sandbox profile '%s' %s: %s", f->profile.name,
				f->usable ? "does without" : "cannot be had here", f->missing);
	}
	return true;
}

static void worker_free(struct worker *w)
{
	deadline_clear(&w->all->deadlines, &w->deadline);
	deadline_clear(&w->all->veils, &w->veil.release);
	veil_done(&w->veil);
	source_close(&w->exit);
	source_close(&w->out);
	source_close(&w->session);
	output_writer_done(&w->output);
	cgroup_release(w->all->groups, &w->group);
	free(w->error);
	free(w->told);
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
	map_done(&ws->slow);
	deadlines_done(&ws->deadlines);
	deadlines_done(&ws->veils);
	launcher_free(ws->launcher);
	sandboxes_free(ws->sandboxes);
	buf_done(&ws->children_text);
	free(ws->pids);
	free(ws->chunk);
	if (ws->null >= 0)
		close(ws->null);
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

enum drained { DRAINED_MORE, DRAINED_EMPTY, DRAINED_END };

static enum drained worker_drain(struct worker *w)
{
	for (int i = 0; i < CHUNKS_PER_TURN && w->out.fd >= 0; i++) {
		ssize_t n = read(w->out.fd, w->all->chunk, CHUNK);

		if (n > 0) {
			veil_write(&w->veil, &w->all->veils, &w->output, w->all->chunk, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EAGAIN)
			return DRAINED_EMPTY;
		if (n == 0 || errno != EINTR)
			source_close(&w->out);
	}
	return w->out.fd < 0 ? DRAINED_END : DRAINED_MORE;
}

static void on_output(struct source *s, uint32_t events)
{
	struct worker *w = SOURCE_OWNER(s, struct worker, out);

	(void)events;
	(void)worker_drain(w);
}

/* ---- the end ---- */

static int64_t usec_of(struct timeval t)
{
	return t.tv_sec * USEC_SEC + t.tv_usec;
}

/* It is looked at again in the turn that follows. */
static void on_group_change(struct source *s, uint32_t events)
{
	(void)s;
	(void)events;
}

/* Whatever of it is not in the process group any more is in the control group. */
static void end_group(struct worker *w)
{
	if (w->group.dir < 0 || !cgroup_populated(&w->group))
		return;
	cgroup_kill(&w->group);
	w->group.events.on_ready = on_group_change;
	if (source_watch(w->all->ep, &w->group.events, EPOLL_CTL_ADD, EPOLLPRI) < 0)
		log_warning("could not watch a control group: %s", strerror(errno));
}

/*
 * The main process is gone but not reaped, so its number is still its own: whatever is left in its group is
 * killed by that number before it is given back.
 */
static void on_exit_ready(struct source *s, uint32_t events)
{
	struct worker *w = SOURCE_OWNER(s, struct worker, exit);
	struct rusage usage = {};
	siginfo_t si = {};

	(void)events;
	if (s->fd < 0)
		return;
	kill(-w->pid, SIGKILL);
	if (syscall(SYS_waitid, P_PIDFD, s->fd, &si, WEXITED | WNOHANG, &usage) < 0) {
		log_error("could not learn how process %d ended: %s", (int)w->pid, strerror(errno));
		w->forced = ATTEMPT_FAILED;
		free(w->error);
		w->error = xstrdup("how it ended could not be learned");
	} else if (si.si_pid == 0) {
		return;
	}
	failpoint_pass(FP_END_WAITED);
	w->exit_code = si.si_code == CLD_EXITED ? si.si_status : -1;
	w->term_signal = si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED ? si.si_status : 0;
	w->used = (struct cgroup_usage){.cpu_user = usec_of(usage.ru_utime), .cpu_system = usec_of(usage.ru_stime),
		.memory = usage.ru_maxrss * INT64_C(1024), .io_read = -1, .io_written = -1};
	w->ended_at = clock_now(&clock_system);
	if (w->ended_at < w->started_at)
		w->ended_at = w->started_at; /* the clock was set back */
	w->died = clock_boot(&clock_system);
	w->phase = WORKER_ENDING;
	w->looked = false;
	map_take(&w->all->by_pid, w->pid);
	source_close(&w->exit);
	deadline_set(&w->all->deadlines, &w->deadline, w->died + DRAIN_PATIENCE);
	end_group(w);
	worker_ending_add(w);
}

void worker_ending_add(struct worker *w)
{
	w->next_ending = w->all->ending;
	w->all->ending = w;
	w->all->look_wanted = true;
}

/* The group has counted all that was in it, also what the main process did not wait for. */
static void group_ended(struct worker *w)
{
	struct cgroup_usage u;

	if (w->group.dir < 0)
		return;
	cgroup_usage(w->all->groups, &w->group, &u);
	if (!u.memory)
		u.memory = w->used.memory;
	w->used = u;
	if (u.out_of_memory && !w->error)
		w->error = xstrdup("out of memory: it was killed for its limit, or for that of its owner");
	cgroup_release(w->all->groups, &w->group);
}

static void worker_ended(struct worker *w)
{
	if (w->left && !w->error)
		w->error = xstrdup("some of its processes could not be ended");
	group_ended(w);
	source_close(&w->out);
	veil_release(&w->veil, &w->all->veils, &w->output);
	veil_done(&w->veil);
	output_writer_done(&w->output);
	deadline_clear(&w->all->deadlines, &w->deadline);
	w->phase = WORKER_ENDED;
	w->all->running--;
	worker_post(w, NEWS_ENDED);
}

static bool worker_try_end(struct worker *w, usec_t now)
{
	if (w->group.dir >= 0)
		w->left = cgroup_populated(&w->group);
	else if (!w->looked && now < w->died + LEFT_PATIENCE)
		return false;
	if (w->left && now < w->died + LEFT_PATIENCE) {
		deadline_set(&w->all->deadlines, &w->deadline, w->died + LEFT_PATIENCE);
		return false;
	}
	if (worker_drain(w) == DRAINED_MORE && now < w->died + DRAIN_PATIENCE)
		return false;
	if (!worker_session_closed(w, now))
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

	if (w->phase == WORKER_OPENING)
		worker_session_give_up(w, why == ATTEMPT_CANCELLED ? START_ERROR : START_TRANSIENT, "ended before it was started");
	if (w->phase != WORKER_RUNNING)
		return;
	if (w->all->stopping && grace > STOP_GRACE_MAX)
		grace = STOP_GRACE_MAX;
	w->forced = why;
	w->phase = WORKER_TERMINATING;
	if (why == ATTEMPT_CANCELLED)
		failpoint_pass(FP_CANCEL_SIGNAL);
	signal_group(w, SIGTERM);
	signal_group(w, SIGCONT); /* a stopped process hears nothing else */
	if (why == ATTEMPT_CANCELLED)
		failpoint_pass(FP_CANCEL_SIGNALLED);
	deadline_set(&w->all->deadlines, &w->deadline, clock_boot(&clock_system) + grace);
}

static void worker_due(struct worker *w)
{
	if (w->phase == WORKER_RUNNING) {
		worker_end(w, ATTEMPT_TIMED_OUT);
	} else if (w->phase == WORKER_TERMINATING) {
		w->phase = WORKER_KILLED;
		signal_group(w, SIGKILL);
		if (w->group.dir >= 0)
			cgroup_kill(&w->group);
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

/* ---- the lease of the engine, which may be stopped, or gone ---- */

void workers_lease(struct workers *ws, usec_t end_at, usec_t kill_at)
{
	ws->lease_end = end_at;
	ws->lease_kill = kill_at;
	ws->lease_over = ws->lease_late = false;
}

bool workers_lease_over(const struct workers *ws)
{
	return ws->lease_end && clock_boot(&clock_system) >= ws->lease_end;
}

/* Killed in time, whatever grace it was promised: somebody else may start it after that. */
static void end_with_lease(struct worker *w, void *arg)
{
	(void)arg;
	if (!w->ends_with_lease)
		return;
	if (w->phase == WORKER_OPENING) {
		worker_session_give_up(w, START_LEASE, "the lease of its node is over");
	} else if (w->phase == WORKER_RUNNING) {
		worker_end(w, ATTEMPT_LOST);
		if (!w->error)
			w->error = xstrdup("ended because the lease of its node was over");
	}
	if (w->phase == WORKER_TERMINATING && w->deadline.at > w->all->lease_kill)
		deadline_set(&w->all->deadlines, &w->deadline, w->all->lease_kill);
}

static void watch_lease(struct workers *ws)
{
	if (ws->lease_over || !workers_lease_over(ws))
		return;
	/* we may have stood still ourselves: what has come meanwhile, a renewal or the end of a worker, is heard first */
	ws->lease_late = !ws->lease_late;
	if (ws->lease_late)
		return;
	ws->lease_over = true;
	log_warning("the lease of this node is over: what must not run twice is ended");
	workers_each(ws, end_with_lease, NULL);
}

/* ---- the loop ---- */

usec_t workers_next(const struct workers *ws)
{
	usec_t next = deadlines_next(&ws->deadlines), veil = deadlines_next(&ws->veils);

	next = veil < next ? veil : next;
	if (ws->lease_end && !ws->lease_over && ws->running && ws->lease_end < next)
		next = ws->lease_end;
	return ws->look_wanted && ws->look_after < next ? ws->look_after : next;
}

void workers_turn(struct workers *ws)
{
	usec_t now = clock_boot(&clock_system);
	struct deadline *d;

	watch_lease(ws);
	while ((d = deadlines_take(&ws->deadlines, now)))
		worker_due(SOURCE_OWNER(d, struct worker, deadline));
	while ((d = deadlines_take(&ws->veils, now))) {
		struct worker *w = SOURCE_OWNER(d, struct worker, veil.release);

		veil_release(&w->veil, &ws->veils, &w->output);
	}
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

/* ---- how one comes to be known ---- */

struct worker *worker_new(struct workers *ws, const struct frame_start *s)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	*w = (struct worker){.all = ws, .run = s->run, .fence = s->fence, .attempt = s->attempt,
		.grace = s->grace, .ends_with_lease = s->ends_with_lease, .exit = {-1, on_exit_ready}, .out = {-1, on_output}, .session.fd = -1, .exit_code = -1,
		.group = {.dir = -1, .events.fd = -1}};
	output_writer_init(&w->output, ws->output_dir, s->run, s->attempt, s->output_limit);
	veil_init(&w->veil);
	w->same_run = map_get(&ws->by_run, w->run);
	map_put(&ws->by_run, w->run, w);
	ws->count++;
	return w;
}

void workers_add_ended(struct workers *ws, const struct frame_ended *end)
{
	struct worker *w = worker_new(ws, &(struct frame_start){.run = end->run, .fence = end->fence, .attempt = end->attempt});

	w->phase = WORKER_ENDED;
	w->told = xcalloc(1, sizeof(*w->told));
	*w->told = *end;
	w->news = NEWS_ENDED;
}

/* ---- from the program that was here before ---- */

void workers_tell(struct workers *ws, int64_t run, int64_t fence, bool asked, unsigned news)
{
	struct worker *w = workers_find(ws, run, fence);

	w->asked = asked;
	w->news = 0;
	worker_post(w, news);
}

static bool watch_adopted(struct worker *w)
{
	return (w->exit.fd < 0 || source_watch(w->all->ep, &w->exit, EPOLL_CTL_ADD, EPOLLIN) == 0) &&
	       (w->out.fd < 0 || source_watch(w->all->ep, &w->out, EPOLL_CTL_ADD, EPOLLIN) == 0) &&
	       (w->session.fd < 0 || source_watch(w->all->ep, &w->session, EPOLL_CTL_ADD, EPOLLIN) == 0) &&
	       (w->phase != WORKER_ENDING || w->group.dir < 0 ||
		       source_watch(w->all->ep, &w->group.events, EPOLL_CTL_ADD, EPOLLPRI) == 0);
}

bool workers_adopt(struct workers *ws, const struct worker *from, char *error, struct err *e)
{
	struct worker *w = worker_new(ws, &(struct frame_start){.run = from->run, .fence = from->fence,
						  .attempt = from->attempt, .grace = from->grace});
	struct worker fresh = *w;

	*w = *from;
	w->all = ws;
	w->same_run = fresh.same_run;
	w->exit.on_ready = on_exit_ready;
	w->out.on_ready = on_output;
	worker_session_adopt(w);
	w->group.events.on_ready = on_group_change;
	w->group.spent |= w->phase == WORKER_ENDING;
	w->deadline = (struct deadline){};
	w->error = error;
	if (w->group.dir >= 0 && cgroup_adopt(ws->groups, &w->group) < 0)
		return err_set(e, ERR_INVALID, "the control group of run %lld is gone", (long long)w->run);
	output_writer_adopt(&w->output, ws->output_dir, w->run, w->attempt);
	if (!veil_adopt(&w->veil, &w->output))
		return err_set(e, ERR_INVALID, "the secrets of run %lld are gone", (long long)w->run);
	if (w->phase >= WORKER_RUNNING && w->phase <= WORKER_ENDING)
		ws->running++;
	if (w->phase >= WORKER_RUNNING && w->phase < WORKER_ENDING)
		map_put(&ws->by_pid, w->pid, w);
	if (w->phase == WORKER_ENDING)
		worker_ending_add(w);
	if (from->deadline.at)
		deadline_set(&ws->deadlines, &w->deadline, from->deadline.at);
	if (!watch_adopted(w))
		return err_errno(e, errno, "could not watch the worker of run %lld", (long long)w->run);
	worker_post(w, 0);
	return true;
}
