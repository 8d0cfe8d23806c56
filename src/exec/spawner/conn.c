/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections, authenticates the daemon, dispatches its frames. */
#include "exec/spawner/conn.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "core/start/start_failure.h"
#include "exec/child/artifact_mount.h"
#include "exec/proto/payload.h"
#include "exec/spawner/admission.h"
#include "exec/spawner/reexec_state.h"
#include "exec/spawner/start_queue.h"
#include "exec/spawner/table_reader.h"
#include "exec/worker/worker.h"
#include "exec/worker/worker_state.h"
#include "exec/worker/worker_start.h"
#include "exec/worker/workers.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO_TIMEOUT (5 * USEC_SEC)
#define FRAMES_PER_TURN 8 /* per connection and loop iteration; a start takes 0.5 ms */
#define WORKERS_MAX 65536 /* including ended workers that are not acknowledged */

/* ---- connections ---- */

static void worker_detach_daemon(struct worker *w, void *arg)
{
	(void)arg;
	w->asked = false;
	w->reports = w->phase == WORKER_ENDED ? REPORT_ENDED : 0;
}

/*
 * The daemon has disconnected. Ends and running workers are kept for the next daemon; starts that
 * did not run are dropped.
 */
static void conns_daemon_gone(struct conns *cs)
{
	struct worker *w;

	start_queue_drop(cs->starts);
	table_reader_want(cs->tables, false);
	workers_give_up(cs->workers, "the daemon that requested it has disconnected");
	while ((w = workers_report_next(cs->workers)))
		if (w->phase == WORKER_NOT_STARTED)
			worker_forget(w);
	workers_each(cs->workers, worker_detach_daemon, NULL);
}

void conn_close(struct conn *c)
{
	struct conns *cs = c->all;

	if (c->source.fd < 0)
		return;
	epoll_source_close(&c->source);
	for (size_t i = 0; i < UNAUTHENTICATED_MAX; i++) {
		if (cs->unauthenticated[i] == c)
			cs->unauthenticated[i] = NULL;
		if (cs->warrant_clients[i] == c)
			cs->warrant_clients[i] = NULL;
	}
	if (cs->daemon == c) {
		cs->daemon = NULL;
		conns_daemon_gone(cs);
	}
	c->next_closed = cs->closed;
	cs->closed = c;
}

bool conn_send(struct conn *c, const struct frame *f)
{
	return conn_send_with(c, f, NULL, 0);
}

bool conn_send_with(struct conn *c, const struct frame *f, const int *fds, size_t n)
{
	int r;

	if (c->source.fd < 0 || c->full)
		return false;
	r = frame_send(c->source.fd, f, fds, n);
	if (r == -EAGAIN) {
		/* Stop reading requests meanwhile, so that the queue of answers stays bounded. */
		c->full = true;
		r = epoll_source_watch(c->all->ep, &c->source, EPOLL_CTL_MOD, EPOLLOUT) < 0 ? -errno : -EAGAIN;
	}
	if (r < 0 && r != -EAGAIN) {
		log_warning("lost the connection to the daemon '%s': %s; its jobs keep running",
			c->node, strerror(-r));
		conn_close(c);
	}
	return r == 0;
}

static size_t conns_of_uid(struct conn *const unauthenticated[UNAUTHENTICATED_MAX], uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < UNAUTHENTICATED_MAX; i++)
		n += unauthenticated[i] && unauthenticated[i]->peer == uid;
	return n;
}

/*
 * A slot for a new connection of that uid. If there is none, the oldest connection of the uid with the most
 * connections, the new one included, is closed: a user who connects again and again closes his own connections.
 */
static struct conn **unauthenticated_slot(struct conn *unauthenticated[UNAUTHENTICATED_MAX], uid_t uid)
{
	struct conn **victim = NULL;
	size_t most = 0;

	for (size_t i = 0; i < UNAUTHENTICATED_MAX; i++) {
		struct conn *c = unauthenticated[i];
		size_t n;

		if (!c)
			return &unauthenticated[i];
		n = conns_of_uid(unauthenticated, c->peer) + (c->peer == uid);
		if (n < most || (n == most && c->hello_until >= (*victim)->hello_until))
			continue;
		victim = &unauthenticated[i];
		most = n;
	}
	conn_close(*victim);
	return victim;
}

static void on_conn_frames(struct epoll_source *s, uint32_t events);

/*
 * The only constructor of a connection. The peer's uid always comes from the kernel (SO_PEERCRED),
 * both for an accepted descriptor and for one that was inherited over a re-exec. NULL: the uid
 * cannot be read or may not connect; the caller keeps the descriptor.
 */
static struct conn *conn_new(struct conns *cs, int fd, bool warrant_only)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	struct conn *c;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid == (uid_t)-1) {
		log_warning("refused a connection: the kernel does not report the uid of the peer");
		return NULL;
	}
	if (!warrant_only && cred.uid != cs->daemon_uid && cred.uid != 0) {
		log_warning("refused a connection of uid %u", (unsigned)cred.uid);
		return NULL;
	}
	c = xcalloc(1, sizeof(*c));
	*c = (struct conn){.source = {fd, on_conn_frames}, .all = cs, .peer = cred.uid, .warrant_only = warrant_only};
	return c;
}

static void connection_accept(struct conns *cs, int listen, bool warrant_only)
{
	AUTO_FD fd = accept4(listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct conn *c;

	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED)
			log_warning("could not accept a connection: %s", strerror(errno));
		return;
	}
	c = conn_new(cs, fd, warrant_only);
	if (!c)
		return;
	c->hello_until = clock_boot(&clock_system) + HELLO_TIMEOUT;
	if (epoll_source_watch(cs->ep, &c->source, EPOLL_CTL_ADD, EPOLLIN) < 0) {
		free(c);
		return;
	}
	(void)STEAL_FD(fd);
	*unauthenticated_slot(warrant_only ? cs->warrant_clients : cs->unauthenticated, c->peer) = c;
}

static void on_daemon_connect(struct epoll_source *s, uint32_t events)
{
	(void)events;
	connection_accept(CONTAINER_OF(s, struct conns, listen), s->fd, false);
}

static void on_warrant_client_connect(struct epoll_source *s, uint32_t events)
{
	(void)events;
	connection_accept(CONTAINER_OF(s, struct conns, warrant_listen), s->fd, true);
}

/* ---- handshake ---- */

static void conns_set_daemon(struct conns *cs, struct conn *c)
{
	struct frame f;

	if (cs->daemon) {
		log_info("daemon '%s' takes over from '%s'", c->node, cs->daemon->node);
		frame_init(&f, FRAME_SUPERSEDED, cs->daemon->version);
		cs->daemon->full = false; /* try to send it even if the socket was full */
		conn_send(cs->daemon, &f);
		if (cs->daemon)
			conn_close(cs->daemon);
	} else {
		log_info("serving daemon '%s'", c->node);
	}
	for (size_t i = 0; i < UNAUTHENTICATED_MAX; i++)
		if (cs->unauthenticated[i] == c)
			cs->unauthenticated[i] = NULL;
	cs->daemon = c;
}

static void hello_handle(struct conn *c, const struct frame *f)
{
	struct frame answer;

	c->version = frame_version_pick(FRAME_VERSION_OLDEST, FRAME_VERSION, f->hello.oldest,
		f->hello.newest);
	if (!c->version) {
		log_warning("refused a daemon: it supports protocol versions %u to %u, this spawner %d to %d", f->hello.oldest,
			f->hello.newest, FRAME_VERSION_OLDEST, FRAME_VERSION);
		frame_init(&answer, FRAME_REFUSED, 0);
		answer.refused.oldest = FRAME_VERSION_OLDEST;
		answer.refused.newest = FRAME_VERSION;
		frame_text(answer.refused.error, FRAME_TEXT_MAX,
			"no common version of the protocol");
		conn_send(c, &answer);
		conn_close(c);
		return;
	}
	frame_text(c->node, sizeof(c->node), f->hello.node);
	conns_set_daemon(c->all, c);
	frame_init(&answer, FRAME_WELCOME, 0);
	answer.welcome.version = c->version;
	answer.welcome.limits_refused = worker_limits_refused(c->all->workers);
	answer.welcome.warrants = (uint32_t)admission_policy(c->all->admission);
	frame_text(answer.welcome.spawner, sizeof(answer.welcome.spawner), c->all->id);
	conn_send(c, &answer);
	c->sandboxes_pending = true;
}

/* ---- requests of the daemon ---- */

/*
 * Opens the memfd again: read-only, with an offset of 0 of its own. Returns a descriptor or -errno.
 */
static int stdin_reopen(int fd)
{
	char path[64];
	int in;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	in = open(path, O_RDONLY | O_CLOEXEC);
	return in < 0 ? -errno : in;
}

static bool start_part_valid(const struct frame_start *s, const struct exec_spec *o, struct err *e)
{
	return s->part <= (int64_t)o->notices.n ||
	       err_set(e, ERR_INVALID, "invalid start: the job has no part %lld", (long long)s->part);
}

static bool start_artifact_valid(const struct frame_start *s, const struct exec_spec *o,
	const int *fds, struct err *e)
{
	if (s->has_artifact != (o->artifact && s->part == 0))
		return err_set(e, ERR_INVALID,
			"invalid start: artifact descriptor and specification disagree");
	return !s->has_artifact || artifact_mount_valid(fds[s->has_stdin ? 2 : 1]) ||
	       err_set(e, ERR_INVALID, "invalid start: the artifact is not a directory");
}

/* The reason why no start is accepted at the moment; NULL: starts are accepted. */
static const char *start_refusal(const struct workers *ws)
{
	if (ws->stopping)
		return "the spawner is being stopped";
	if (ws->count >= WORKERS_MAX || ws->running >= ws->running_max)
		return "the spawner has reached its maximum number of workers";
	return NULL;
}

static void start_request_new(struct conns *cs, const struct frame_start *s, struct payload *p,
	const int *fds)
{
	const char *why = start_refusal(cs->workers);
	AUTO_FD in = -1;
	AUTO_FD artifact = -1;
	struct worker *w;

	if (!why && s->has_stdin && (in = stdin_reopen(fds[1])) < 0)
		why = "could not open the input of the command";
	if (!why && s->has_artifact && (artifact = fcntl(fds[s->has_stdin ? 2 : 1], F_DUPFD_CLOEXEC, 3)) < 0)
		why = "could not keep the artifact open";
	if (!why) {
		start_queue_add(cs->starts,
			&(struct start_request){s, p, STEAL_FD(in), STEAL_FD(artifact)});
		return;
	}
	w = worker_start_refuse(cs->workers, s, cs->workers->stopping ? START_STOPPING : START_TRANSIENT, why);
	w->asked = true;
	worker_report_queue(w, 0);
}

static bool request_start(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	struct workers *ws = c->all->workers;
	struct worker *w = workers_find(ws, f->start.run, f->start.fence);
	AUTO_DONE(payload) p = {};
	size_t size;

	if (w) { /* a repeated start gets the state of the first */
		w->asked = true;
		worker_report_queue(w, w->phase == WORKER_ENDED		? REPORT_ENDED
			       : w->phase == WORKER_NOT_STARTED ? REPORT_NOT_STARTED
			       : w->phase == WORKER_OPENING	? 0
								: REPORT_STARTED);
		return true;
	}
	if (start_queue_has(c->all->starts, f->start.run, f->start.fence))
		return true;
	if (f->type == FRAME_START_SMALL
			? !payload_parse(&p, f->start_small.payload, (size_t)f->start_small.payload_len, e)
			: !payload_read(&p, fds[0], e))
		return false;
	if (!start_part_valid(&f->start, &p.spec, e) ||
		!start_artifact_valid(&f->start, &p.spec, fds, e) ||
		(f->start.has_stdin && !payload_sealed(fds[1], FRAME_STDIN_MAX, &size, e)))
		return false;
	start_request_new(c->all, &f->start, &p, fds);
	return true;
}

static bool request_cancel(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	struct worker *w = workers_find(c->all->workers, f->run.run, f->run.fence);

	(void)fds;
	(void)e;
	if (w)
		worker_end(w, ATTEMPT_CANCELLED);
	else
		start_queue_cancel(c->all->starts, f->run.run, f->run.fence);
	return true;
}

static bool request_ack(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	struct worker *w = workers_find(c->all->workers, f->run.run, f->run.fence);

	(void)fds;
	(void)e;
	if (w && w->phase == WORKER_ENDED)
		worker_forget(w);
	return true;
}

static void worker_list(struct worker *w, void *arg)
{
	(void)arg;
	w->asked = true;
	worker_report_queue(w, w->phase <= WORKER_OPENING || w->phase == WORKER_ENDED ? 0
		: w->signs.progress				  ? REPORT_HAS | REPORT_PROGRESS
							  : REPORT_HAS);
}

static bool request_list(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	(void)f;
	(void)fds;
	(void)e;
	workers_each(c->all->workers, worker_list, NULL);
	c->lists++;
	return true;
}

static bool request_lease(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	(void)fds;
	(void)e;
	workers_lease(c->all->workers, f->lease.end_at, f->lease.kill_at);
	return true;
}

static bool request_forget_output(struct conn *c, const struct frame *f, const int *fds,
	struct err *e)
{
	struct err ignored = {};

	(void)fds;
	(void)e;
	if (f->attempt.attempt == 0)
		worker_state_forget(c->all->workers, f->attempt.run);
	else if (!output_file_remove(c->all->output_dir, f->attempt.run, f->attempt.attempt, &ignored))
		log_warning("%s", ignored.msg);
	return true;
}

static bool request_open_file(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	return open_files_add(&c->all->starts->files, f->open_file.uid, fds[0], fds[1], e);
}

static bool request_state(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	return open_files_add_state(&c->all->starts->files, &f->state, fds[0], fds[1], e);
}

static bool request_watch_tables(struct conn *c, const struct frame *f, const int *fds, struct err *e)
{
	(void)fds;
	(void)e;
	table_reader_want(c->all->tables, f->watch_tables.on);
	return true;
}

static bool (*const requests[FRAME_TYPE_MAX])(struct conn *, const struct frame *, const int *,
	struct err *) = {
	[FRAME_START] = request_start,
	[FRAME_START_SMALL] = request_start,
	[FRAME_CANCEL] = request_cancel,
	[FRAME_ACK] = request_ack,
	[FRAME_LIST] = request_list,
	[FRAME_LEASE] = request_lease,
	[FRAME_FORGET_OUTPUT] = request_forget_output,
	[FRAME_OPEN_FILE] = request_open_file,
	[FRAME_STATE] = request_state,
	[FRAME_WATCH_TABLES] = request_watch_tables,
};

static void conn_refuse(struct conn *c, const char *why)
{
	log_warning("closed the connection of '%s': %s", c->version ? c->node : "an unauthenticated client", why);
	conn_close(c);
}

/* Reads and handles one frame. False: there is no more to read. */
static bool conn_frame_read(struct conn *c)
{
	int fds[FRAME_FDS_MAX];
	struct err e = {};
	struct frame f;
	size_t len, n = 0;
	int r = frame_recv(c->source.fd, &f, &len, fds, &n);

	if (r == -ECONNRESET)
		/* The peer closed with unread data; its own frames can still be read. */
		return true;
	if (r == -EAGAIN)
		return false;
	if (r < 0) {
		conn_refuse(c, r == -EBADMSG ? "the packet is not a frame" : strerror(-r));
		return false;
	}
	if (len == 0 && n == 0) {
		if (c->version)
			log_info("daemon '%s' has disconnected; its jobs keep running", c->node);
		conn_close(c);
		return false;
	}
	if (!frame_check(&f, len, n, FRAME_FROM_DAEMON, c->version, &e))
		conn_refuse(c, e.msg);
	else if (f.type == FRAME_ASK_WARRANT)
		conn_warrant_request(c, &f, fds[0]);
	else if (c->warrant_only)
		conn_refuse(c, "the warrant socket accepts only requests for warrants");
	else if (f.type == FRAME_HELLO)
		hello_handle(c, &f);
	else if (!requests[f.type](c, &f, fds, &e))
		conn_refuse(c, e.msg);
	frame_fds_close(fds, n);
	return c->source.fd >= 0;
}

static void on_conn_frames(struct epoll_source *s, uint32_t events)
{
	struct conn *c = CONTAINER_OF(s, struct conn, source);

	if (s->fd < 0)
		return;
	if (c->full && events & EPOLLOUT) {
		c->full = false;
		if (epoll_source_watch(c->all->ep, s, EPOLL_CTL_MOD, EPOLLIN) < 0)
			conn_refuse(c, strerror(errno));
		return;
	}
	for (int i = 0; i < FRAMES_PER_TURN && conn_frame_read(c);)
		i++;
}

/* ---- all connections ---- */

/* Restores a connection after a re-exec. If its peer may not connect, the connection is closed. */
bool conns_resume(struct conns *cs, const struct reexec_state_conn *from, const char *node,
	struct err *e)
{
	struct conn *c = conn_new(cs, from->fd, false);

	if (!c) {
		close(from->fd);
		return true;
	}
	c->version = from->version;
	c->hello_until = from->hello_until;
	c->full = from->full;
	c->lists = from->lists;
	c->sandboxes_pending = from->daemon;
	/* what the daemon asked for is not part of the state; a list that it did not ask for is ignored */
	if (from->daemon && c->version >= 3)
		table_reader_want(cs->tables, true);
	frame_text(c->node, sizeof(c->node), node);
	if (from->daemon)
		cs->daemon = c;
	else
		*unauthenticated_slot(cs->unauthenticated, c->peer) = c;
	return epoll_source_watch(cs->ep, &c->source, EPOLL_CTL_ADD, c->full ? EPOLLOUT : EPOLLIN) == 0 ||
	       err_errno(e, errno, "could not watch the connection of '%s'", c->node);
}

int conns_watch(struct conns *cs, int listen, int warrant_listen)
{
	cs->listen = (struct epoll_source){listen, on_daemon_connect};
	cs->warrant_listen = (struct epoll_source){warrant_listen, on_warrant_client_connect};
	if (warrant_listen >= 0 &&
		epoll_source_watch(cs->ep, &cs->warrant_listen, EPOLL_CTL_ADD, EPOLLIN) < 0)
		return -errno;
	return epoll_source_watch(cs->ep, &cs->listen, EPOLL_CTL_ADD, EPOLLIN) < 0 ? -errno : 0;
}

usec_t conns_cleanup(struct conns *cs, usec_t now)
{
	usec_t next = USEC_NEVER;

	for (size_t i = 0; i < 2 * (size_t)UNAUTHENTICATED_MAX; i++) {
		struct conn *c = i < UNAUTHENTICATED_MAX ? cs->unauthenticated[i] : cs->warrant_clients[i - UNAUTHENTICATED_MAX];

		if (c && c->hello_until <= now)
			conn_refuse(c, "no hello within the timeout");
		else if (c && c->hello_until < next)
			next = c->hello_until;
	}
	for (struct conn *c; (c = cs->closed);) {
		cs->closed = c->next_closed;
		free(c);
	}
	return next;
}

void conns_done(struct conns *cs)
{
	for (size_t i = 0; i < UNAUTHENTICATED_MAX; i++) {
		if (cs->unauthenticated[i])
			conn_close(cs->unauthenticated[i]);
		if (cs->warrant_clients[i])
			conn_close(cs->warrant_clients[i]);
	}
	if (cs->daemon)
		conn_close(cs->daemon);
	conns_cleanup(cs, 0);
	conns_forget_checked(cs);
}
