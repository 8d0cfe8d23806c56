/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the daemon. */
#include "net/net_server.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "net/artifact/artifact_cache.h"
#include "net/net_payload.h"
#include "net/net_server_private.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PACKETS_PER_TURN 32
#define HELLO_TIMEOUT (5 * USEC_SEC)

/* ---- the run lease ---- */

static int on_lease_end(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	net_requests_lose_calls(arg);
	return 0;
}

static bool on_deadline_frame(struct conn *c, const struct net_received *in, int fd, struct err *e)
{
	struct net_server *s = c->server;

	(void)fd;
	(void)e;
	s->lease_end = in->frame.deadline.end_at;
	if (s->lease_end != USEC_NEVER)
		sd_event_source_set_time(s->lease_timer, (uint64_t)s->lease_end);
	sd_event_source_set_enabled(
		s->lease_timer, s->lease_end == USEC_NEVER ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
	return true;
}

/* ---- frames from the daemon ---- */

static bool on_request_frame(struct conn *c, const struct net_received *in, int fd, struct err *e)
{
	const struct net_frame *f = &in->frame;
	struct net_server *s = c->server;
	struct request *r = net_requests_find(s, &f->request.id);

	if (r) { /* repeated on a new connection */
		r->wanted = true;
		net_owed_add(r, r->stage == REQUEST_ENDED ? OWES_RESULT
			: r->file_socket < 0	     ? 0
			: r->id.kind == NET_KIND_CALL ? OWES_SECRET
						     : OWES_FILE);
		return true;
	}
	r = net_requests_add(s, &f->request.id, f->request.uid);
	r->limit = f->request.limit;
	r->timeout = f->request.timeout;
	if (!(in->len > 0 ? net_payload_copy(&r->payload, in->bytes, in->len, e) : net_payload_read(&r->payload, fd, e)))
		return false;
	net_requests_start(r);
	return true;
}

static bool on_sync_frame(struct conn *c, const struct net_received *in, int fd, struct err *e)
{
	struct request *next;

	(void)in;
	(void)fd;
	(void)e;
	for (struct request *r = c->server->requests; r; r = next) {
		next = r->next;
		if (r->wanted)
			continue;
		if (r->id.kind != NET_KIND_WEBHOOK && r->id.kind != NET_KIND_CALL) /* its run has ended or was given up, or its spans are lost */
			net_requests_drop(c->server, r);
		else
			net_owed_add(r, r->stage == REQUEST_ENDED ? OWES_RESULT : OWES_HAS);
	}
	c->synced = c->owes_synced = true;
	artifact_cache_synced(c->server->cache);
	return true;
}

static bool on_ack_frame(struct conn *c, const struct net_received *in, int fd, struct err *e)
{
	struct request *r = net_requests_find(c->server, &in->frame.id);

	(void)fd;
	(void)e;
	if (r && r->stage == REQUEST_ENDED)
		net_requests_drop(c->server, r);
	return true;
}

static bool on_cancel_frame(struct conn *c, const struct net_received *in, int fd, struct err *e)
{
	struct request *r = net_requests_find(c->server, &in->frame.id);

	(void)fd;
	(void)e;
	if (r)
		net_requests_drop(c->server, r);
	return true;
}

static bool on_settings_frame(struct conn *c, const struct net_received *in, int fd, struct err *e)
{
	(void)fd;
	(void)e;
	artifact_cache_set_budget(c->server->cache, in->frame.settings.budget);
	return true;
}

static bool on_hold_frame(struct conn *c, const struct net_received *in, int fd, struct err *e)
{
	const struct net_frame *f = &in->frame;
	struct request *r = net_requests_find(c->server, &f->hold.id);

	(void)fd;
	if (f->hold.id.kind != NET_KIND_ARTIFACT)
		return err_set(e, ERR_INVALID, "frame 'hold' of something that is not an artifact");
	if (!r) {
		r = net_requests_add(c->server, &f->hold.id, f->hold.uid);
		artifact_cache_hold(r, c->server->cache, f->hold.key);
	}
	r->wanted = true;
	return true;
}

static bool (*const frame_handlers[NET_FRAME_TYPE_MAX])(
	struct conn *, const struct net_received *, int, struct err *) = {
	[NET_SETTINGS] = on_settings_frame,
	[NET_HOLD] = on_hold_frame,
	[NET_REQUEST] = on_request_frame,
	[NET_SYNC] = on_sync_frame,
	[NET_CANCEL] = on_cancel_frame,
	[NET_ACK] = on_ack_frame,
	[NET_DEADLINE] = on_deadline_frame,
};

/*
 * A new connection replaces the previous one. Existing requests are kept until the daemon has named
 * those that it still wants.
 */
static void daemon_conn_accept(struct net_server *s, struct conn *c)
{
	struct net_frame f;

	if (s->conn) {
		net_frame_init(&f, NET_SUPERSEDED, s->conn->version);
		net_packet_send_frame(s->conn->fd, &f, -1);
		net_server_conn_close(s->conn);
	}
	s->unidentified = NULL;
	s->conn = c;
	net_owed_forget_all(s);
	for (struct request *r = s->requests; r; r = r->next)
		r->wanted = false;
	sd_event_source_set_enabled(s->hello_timer, SD_EVENT_OFF);
	sd_event_source_set_enabled(s->linger_timer, SD_EVENT_OFF);
	log_info("serving daemon '%s'", c->node);
}

static void on_hello_frame(struct conn *c, const struct net_frame *f)
{
	uint32_t version =
		f->hello.newest < NET_FRAME_VERSION ? f->hello.newest : NET_FRAME_VERSION;
	bool speaks = version >= NET_FRAME_VERSION_OLDEST && version >= f->hello.oldest;
	struct net_frame answer;

	net_frame_init(&answer, speaks ? NET_WELCOME : NET_REFUSED, 0);
	if (!speaks) {
		answer.refused = (struct net_refused){
			.oldest = NET_FRAME_VERSION_OLDEST, .newest = NET_FRAME_VERSION};
		net_frame_text(answer.refused.error, NET_TEXT_MAX,
			"no common protocol version; restart jobsched-net and jobschedd after an upgrade");
		net_packet_send_frame(c->fd, &answer, -1);
		net_server_conn_close(c);
		return;
	}
	c->version = version;
	memcpy(c->node, f->hello.node, sizeof(c->node));
	daemon_conn_accept(c->server, c);
	answer.welcome = (struct net_welcome){.version = version, .life = version >= NET_FRAME_VERSION_CALLS ? c->server->life : 0};
	net_owed_send(c, &answer, -1);
}

/* False: the connection is closed, or the frame is a hello, which is alone in its packet. */
static bool daemon_conn_handle(struct conn *c, size_t *at, int passed)
{
	struct net_received in;
	struct err e = {};

	if (!net_packet_next(&c->server->in, at, passed >= 0, NET_FROM_DAEMON, c->version, &in, &e) ||
		(in.frame.type != NET_HELLO && !frame_handlers[in.frame.type](c, &in, passed, &e))) {
		log_warning("closed the connection of '%s': %s", c->version ? c->node : "a client",
			e.msg);
		net_server_conn_close(c);
		return false;
	}
	if (in.frame.type != NET_HELLO)
		return true;
	on_hello_frame(c, &in.frame); /* the connection may be closed; otherwise the loop calls again */
	return false;
}

/* Reads one packet. False: there is none, or the connection may be closed. */
static bool daemon_conn_read(struct conn *c)
{
	struct net_packet *p = &c->server->in;
	AUTO_FD passed = -1;
	size_t at = 0;
	int r = net_packet_recv(c->fd, p, &passed);

	if (r == -EAGAIN)
		return false;
	if (r < 0 || p->len == 0) {
		if (r < 0 && r != -ECONNRESET)
			log_warning("closed the connection of '%s': %s", c->node, strerror(-r));
		net_server_conn_close(c);
		return false;
	}
	while (at < p->len)
		if (!daemon_conn_handle(c, &at, passed))
			return false;
	return true;
}

static int on_daemon_frames(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct conn *c = arg;
	struct net_server *s = c->server;

	(void)fd;
	if (events & EPOLLOUT)
		sd_event_source_set_io_events(source, EPOLLIN);
	for (int i = 0; i < PACKETS_PER_TURN && daemon_conn_read(c);)
		i++;
	net_owed_flush(s->conn);
	return 0;
}

/* ---- connections ---- */

void net_server_conn_close(struct conn *c)
{
	struct net_server *s = c->server;

	if (s->conn == c) {
		log_info("daemon '%s' has disconnected", c->node);
		s->conn = NULL;
		if (s->o.linger) {
			sd_event_source_set_time_relative(s->linger_timer, (uint64_t)s->o.linger);
			sd_event_source_set_enabled(s->linger_timer, SD_EVENT_ONESHOT);
		}
	}
	if (s->unidentified == c)
		s->unidentified = NULL;
	sd_event_source_disable_unref(c->source);
	close(c->fd);
	free(c->out);
	free(c);
}

static int on_daemon_connect(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct net_server *s = arg;
	AUTO_FD peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	struct conn *c;

	(void)source;
	(void)events;
	if (peer < 0)
		return 0;
	if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || len != sizeof(cred) ||
		(cred.uid != s->o.client && cred.uid != 0)) {
		log_warning("refused a connection of uid %u", (unsigned)cred.uid);
		return 0;
	}
	if (s->unidentified)
		net_server_conn_close(s->unidentified);
	c = xcalloc(1, sizeof(*c));
	*c = (struct conn){.server = s, .fd = peer};
	if (sd_event_add_io(s->ev, &c->source, peer, EPOLLIN, on_daemon_frames, c) < 0) {
		free(c);
		return 0;
	}
	c->out = xcalloc(1, sizeof(*c->out));
	(void)STEAL_FD(peer);
	s->unidentified = c;
	sd_event_source_set_time_relative(s->hello_timer, HELLO_TIMEOUT);
	sd_event_source_set_enabled(s->hello_timer, SD_EVENT_ONESHOT);
	return 0;
}

static int on_no_hello(sd_event_source *source, uint64_t usec, void *arg)
{
	struct net_server *s = arg;

	(void)source;
	(void)usec;
	if (s->unidentified)
		net_server_conn_close(s->unidentified);
	return 0;
}

static int on_linger(sd_event_source *source, uint64_t usec, void *arg)
{
	struct net_server *s = arg;

	(void)source;
	(void)usec;
	/* the next daemon needs the ends of calls */
	for (const struct request *r = s->requests; r; r = r->next)
		if (r->id.kind == NET_KIND_CALL) {
			sd_event_source_set_time_relative(s->linger_timer, (uint64_t)s->o.linger);
			sd_event_source_set_enabled(s->linger_timer, SD_EVENT_ONESHOT);
			return 0;
		}
	if (!s->conn)
		sd_event_exit(s->ev, 0);
	return 0;
}

/* ---- start and stop ---- */

static int timer_new(struct net_server *s, sd_event_source **ret, sd_event_time_handler_t fn)
{
	int r = sd_event_add_time(s->ev, ret, CLOCK_BOOTTIME, 0, 1, fn, s);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

bool net_server_new(struct sd_event *ev, const struct net_server_options *o,
	struct net_server **ret, struct err *e)
{
	AUTO(net_server) *s = xcalloc(1, sizeof(*s));
	int r;

	s->ev = ev;
	s->o = *o;
	s->lease_end = USEC_NEVER;
	io_random(&s->life, sizeof(s->life));
	s->life |= 1;
	if (!net_requests_open(s, e))
		return false;
	r = timer_new(s, &s->linger_timer, on_linger);
	if (r >= 0)
		r = sd_event_add_defer(ev, &s->flush, net_owed_on_flush, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->flush, SD_EVENT_OFF);
	if (r >= 0)
		r = timer_new(s, &s->hello_timer, on_no_hello);
	if (r >= 0)
		r = timer_new(s, &s->lease_timer, on_lease_end);
	if (r >= 0)
		r = sd_event_add_io(
			ev, &s->listen_source, o->listen, EPOLLIN, on_daemon_connect, s);
	if (r < 0)
		return err_errno(e, -r, "could not watch the socket");
	if (o->linger) {
		sd_event_source_set_time_relative(s->linger_timer, (uint64_t)o->linger);
		sd_event_source_set_enabled(s->linger_timer, SD_EVENT_ONESHOT);
	}
	*ret = STEAL(s);
	return true;
}

void net_server_free(struct net_server *s)
{
	if (!s)
		return;
	if (s->unidentified)
		net_server_conn_close(s->unidentified);
	if (s->conn)
		net_server_conn_close(s->conn);
	net_requests_close(s);
	sd_event_source_disable_unref(s->listen_source);
	sd_event_source_disable_unref(s->flush);
	sd_event_source_disable_unref(s->linger_timer);
	sd_event_source_disable_unref(s->hello_timer);
	sd_event_source_disable_unref(s->lease_timer);
	free(s);
}
