/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the spawner: connections, frames in, reports out. */
#include "exec/spawner.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "exec/frame.h"
#include "exec/payload.h"
#include "exec/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#define GUESTS_MAX 8                    /* connections that have not said hello */
#define HELLO_PATIENCE (5 * USEC_SEC)
#define FRAMES_PER_TURN 8               /* a start takes half a millisecond */
#define WORKERS_MAX 65536               /* known at a time, unacknowledged ends included */
#define STOP_PATIENCE (2 * USEC_SEC)    /* for the acknowledgement of the last ends */
#define EVENTS 64

struct conn {
	struct source source;
	struct spawner *spawner;        /* borrowed */
	uint32_t version;               /* 0: no hello yet */
	usec_t hello_until;             /* boottime */
	bool full;                      /* its socket takes no more: we listen again when it does */
	unsigned lists;                 /* list_done frames owed */
	char node[FRAME_NODE_MAX];
	struct conn *next_dead;
};

struct spawner {
	const struct spawner_options *o;
	int ep;
	struct source listen, signals, timer;
	struct conn *guests[GUESTS_MAX];
	struct conn *engine;            /* NULL: none */
	struct conn *dead;              /* freed at the end of the turn */
	struct workers workers;
	usec_t idle_since;              /* boottime; 0: not idle */
	usec_t stop_until;              /* 0: not stopping, or workers are left */
	usec_t armed;                   /* what the timer is set to; 0: off */
	bool leave;
};

/* ---- connections ---- */

static void forget_asked(struct worker *w, void *arg)
{
	(void)arg;
	w->asked = false;
	w->news = w->phase == WORKER_ENDED ? NEWS_ENDED : 0;
}

/* What it asked for and has not heard yet is kept for the next one, but for what never ran. */
static void forget_engine(struct spawner *sp)
{
	struct worker *w;

	while ((w = workers_unpost(&sp->workers)))
		if (w->phase == WORKER_NOT_STARTED)
			worker_forget(w);
	workers_each(&sp->workers, forget_asked, NULL);
}

static void conn_close(struct conn *c)
{
	struct spawner *sp = c->spawner;

	if (c->source.fd < 0)
		return;
	source_close(&c->source);
	for (size_t i = 0; i < GUESTS_MAX; i++)
		if (sp->guests[i] == c)
			sp->guests[i] = NULL;
	if (sp->engine == c) {
		sp->engine = NULL;
		forget_engine(sp);
	}
	c->next_dead = sp->dead;
	sp->dead = c;
}

/* A frame to the engine. False: it was not taken, and will not be before the socket says so. */
static bool conn_send(struct conn *c, const struct frame *f)
{
	int r;

	if (c->source.fd < 0 || c->full)
		return false;
	r = frame_send(c->source.fd, f, NULL, 0);
	if (r == -EAGAIN) {
		c->full = true; /* and nothing is read from it meanwhile, so that what we owe it stays bounded */
		r = source_watch(c->spawner->ep, &c->source, EPOLL_CTL_MOD, EPOLLOUT) < 0 ? -errno : -EAGAIN;
	}
	if (r < 0 && r != -EAGAIN) {
		log_warning("the engine '%s' is gone: %s; its jobs go on", c->node, strerror(-r));
		conn_close(c);
	}
	return r == 0;
}

static struct conn **guest_place(struct spawner *sp)
{
	struct conn **oldest = &sp->guests[0];

	for (size_t i = 0; i < GUESTS_MAX; i++) {
		if (!sp->guests[i])
			return &sp->guests[i];
		if (sp->guests[i]->hello_until < (*oldest)->hello_until)
			oldest = &sp->guests[i];
	}
	conn_close(*oldest);
	return oldest;
}

static bool peer_allowed(int fd)
{
	struct ucred cred = {};
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	if (cred.uid == geteuid() || cred.uid == 0)
		return true;
	log_warning("a connection of uid %u was refused", (unsigned)cred.uid);
	return false;
}

static void on_frames(struct source *s, uint32_t events);

static void on_connect(struct source *s, uint32_t events)
{
	struct spawner *sp = SOURCE_OWNER(s, struct spawner, listen);
	AUTO_FD fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct conn *c, **place;

	(void)events;
	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED)
			log_warning("could not accept a connection: %s", strerror(errno));
		return;
	}
	if (!peer_allowed(fd))
		return;
	place = guest_place(sp);
	c = xcalloc(1, sizeof(*c));
	*c = (struct conn){.source = {fd, on_frames}, .spawner = sp,
		.hello_until = clock_boot(&clock_system) + HELLO_PATIENCE};
	if (source_watch(sp->ep, &c->source, EPOLL_CTL_ADD, EPOLLIN) < 0) {
		free(c);
		return;
	}
	(void)STEAL_FD(fd);
	*place = c;
}

/* ---- a new engine ---- */

static void serve(struct spawner *sp, struct conn *c)
{
	struct frame f;

	if (sp->engine) {
		log_info("engine '%s' takes over from '%s'", c->node, sp->engine->node);
		frame_init(&f, FRAME_SUPERSEDED, sp->engine->version);
		sp->engine->full = false; /* the last word is tried in any case */
		conn_send(sp->engine, &f);
		if (sp->engine)
			conn_close(sp->engine);
	} else {
		log_info("serving engine '%s'", c->node);
	}
	for (size_t i = 0; i < GUESTS_MAX; i++)
		if (sp->guests[i] == c)
			sp->guests[i] = NULL;
	sp->engine = c;
}

static void hello(struct conn *c, const struct frame *f)
{
	struct frame answer;

	c->version = frame_version_pick(FRAME_VERSION_OLDEST, FRAME_VERSION, f->hello.oldest, f->hello.newest);
	if (!c->version) {
		log_warning("an engine speaks versions %u to %u, we speak %d to %d: refused", f->hello.oldest,
			f->hello.newest, FRAME_VERSION_OLDEST, FRAME_VERSION);
		frame_init(&answer, FRAME_REFUSED, 0);
		answer.refused.oldest = FRAME_VERSION_OLDEST;
		answer.refused.newest = FRAME_VERSION;
		frame_text(answer.refused.error, FRAME_TEXT_MAX, "no common version of the protocol");
		conn_send(c, &answer);
		conn_close(c);
		return;
	}
	frame_text(c->node, sizeof(c->node), f->hello.node);
	serve(c->spawner, c);
	frame_init(&answer, FRAME_WELCOME, 0);
	answer.welcome.version = c->version;
	frame_text(answer.welcome.spawner, sizeof(answer.welcome.spawner), c->spawner->o->id);
	conn_send(c, &answer);
}

/* ---- what an engine asks ---- */

/* The same bytes from the start, for reading only. */
static int stdin_reopen(int fd, struct err *e)
{
	char path[64];
	size_t size;
	int in;

	if (!payload_sealed(fd, FRAME_STDIN_MAX, &size, e))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	in = open(path, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		err_errno(e, errno, "could not open the input of a command");
	return in;
}


static bool start(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	struct workers *ws = &c->spawner->workers;
	struct worker *w = workers_find(ws, f->start.run, f->start.fence);
	AUTO_DONE(payload) p = {};
	AUTO_FD in = -1;

	if (w) { /* answered by what became of the first one */
		w->asked = true;
		worker_post(w, w->phase == WORKER_ENDED		? NEWS_ENDED
			       : w->phase == WORKER_NOT_STARTED ? NEWS_NOT_STARTED
								: NEWS_STARTED);
		return true;
	}
	if (!payload_read(&p, fds[0], e))
		return false;
	if (f->start.has_stdin && (in = stdin_reopen(fds[1], e)) < 0)
		return false;
	if (ws->stopping)
		w = workers_refuse(ws, &f->start, "the spawner is being stopped");
	else if (ws->count >= WORKERS_MAX)
		w = workers_refuse(ws, &f->start, "the spawner has too many workers and ends not yet acknowledged");
	else
		w = workers_start(ws, &f->start, &p, in);
	w->asked = true;
	worker_post(w, 0);
	return true;
}

static bool cancel(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	struct worker *w = workers_find(&c->spawner->workers, f->run.run, f->run.fence);

	(void)fds;
	(void)e;
	if (w)
		worker_end(w, ATTEMPT_CANCELLED);
	return true;
}

static bool ack(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	struct worker *w = workers_find(&c->spawner->workers, f->run.run, f->run.fence);

	(void)fds;
	(void)e;
	if (w && w->phase == WORKER_ENDED)
		worker_forget(w);
	return true;
}

static void list_one(struct worker *w, void *arg)
{
	(void)arg;
	w->asked = true;
	worker_post(w, w->phase == WORKER_NOT_STARTED || w->phase == WORKER_ENDED ? 0 : NEWS_HAS);
}

static bool list(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	(void)f;
	(void)fds;
	(void)e;
	workers_each(&c->spawner->workers, list_one, NULL);
	c->lists++;
	return true;
}

static bool forget_output(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	struct err ignored = {};

	(void)fds;
	(void)e;
	if (!output_remove(c->spawner->o->output_dir, f->attempt.run, f->attempt.attempt, &ignored))
		log_warning("%s", ignored.msg);
	return true;
}

static bool (*const requests[FRAME_TYPE_MAX])(struct conn *, const struct frame *, const int *, struct err *) = {
	[FRAME_START] = start,
	[FRAME_CANCEL] = cancel,
	[FRAME_ACK] = ack,
	[FRAME_LIST] = list,
	[FRAME_FORGET_OUTPUT] = forget_output,
};

static void conn_refuse(struct conn *c, const char *why)
{
	log_warning("the connection of '%s' was closed: %s", c->version ? c->node : "a stranger", why);
	conn_close(c);
}

/* One frame. False: nothing more for now. */
static bool conn_frame(struct conn *c)
{
	int fds[FRAME_FDS_MAX];
	struct err e = {};
	struct frame f;
	size_t len, n = 0;
	int r = frame_recv(c->source.fd, &f, &len, fds, &n);

	if (r == -ECONNRESET)
		return true; /* it left without reading all; what it had said before is still there */
	if (r == -EAGAIN)
		return false;
	if (r < 0) {
		conn_refuse(c, r == -EBADMSG ? "a packet that is no frame" : strerror(-r));
		return false;
	}
	if (len == 0 && n == 0) {
		if (c->version)
			log_info("engine '%s' has left; its jobs go on", c->node);
		conn_close(c);
		return false;
	}
	if (!frame_check(&f, len, n, FRAME_FROM_ENGINE, c->version, &e))
		conn_refuse(c, e.msg);
	else if (f.type == FRAME_HELLO)
		hello(c, &f);
	else if (!requests[f.type](c, &f, fds, &e))
		conn_refuse(c, e.msg);
	frame_fds_close(fds, n);
	return c->source.fd >= 0;
}

static void on_frames(struct source *s, uint32_t events)
{
	struct conn *c = SOURCE_OWNER(s, struct conn, source);

	if (s->fd < 0)
		return;
	if (c->full && events & EPOLLOUT) {
		c->full = false;
		if (source_watch(c->spawner->ep, s, EPOLL_CTL_MOD, EPOLLIN) < 0)
			conn_refuse(c, strerror(errno));
		return;
	}
	for (int i = 0; i < FRAMES_PER_TURN && conn_frame(c);)
		i++;
}

/* ---- what an engine is told ---- */

static void started_frame(struct frame *f, const struct worker *w)
{
	f->started = (struct frame_started){.run = w->run, .fence = w->fence, .attempt = w->attempt,
		.pid = w->pid, .started_at = w->started_at};
}

static void not_started_frame(struct frame *f, const struct worker *w)
{
	f->not_started = (struct frame_not_started){.run = w->run, .fence = w->fence, .attempt = w->attempt,
		.transient = w->transient};
	frame_text(f->not_started.error, FRAME_TEXT_MAX, w->error);
}

static int64_t usec_of(struct timeval t)
{
	return t.tv_sec * USEC_SEC + t.tv_usec;
}

static void ended_frame(struct frame *f, const struct worker *w)
{
	f->ended = (struct frame_ended){
		.run = w->run,
		.fence = w->fence,
		.attempt = w->attempt,
		.pid = w->pid,
		.started_at = w->started_at,
		.ended_at = w->ended_at,
		.outcome = w->forced != ATTEMPT_RUNNING ? w->forced
			   : w->exit_code == 0          ? ATTEMPT_SUCCEEDED
							: ATTEMPT_FAILED,
		.exit_code = w->exit_code,
		.term_signal = w->term_signal,
		.cpu_user = usec_of(w->usage.ru_utime),
		.cpu_system = usec_of(w->usage.ru_stime),
		.max_rss = w->usage.ru_maxrss * INT64_C(1024),
		.output_bytes = output_total(&w->output),
		.output_dropped = output_dropped(&w->output),
	};
	frame_text(f->ended.error, FRAME_TEXT_MAX, w->error);
}

static const struct {
	enum worker_news news;
	enum frame_type type;
	void (*fill)(struct frame *f, const struct worker *w);
} reports[] = {
	{NEWS_STARTED, FRAME_STARTED, started_frame},
	{NEWS_HAS, FRAME_HAS, started_frame},
	{NEWS_NOT_STARTED, FRAME_NOT_STARTED, not_started_frame},
	{NEWS_ENDED, FRAME_ENDED, ended_frame},
};

/* False: the socket is full, or there is nobody; the rest of the news stays with the worker. */
static bool report(struct conn *c, struct worker *w)
{
	for (size_t i = 0; i < ELEMENTS(reports); i++) {
		struct frame f;

		if (!(w->news & reports[i].news))
			continue;
		frame_init(&f, reports[i].type, c->version);
		reports[i].fill(&f, w);
		if (!conn_send(c, &f))
			return false;
		w->news &= ~(unsigned)reports[i].news;
	}
	if (w->phase == WORKER_NOT_STARTED)
		worker_forget(w);
	return true;
}

static void report_all(struct spawner *sp)
{
	struct worker *w;
	struct frame f;

	while (sp->engine && !sp->engine->full && (w = workers_unpost(&sp->workers)))
		if (!report(sp->engine, w)) {
			if (sp->engine)
				worker_post(w, 0);
			else if (w->phase == WORKER_NOT_STARTED)
				worker_forget(w);
		}
	frame_init(&f, FRAME_LIST_DONE, sp->engine ? sp->engine->version : 0);
	while (sp->engine && !sp->engine->full && sp->engine->lists && conn_send(sp->engine, &f))
		sp->engine->lists--;
}

/* ---- the loop ---- */

static void on_signal(struct source *s, uint32_t events)
{
	struct spawner *sp = SOURCE_OWNER(s, struct spawner, signals);
	struct signalfd_siginfo si;

	(void)events;
	while (read(s->fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			sp->workers.look_wanted = true;
		} else if ((si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT) && !sp->workers.stopping) {
			log_info("told to stop: ending %zu workers", sp->workers.running);
			workers_stop(&sp->workers);
		}
	}
}

static void on_timer(struct source *s, uint32_t events)
{
	struct spawner *sp = SOURCE_OWNER(s, struct spawner, timer);
	uint64_t expirations;

	(void)events;
	if (read(s->fd, &expirations, sizeof(expirations)) > 0)
		sp->armed = 0;
}

/* Whether it is time to leave, or when it may be. */
static usec_t consider_leaving(struct spawner *sp, usec_t now)
{
	struct workers *ws = &sp->workers;

	if (ws->stopping) {
		if (ws->running)
			return USEC_NEVER;
		if (!sp->stop_until)
			sp->stop_until = now + STOP_PATIENCE;
		sp->leave = ws->count == 0 || !sp->engine || now >= sp->stop_until;
		return sp->stop_until;
	}
	if (sp->engine || ws->count || !sp->o->linger) {
		sp->idle_since = 0;
		return USEC_NEVER;
	}
	if (!sp->idle_since)
		sp->idle_since = now;
	sp->leave = now >= sp->idle_since + sp->o->linger;
	return sp->idle_since + sp->o->linger;
}

static usec_t guests_due(struct spawner *sp, usec_t now)
{
	usec_t next = USEC_NEVER;

	for (size_t i = 0; i < GUESTS_MAX; i++) {
		struct conn *c = sp->guests[i];

		if (c && c->hello_until <= now)
			conn_refuse(c, "it said no hello");
		else if (c && c->hello_until < next)
			next = c->hello_until;
	}
	return next;
}

/* The timer is only ever moved to an earlier instant; one that comes too early costs a turn. */
static void arm(struct spawner *sp, usec_t at)
{
	struct itimerspec t = {.it_value = {.tv_sec = at / USEC_SEC, .tv_nsec = at % USEC_SEC * 1000}};

	if (at == USEC_NEVER || (sp->armed && sp->armed <= at))
		return;
	if (timerfd_settime(sp->timer.fd, TFD_TIMER_ABSTIME, &t, NULL) < 0)
		log_error("could not set the timer: %s", strerror(errno));
	sp->armed = at;
}

static usec_t earlier(usec_t a, usec_t b)
{
	return a < b ? a : b;
}

static void turn(struct spawner *sp)
{
	usec_t now = clock_boot(&clock_system), next;

	workers_turn(&sp->workers);
	report_all(sp);
	next = earlier(guests_due(sp, now), consider_leaving(sp, now));
	arm(sp, earlier(next, workers_next(&sp->workers)));
	for (struct conn *c; (c = sp->dead);) {
		sp->dead = c->next_dead;
		free(c);
	}
}

static bool watch_signals(struct spawner *sp, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sp->signals = (struct source){signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), on_signal};
	sp->timer = (struct source){timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), on_timer};
	sp->listen = (struct source){sp->o->listen, on_connect};
	if (sp->signals.fd < 0 || sp->timer.fd < 0 || source_watch(sp->ep, &sp->signals, EPOLL_CTL_ADD, EPOLLIN) < 0 ||
		source_watch(sp->ep, &sp->timer, EPOLL_CTL_ADD, EPOLLIN) < 0 ||
		source_watch(sp->ep, &sp->listen, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return err_errno(e, errno, "could not watch signals, timer and socket");
	return true;
}

static bool spawner_loop(struct spawner *sp, struct err *e)
{
	struct epoll_event events[EVENTS];

	turn(sp);
	while (!sp->leave) {
		int n = epoll_wait(sp->ep, events, EVENTS, -1);

		if (n < 0 && errno != EINTR)
			return err_errno(e, errno, "could not wait for events");
		for (int i = 0; i < n; i++) {
			struct source *s = events[i].data.ptr;

			s->on_ready(s, events[i].events);
		}
		turn(sp);
	}
	return true;
}

static void spawner_done(struct spawner *sp)
{
	for (size_t i = 0; i < GUESTS_MAX; i++)
		if (sp->guests[i])
			conn_close(sp->guests[i]);
	if (sp->engine)
		conn_close(sp->engine);
	for (struct conn *c; (c = sp->dead);) {
		sp->dead = c->next_dead;
		free(c);
	}
	workers_done(&sp->workers);
	source_close(&sp->signals);
	source_close(&sp->timer);
	if (sp->ep >= 0)
		close(sp->ep);
}

bool spawner_run(const struct spawner_options *o, struct err *e)
{
	__attribute__((cleanup(spawner_done))) struct spawner sp = {.o = o, .signals.fd = -1, .timer.fd = -1};

	sp.ep = epoll_create1(EPOLL_CLOEXEC);
	if (sp.ep < 0)
		return err_errno(e, errno, "could not make an epoll set");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_errno(e, errno, "could not become the reaper of orphans");
	return workers_init(&sp.workers, sp.ep, o->output_dir, o->id, e) && watch_signals(&sp, e) &&
	       spawner_loop(&sp, e);
}
