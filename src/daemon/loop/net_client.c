/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to jobsched-net until each has a result. */
#include "daemon/loop/net_client.h"
#include "base/backoff.h"
#include "base/background.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/loop/net_outgoing.h"
#include "daemon/loop/net_pending.h"
#include "net/net_packet.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define RETRY_DELAY (2 * USEC_SEC)       /* between attempts to connect */
/* Time for a restart of jobsched-net before requests are answered with NET_BUSY. */
#define DOWN_PATIENCE (4 * USEC_SEC)
/* Added to four times the timeout of a request, which is tried up to three times. */
#define ANSWER_PATIENCE (60 * USEC_SEC)
#define PACKETS_PER_TURN 64

struct net_client {
	sd_event *ev; /* borrowed */
	struct net_client_options o;
	struct net_client_kind kinds[NET_KIND_MAX];
	int fd;               /* -1: not connected */
	uint32_t version;     /* 0: the handshake is not complete */
	uint32_t life;        /* of the connected process */
	usec_t deadline;      /* boottime: end of the run lease; USEC_NEVER: none */
	bool allowed;         /* net_client_connect() was called */
	bool synced, superseded;
	usec_t down_since;    /* boottime */
	struct err down;
	sd_event_source *source, *timer;
	/* user mode: pidfd of the process that starts jobsched-net; NULL: none */
	sd_event_source *launching;
	pid_t launching_pid;
	struct net_outgoing out;
	sd_event_source *flush; /* sends the packets after the other events of this turn */
	struct net_packet in;
	struct net_pendings pending;
	struct backoff backoff;
	usec_t connect_at;    /* boottime: no attempt to connect before */
};

/* ---- sending ---- */

static int on_flush(sd_event_source *source, void *arg)
{
	struct net_client *c = arg;
	int r = c->fd >= 0 ? net_outgoing_flush(&c->out, c->fd) : 0;

	(void)source;
	if (r == -EAGAIN || r == -ETOOMANYREFS)
		sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLOUT);
	else if (r < 0)
		shutdown(c->fd, SHUT_RDWR); /* the loop sees the end of the connection */
	else if (c->fd >= 0)
		sd_event_source_set_io_events(c->source, EPOLLIN);
	return 0;
}

/* The frame leaves with the others of this turn of the loop. */
static void send_bytes(struct net_client *c, const struct net_frame *f, const struct buf *bytes, int fd /* moved */)
{
	net_outgoing_add(&c->out, f, bytes, fd);
	sd_event_source_set_enabled(c->flush, SD_EVENT_ONESHOT);
}

static void send_frame(struct net_client *c, const struct net_frame *f, int fd /* moved */)
{
	send_bytes(c, f, &(struct buf){}, fd);
}

static void send_settings(struct net_client *c)
{
	struct net_frame f;

	net_frame_init(&f, NET_SETTINGS, c->version);
	f.settings.budget = c->o.budget;
	send_frame(c, &f, -1);
}

static void send_deadline(struct net_client *c)
{
	struct net_frame f;

	if (c->version < NET_FRAME_VERSION_CALLS)
		return;
	net_frame_init(&f, NET_DEADLINE, c->version);
	f.deadline.end_at = c->deadline;
	send_frame(c, &f, -1);
}

static bool is_call(const struct net_pending *p)
{
	return p->request.id.kind == NET_KIND_CALL;
}

/* The connected jobsched-net is too old for the request. */
static bool too_new(const struct net_client *c, const struct net_pending *p)
{
	return c->version && ((is_call(p) && c->version < NET_FRAME_VERSION_CALLS) ||
		(p->request.id.kind == NET_KIND_S3 && c->version < NET_FRAME_VERSION_S3));
}

/* Since version 4 a small payload follows the fields of its frame. */
static bool sends_bytes(const struct net_client *c, const struct net_pending *p)
{
	return c->version >= NET_FRAME_VERSION_BATCH && p->bytes.len > 0 && p->bytes.len <= NET_INLINE_MAX;
}

/* A memory file with the payload, or a copy of its descriptor. -1: an error. */
static int payload_descriptor(const struct net_pending *p)
{
	return p->bytes.len > 0 ? io_memfd_sealed("jobsched-net-request", p->bytes.data, p->bytes.len) : dup(p->payload);
}

/* A call waits for a version of jobsched-net that knows calls, and so do storage requests. */
static void send_pending(struct net_client *c, struct net_pending *p)
{
	const struct net_client_kind *k = &c->kinds[p->request.id.kind];
	struct net_frame f;
	int fd = -1;

	if ((p->payload < 0 && p->bytes.len == 0) || too_new(c, p))
		return;
	net_frame_init(&f, NET_REQUEST, c->version);
	f.request = p->request;
	if (sends_bytes(c, p))
		send_bytes(c, &f, &p->bytes, -1);
	else if ((fd = payload_descriptor(p)) >= 0)
		send_frame(c, &f, fd);
	else
		return; /* without a result in time the request is answered with NET_BUSY */
	if (is_call(p) && !p->life) {
		p->life = c->life;
		k->sent(&p->request.id, k->arg);
	}
}

static void send_id(struct net_client *c, enum net_frame_type type, const struct net_id *id)
{
	struct net_frame f;

	if (!c->version)
		return; /* a new connection sends all requests that are still pending */
	net_frame_init(&f, type, c->version);
	f.id = *id;
	send_frame(c, &f, -1);
}

/* ---- requests ---- */

static void answer_busy(struct net_client *c, struct net_pending *p /* moved */, const char *why)
{
	struct net_result r = {.id = p->request.id, .outcome = NET_BUSY};
	const struct net_client_kind *k = &c->kinds[r.id.kind];

	if (p->life) { /* it may have been executed */
		net_pending_free(p);
		k->lost(&r.id, why, k->arg);
		return;
	}
	net_frame_text(r.error, sizeof(r.error), why);
	net_pending_free(p);
	k->result(&r, -1, k->arg);
}

static void net_timer_set(struct net_client *c, usec_t delay)
{
	uint64_t at = 0;
	int on = SD_EVENT_OFF;

	sd_event_source_get_enabled(c->timer, &on);
	if (on != SD_EVENT_OFF && sd_event_source_get_time(c->timer, &at) >= 0 &&
		at <= (uint64_t)(clock_boot(c->o.clock) + delay))
		return;
	sd_event_source_set_time_relative(c->timer, (uint64_t)delay);
	sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* Answers the requests that have waited too long with NET_BUSY. */
static void pending_expire(struct net_client *c)
{
	usec_t now = clock_boot(c->o.clock);
	bool down = c->fd < 0 && !c->launching && now - c->down_since >= DOWN_PATIENCE;

	for (struct net_pending *p = c->pending.first; p;) {
		if (p->until > now && !down && !too_new(c, p)) {
			p = p->next;
			continue;
		}
		net_pendings_take(&c->pending, &p->request.id);
		if (c->version)
			send_id(c, NET_CANCEL, &p->request.id);
		answer_busy(c, p,
			!c->version ? net_client_down(c)
			: too_new(c, p)
				? "jobsched-net is older than the daemon; restart it with 'systemctl restart jobsched-net'"
				: "jobsched-net does not answer; restart it with 'systemctl restart jobsched-net'");
		p = c->pending.first; /* the callback may have added requests */
	}
}

/* ---- receiving ---- */

static void disconnected(struct net_client *c, const char *why);

/* Calls that an earlier process of jobsched-net had are lost with it. */
static void calls_lose(struct net_client *c)
{
	for (struct net_pending *p = c->pending.first; p;) {
		if (!p->life || p->life == c->life) {
			p = p->next;
			continue;
		}
		net_pendings_take(&c->pending, &p->request.id);
		answer_busy(c, p, "jobsched-net ended during the call");
		p = c->pending.first; /* the callback may have added requests */
	}
}

static void on_welcome(struct net_client *c, const struct net_frame *f)
{
	struct net_frame sync;

	c->version = f->welcome.version;
	c->life = f->welcome.life;
	c->down = (struct err){};
	backoff_connected(&c->backoff, clock_boot(c->o.clock));
	send_settings(c);
	send_deadline(c);
	calls_lose(c);
	for (int k = 1; k < NET_KIND_MAX; k++)
		if (c->kinds[k].hold)
			c->kinds[k].hold(c, c->kinds[k].arg);
	for (struct net_pending *p = c->pending.first; p; p = p->next)
		send_pending(c, p);
	net_frame_init(&sync, NET_SYNC, c->version);
	send_frame(c, &sync, -1);
}

static void synced(struct net_client *c)
{
	if (c->synced)
		return;
	c->synced = true;
	if (c->o.synced)
		c->o.synced(c->o.arg);
}

/* The response of a call is in the frame or in the descriptor. */
static void handle_call_result(struct net_client *c, const struct net_received *in, int fd)
{
	const struct net_client_kind *k = &c->kinds[NET_KIND_CALL];
	const struct net_call_result *r = &in->frame.call;
	AUTO_DONE(buf) bytes = {};

	net_pending_free(net_pendings_take(&c->pending, &r->id));
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 && io_read_all(fd, &bytes, (size_t)r->kept) < 0)
		buf_clear(&bytes);
	k->call_result(r, in->len > 0 ? in->bytes : bytes.data, in->len > 0 ? in->len : bytes.len, k->arg);
}

static void handle_frame(struct net_client *c, const struct net_received *in, int *fd)
{
	const struct net_frame *f = &in->frame;
	const struct net_client_kind *k;

	switch (f->type) {
	case NET_WELCOME:
		on_welcome(c, f);
		break;
	case NET_RESULT:
		net_pending_free(net_pendings_take(&c->pending, &f->result.id));
		k = &c->kinds[f->result.id.kind];
		k->result(&f->result, STEAL_FD(*fd), k->arg);
		break;
	case NET_HAS:
		k = &c->kinds[f->id.kind];
		if (k->has)
			k->has(&f->id, k->arg);
		break;
	case NET_NEED_FILE:
		k = &c->kinds[f->id.kind];
		if (k->need_file)
			k->need_file(&f->id, STEAL_FD(*fd), k->arg);
		break;
	case NET_CALL_RESULT:
		handle_call_result(c, in, *fd);
		break;
	case NET_NEED_SECRET:
		k = &c->kinds[NET_KIND_CALL];
		k->need_secret(&f->need_secret.id, f->need_secret.index, STEAL_FD(*fd), k->arg);
		break;
	case NET_SYNCED:
		synced(c);
		break;
	default:
		break;
	}
}

/* False: the connection is closed. */
static bool handle_next(struct net_client *c, size_t *at, int *fd)
{
	struct net_received in;
	const struct net_frame *f = &in.frame;
	struct err e = {};

	if (!net_packet_next(&c->in, at, *fd >= 0, NET_FROM_NET, c->version, &in, &e)) {
		disconnected(c, e.msg);
		return false;
	}
	if (f->type == NET_REFUSED || f->type == NET_SUPERSEDED) {
		/* jobsched-net serves a newer daemon; this one is about to end */
		c->superseded = f->type == NET_SUPERSEDED;
		disconnected(c, f->type == NET_REFUSED ? f->refused.error : "it serves another daemon");
		return false;
	}
	handle_frame(c, &in, fd);
	return c->fd >= 0;
}

/* Reads one packet. False: none is available, or the connection is closed. */
static bool receive_packet(struct net_client *c)
{
	AUTO_FD fd = -1;
	size_t at = 0;
	int r = net_packet_recv(c->fd, &c->in, &fd);

	if (r == -EAGAIN)
		return false;
	if (r < 0 || c->in.len == 0) {
		disconnected(c, r < 0 ? strerror(-r) : "it closed the connection");
		return false;
	}
	while (at < c->in.len)
		if (!handle_next(c, &at, &fd))
			return false;
	return true;
}

static int on_net_socket(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct net_client *c = arg;

	(void)source;
	(void)fd;
	if (events & EPOLLOUT)
		on_flush(NULL, c);
	for (int i = 0; i < PACKETS_PER_TURN && receive_packet(c);)
		i++;
	return 0;
}

/* ---- connecting ---- */

static void close_socket(struct net_client *c)
{
	c->source = sd_event_source_disable_unref(c->source);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->version = 0;
	net_outgoing_drop(&c->out);
}

/* Logs the first failure and then one line a minute. */
static void log_down(struct net_client *c)
{
	unsigned n;
	enum log_level level = backoff_log_level(&c->backoff, clock_boot(c->o.clock), &n);

	log_line(level, NULL, "%s (failures since the last message: %u)", c->down.msg, n);
}

static void disconnected(struct net_client *c, const char *why)
{
	bool was_connected = c->version != 0;
	usec_t now = clock_boot(c->o.clock), delay = backoff_failed(&c->backoff, now);

	if (c->version || !c->down_since)
		c->down_since = now;
	c->connect_at = now + delay;
	close_socket(c);
	if (c->o.program)
		err_set(&c->down, ERR_UNREACHABLE, "jobsched-net is not running: %s", why);
	else
		err_set(&c->down, ERR_UNREACHABLE,
			"jobsched-net is not running (%s); start it with 'systemctl start jobsched-net'",
			why);
	if (was_connected && !c->superseded)
		log_down(c);
	synced(c);
	if (!c->superseded && (!c->o.program || c->pending.first))
		net_timer_set(c, delay);
}

static bool open_socket(struct net_client *c, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(c->o.socket) >= sizeof(a.sun_path))
		return err_set(e, ERR_INVALID, "the socket path '%s' is too long", c->o.socket);
	memcpy(a.sun_path, c->o.socket, strlen(c->o.socket));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_errno(e, errno, "'%s'", c->o.socket);
	c->fd = STEAL_FD(fd);
	return true;
}

/* Sends the hello on the socket that was just connected. */
static void net_hello_send(struct net_client *c)
{
	struct net_frame hello;
	int r = sd_event_add_io(c->ev, &c->source, c->fd, EPOLLIN, on_net_socket, c);

	if (r < 0) {
		disconnected(c, strerror(-r));
		return;
	}
	c->synced = false;
	net_frame_init(&hello, NET_HELLO, 0);
	hello.hello =
		(struct net_hello){.oldest = NET_FRAME_VERSION_OLDEST, .newest = NET_FRAME_VERSION};
	net_frame_text(hello.hello.node, sizeof(hello.hello.node), c->o.node);
	send_frame(c, &hello, -1);
}

static void net_connect_failed(struct net_client *c, bool needed, const struct err *e)
{
	disconnected(c, e->msg);
	if (needed)
		log_down(c);
	else
		c->connect_at = 0; /* the first request may start jobsched-net at once */
}

/*
 * The process that starts jobsched-net has exited: jobsched-net listens, or could not be started.
 */
static int on_net_launched(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct net_client *c = arg;
	struct err e = {};
	int status = 0;

	(void)source;
	(void)fd;
	(void)events;
	c->launching = sd_event_source_disable_unref(c->launching);
	if (waitpid(c->launching_pid, &status, WNOHANG) != c->launching_pid)
		err_set(&e, ERR_INTERNAL, "the process that starts '%s' has no exit status",
			c->o.program);
	else if (background_result(status) == BACKGROUND_FAILED)
		err_set(&e, ERR_INTERNAL, "'%s' did not start, see '%s/net.log'", c->o.program,
			c->o.runtime_dir);
	if (!e.kind && open_socket(c, &e)) {
		net_hello_send(c);
		return 0;
	}
	net_connect_failed(c, true, &e);
	pending_expire(c);
	return 0;
}

/* Starts jobsched-net without waiting for it; on_net_launched() follows. */
static bool net_launch(struct net_client *c, struct err *e)
{
	char *const argv[] = {(char *)"jobsched-net", (char *)"--background",
		(char *)"--runtime-dir", (char *)c->o.runtime_dir, (char *)"--state-dir",
		(char *)c->o.state_dir,
		log_get_format() == LOG_FORMAT_JSON ? (char *)"--log-format" : NULL, (char *)"json", NULL};
	int pidfd, r = background_start(c->o.program, argv, &c->launching_pid);

	if (r < 0)
		return err_errno(e, -r, "could not start '%s'", c->o.program);
	pidfd = (int)syscall(SYS_pidfd_open, c->launching_pid, 0);
	r = pidfd < 0 ? -errno
		      : sd_event_add_io(c->ev, &c->launching, pidfd, EPOLLIN, on_net_launched, c);
	if (r < 0) {
		auto_fd_close(&pidfd);
		return err_errno(e, -r, "could not watch '%s'", c->o.program);
	}
	sd_event_source_set_io_fd_own(c->launching, true);
	return true;
}

/* 'needed': there are requests, so in user mode jobsched-net is started if it does not run. */
static void net_connect_now(struct net_client *c, bool needed)
{
	struct err e = {};

	if (c->fd >= 0 || c->launching || c->superseded || !c->allowed)
		return;
	if (open_socket(c, &e))
		net_hello_send(c);
	else if (!c->o.program || !needed || !net_launch(c, &e))
		net_connect_failed(c, !c->o.program || needed, &e);
}

static int on_net_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct net_client *c = arg;

	(void)source;
	(void)usec;
	if (clock_boot(c->o.clock) >= c->connect_at)
		net_connect_now(c, c->pending.first != NULL);
	pending_expire(c);
	if (c->pending.first || (c->fd < 0 && !c->o.program && !c->superseded))
		net_timer_set(c, RETRY_DELAY);
	return 0;
}

static void pending_start(struct net_client *c, struct net_pending *p)
{
	const struct net_request *r = &p->request;

	p->until = clock_boot(c->o.clock) + (r->id.kind == NET_KIND_CALL ? r->timeout : 4 * r->timeout) + ANSWER_PATIENCE;
	if (c->version)
		send_pending(c, p);
	/* through the timer, because the callback must not be called from here */
	net_timer_set(c, c->fd < 0 && clock_boot(c->o.clock) >= c->connect_at ? 0 : RETRY_DELAY);
}

void net_client_request(struct net_client *c, const struct net_request *r, int payload)
{
	struct net_pending *p;

	if (net_pendings_find(&c->pending, &r->id)) {
		close(payload);
		return;
	}
	p = net_pendings_add(&c->pending, r);
	p->payload = payload;
	pending_start(c, p);
}

void net_client_request_bytes(struct net_client *c, const struct net_request *r, struct buf *payload)
{
	struct net_pending *p;

	if (net_pendings_find(&c->pending, &r->id))
		return;
	p = net_pendings_add(&c->pending, r);
	p->bytes = *payload;
	*payload = (struct buf){};
	pending_start(c, p);
}

void net_client_adopt(struct net_client *c, const struct net_id *id, usec_t timeout)
{
	struct net_pending *p = net_pendings_add(&c->pending, &(struct net_request){.id = *id, .timeout = timeout});

	p->life = c->life;
	p->until = clock_boot(c->o.clock) + timeout + ANSWER_PATIENCE;
	net_timer_set(c, RETRY_DELAY);
}

void net_client_cancel(struct net_client *c, const struct net_id *id)
{
	struct net_pending *p = net_pendings_take(&c->pending, id);

	net_pending_free(p);
	send_id(c, NET_CANCEL, id);
}

void net_client_ack(struct net_client *c, const struct net_id *id)
{
	send_id(c, NET_ACK, id);
}

void net_client_hold(struct net_client *c, const struct net_hold *h)
{
	struct net_frame f;

	net_frame_init(&f, NET_HOLD, c->version);
	f.hold = *h;
	send_frame(c, &f, -1);
}

/* ---- state ---- */

bool net_client_connected(const struct net_client *c)
{
	return c->version != 0;
}

bool net_client_syncing(const struct net_client *c)
{
	return !c->synced;
}

const char *net_client_down(const struct net_client *c)
{
	return c->version	? NULL
	       : c->down.msg[0] ? c->down.msg
				: "jobsched-net is not connected yet";
}

void net_client_set_budget(struct net_client *c, int64_t bytes)
{
	c->o.budget = bytes;
	if (c->version)
		send_settings(c);
}

void net_client_set_deadline(struct net_client *c, usec_t end_at)
{
	c->deadline = end_at;
	send_deadline(c);
}

void net_client_kind(struct net_client *c, enum net_kind kind, const struct net_client_kind *how)
{
	c->kinds[kind] = *how;
}

void net_client_connect(struct net_client *c)
{
	c->allowed = true;
	net_connect_now(c, false);
}

bool net_client_new(struct sd_event *ev, const struct net_client_options *o,
	struct net_client **ret, struct err *e)
{
	AUTO(net_client) *c = xcalloc(1, sizeof(*c));
	int r;

	c->ev = ev;
	c->o = *o;
	c->fd = -1;
	c->backoff = (struct backoff){.min = RETRY_DELAY, .max = RETRY_DELAY};
	c->deadline = USEC_NEVER;
	r = sd_event_add_time(ev, &c->timer, CLOCK_BOOTTIME, 0, 1, on_net_timer, c);
	if (r >= 0)
		r = sd_event_add_defer(ev, &c->flush, on_flush, c);
	if (r < 0 || (r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF)) < 0 ||
		(r = sd_event_source_set_enabled(c->flush, SD_EVENT_OFF)) < 0)
		return err_errno(e, -r, "could not make a timer");
	*ret = STEAL(c);
	return true;
}

void net_client_free(struct net_client *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		net_outgoing_flush(&c->out, c->fd);
	close_socket(c);
	net_pendings_done(&c->pending);
	free(c->out.spare);
	sd_event_source_disable_unref(c->timer);
	sd_event_source_disable_unref(c->flush);
	sd_event_source_disable_unref(c->launching);
	free(c);
}
