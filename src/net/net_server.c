/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the daemon with the list of its requests. */
#include "net/net_server.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "net/artifact_cache.h"
#include "net/net_frame.h"
#include "net/net_payload.h"
#include "net/request.h"
#include "net/webhook.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#define REQUESTS_MAX 4096   /* at a time, including unacknowledged results */
#define FRAMES_PER_TURN 32
#define HELLO_TIMEOUT (5 * USEC_SEC)

struct conn {
	struct net_server *server; /* borrowed */
	int fd;
	uint32_t version;          /* 0: no hello yet */
	bool synced, owes_synced;
	sd_event_source *source;
	char node[NET_NODE_MAX];
};

struct net_server {
	sd_event *ev; /* borrowed */
	struct net_server_options o;
	sd_event_source *listen_source, *linger_timer, *hello_timer;
	struct conn *conn;         /* to the daemon; NULL: none */
	struct conn *unidentified; /* a connection that has not sent hello; NULL: none */
	struct webhooks *webhooks;
	struct artifact_cache *cache;
	struct request *requests;
	size_t requests_n;
};

/* ---- requests ---- */

static void server_request_free(struct request *r)
{
	net_payload_done(&r->payload);
	auto_fd_close(&r->result_fd);
	auto_fd_close(&r->file_socket);
	free(r);
}

static struct request *server_request_find(const struct net_server *s, const struct net_id *id)
{
	struct request *r = s->requests;

	while (r && !net_frame_id_equal(&r->id, id))
		r = r->next;
	return r;
}

static bool webhook_start(struct request *r, struct err *e);
static void webhook_cancel(struct request *r);
static bool artifact_start(struct request *r, struct err *e);
static void artifact_cancel(struct request *r);

/*
 * Each kind of request: 'start' ends the request later through request_end(); 'cancel' ends its
 * work without that.
 */
static const struct {
	bool (*start)(struct request *r, struct err *e);
	void (*cancel)(struct request *r);
} kinds[NET_KIND_MAX] = {
	[NET_KIND_WEBHOOK] = {webhook_start, webhook_cancel},
	[NET_KIND_ARTIFACT] = {artifact_start, artifact_cancel},
};

static void server_request_drop(struct net_server *s, struct request *r)
{
	kinds[r->id.kind].cancel(r);
	for (struct request **at = &s->requests; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			s->requests_n--;
			break;
		}
	server_request_free(r);
}

/* ---- frames to the daemon ---- */

static void daemon_conn_close(struct conn *c);

/*
 * False: the frame was not sent. Either the socket is full, and the loop continues when it is
 * writable, or the connection is broken.
 */
static bool daemon_conn_send(struct conn *c, const struct net_frame *f, int fd)
{
	int r = net_frame_send(c->fd, f, fd);

	if (r == -EAGAIN || r == -ETOOMANYREFS)
		sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLOUT);
	else if (r < 0)
		shutdown(c->fd, SHUT_RDWR); /* the loop sees the end of the connection */
	return r == 0;
}

static bool owed_frame_send(struct conn *c, struct request *r, enum request_owes what)
{
	static const enum net_frame_type types[] = {
		[OWES_RESULT] = NET_RESULT, [OWES_HAS] = NET_HAS, [OWES_FILE] = NET_NEED_FILE};
	struct net_frame f;
	int fd = -1;

	if (!(r->owes & what))
		return true;
	net_frame_init(&f, types[what], c->version);
	if (what == OWES_RESULT) {
		f.result = (struct net_result){.id = r->id, .outcome = r->outcome};
		net_frame_text(f.result.error, sizeof(f.result.error), r->error);
		fd = r->result_fd;
	} else {
		f.id = r->id;
		fd = what == OWES_FILE ? r->file_socket : -1;
	}
	if (!daemon_conn_send(c, &f, fd))
		return false;
	r->owes &= ~(unsigned)what;
	if (what == OWES_FILE) {
		auto_fd_close(&r->file_socket);
		r->file_socket = -1;
	}
	return true;
}

/* Sends all pending frames, until the socket is full. */
static void daemon_conn_flush(struct conn *c)
{
	struct net_frame f;

	if (!c || !c->version)
		return;
	for (struct request *r = c->server->requests; r; r = r->next)
		if (!owed_frame_send(c, r, OWES_HAS) || !owed_frame_send(c, r, OWES_FILE) ||
			!owed_frame_send(c, r, OWES_RESULT))
			return;
	if (!c->owes_synced)
		return;
	net_frame_init(&f, NET_SYNCED, c->version);
	c->owes_synced = !daemon_conn_send(c, &f, -1);
}

void request_end(struct request *r, enum net_outcome outcome, const char *error, int fd)
{
	r->stage = REQUEST_ENDED;
	r->outcome = outcome;
	net_frame_text(r->error, sizeof(r->error), error);
	r->result_fd = fd;
	if (r->wanted || (r->server->conn && r->server->conn->synced)) {
		r->owes |= OWES_RESULT;
		daemon_conn_flush(r->server->conn);
	}
}

void request_need_file(struct request *r, int socket)
{
	r->file_socket = socket;
	r->owes |= OWES_FILE;
	daemon_conn_flush(r->server->conn);
}

/* ---- webhooks ---- */

static void on_posted(void *owner, const char *error, void *arg)
{
	(void)arg;
	request_end(owner, error ? NET_FAILED : NET_DONE, error, -1);
}

static bool webhook_start(struct request *r, struct err *e)
{
	const struct net_payload *p = &r->payload;

	if (p->n < 1)
		return err_set(e, ERR_INVALID, "a webhook without a URL");
	return webhooks_post(r->server->webhooks,
		&(struct webhook_post){.owner = r,
			.url = p->texts[0],
			.body = p->body,
			.len = p->body_len,
			.headers = p->texts + 1,
			.headers_n = p->n - 1,
			.timeout = r->timeout},
		e);
}

static void webhook_cancel(struct request *r)
{
	webhooks_cancel(r->server->webhooks, r);
}

/* ---- artifacts ---- */

static bool artifact_start(struct request *r, struct err *e)
{
	return artifact_cache_start(r, r->server->cache, e);
}

static void artifact_cancel(struct request *r)
{
	artifact_cache_drop(r, r->server->cache);
}

/* ---- frames from the daemon ---- */

static struct request *server_request_add(
	struct net_server *s, const struct net_id *id, int64_t uid)
{
	struct request *r = xcalloc(1, sizeof(*r)), **last = &s->requests;

	*r = (struct request){.server = s,
		.id = *id,
		.uid = uid,
		.wanted = true,
		.result_fd = -1,
		.file_socket = -1};
	while (*last) /* in the order of arrival */
		last = &(*last)->next;
	*last = r;
	s->requests_n++;
	return r;
}

static bool on_request_frame(struct conn *c, const struct net_frame *f, int fd, struct err *e)
{
	struct net_server *s = c->server;
	struct request *r = server_request_find(s, &f->request.id);
	struct err why = {};

	if (r) { /* repeated on a new connection */
		r->wanted = true;
		r->owes |= r->stage == REQUEST_ENDED ? OWES_RESULT
			: r->file_socket >= 0	     ? OWES_FILE
						     : 0;
		return true;
	}
	r = server_request_add(s, &f->request.id, f->request.uid);
	r->limit = f->request.limit;
	r->timeout = f->request.timeout;
	if (!net_payload_read(&r->payload, fd, e))
		return false;
	if (s->requests_n > REQUESTS_MAX)
		request_end(r, NET_BUSY, "jobsched-net has too many requests", -1);
	else if (!kinds[r->id.kind].start(r, &why))
		request_end(r, why.kind == ERR_BUSY ? NET_BUSY : NET_FAILED, why.msg, -1);
	return true;
}

static bool on_sync_frame(struct conn *c, const struct net_frame *f, int fd, struct err *e)
{
	struct request *next;

	(void)f;
	(void)fd;
	(void)e;
	for (struct request *r = c->server->requests; r; r = next) {
		next = r->next;
		if (r->wanted)
			continue;
		if (r->id.kind != NET_KIND_WEBHOOK) /* its run has ended or was given up */
			server_request_drop(c->server, r);
		else
			r->owes |= r->stage == REQUEST_ENDED ? OWES_RESULT : OWES_HAS;
	}
	c->synced = c->owes_synced = true;
	artifact_cache_synced(c->server->cache);
	return true;
}

static bool on_ack_frame(struct conn *c, const struct net_frame *f, int fd, struct err *e)
{
	struct request *r = server_request_find(c->server, &f->id);

	(void)fd;
	(void)e;
	if (r && r->stage == REQUEST_ENDED)
		server_request_drop(c->server, r);
	return true;
}

static bool on_cancel_frame(struct conn *c, const struct net_frame *f, int fd, struct err *e)
{
	struct request *r = server_request_find(c->server, &f->id);

	(void)fd;
	(void)e;
	if (r)
		server_request_drop(c->server, r);
	return true;
}

static bool on_settings_frame(struct conn *c, const struct net_frame *f, int fd, struct err *e)
{
	(void)fd;
	(void)e;
	artifact_cache_set_budget(c->server->cache, f->settings.budget);
	return true;
}

static bool on_hold_frame(struct conn *c, const struct net_frame *f, int fd, struct err *e)
{
	struct request *r = server_request_find(c->server, &f->hold.id);

	(void)fd;
	if (f->hold.id.kind != NET_KIND_ARTIFACT)
		return err_set(e, ERR_INVALID, "frame 'hold' of something that is not an artifact");
	if (!r) {
		r = server_request_add(c->server, &f->hold.id, f->hold.uid);
		artifact_cache_hold(r, c->server->cache, f->hold.key);
	}
	r->wanted = true;
	return true;
}

static bool (*const frame_handlers[NET_FRAME_TYPE_MAX])(
	struct conn *, const struct net_frame *, int, struct err *) = {
	[NET_SETTINGS] = on_settings_frame,
	[NET_HOLD] = on_hold_frame,
	[NET_REQUEST] = on_request_frame,
	[NET_SYNC] = on_sync_frame,
	[NET_CANCEL] = on_cancel_frame,
	[NET_ACK] = on_ack_frame,
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
		net_frame_send(s->conn->fd, &f, -1);
		daemon_conn_close(s->conn);
	}
	s->unidentified = NULL;
	s->conn = c;
	for (struct request *r = s->requests; r; r = r->next) {
		r->wanted = false;
		r->owes = 0;
	}
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
		net_frame_send(c->fd, &answer, -1);
		daemon_conn_close(c);
		return;
	}
	c->version = version;
	memcpy(c->node, f->hello.node, sizeof(c->node));
	daemon_conn_accept(c->server, c);
	answer.welcome.version = version;
	daemon_conn_send(c, &answer, -1);
}

/* Reads one frame. False: there is none, or the connection is closed. */
static bool daemon_conn_read_frame(struct conn *c)
{
	AUTO_FD passed = -1;
	struct net_frame f;
	struct err e = {};
	size_t len = 0;
	int r = net_frame_recv(c->fd, &f, &len, &passed);

	if (r == -EAGAIN)
		return false;
	if (r < 0 || len == 0) {
		if (r < 0 && r != -ECONNRESET)
			log_warning("closed the connection of '%s': %s", c->node, strerror(-r));
		daemon_conn_close(c);
		return false;
	}
	if (!net_frame_check(&f, len, passed >= 0, NET_FROM_DAEMON, c->version, &e) ||
		(f.type != NET_HELLO && !frame_handlers[f.type](c, &f, passed, &e))) {
		log_warning("closed the connection of '%s': %s", c->version ? c->node : "a client",
			e.msg);
		daemon_conn_close(c);
		return false;
	}
	if (f.type == NET_HELLO) {
		on_hello_frame(c, &f);
		return false; /* the connection may be closed; otherwise the loop calls again */
	}
	return true;
}

static int on_daemon_frames(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct conn *c = arg;
	struct net_server *s = c->server;

	(void)fd;
	if (events & EPOLLOUT)
		sd_event_source_set_io_events(source, EPOLLIN);
	for (int i = 0; i < FRAMES_PER_TURN && daemon_conn_read_frame(c);)
		i++;
	daemon_conn_flush(s->conn);
	return 0;
}

/* ---- connections ---- */

static void daemon_conn_close(struct conn *c)
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
		daemon_conn_close(s->unidentified);
	c = xcalloc(1, sizeof(*c));
	*c = (struct conn){.server = s, .fd = peer};
	if (sd_event_add_io(s->ev, &c->source, peer, EPOLLIN, on_daemon_frames, c) < 0) {
		free(c);
		return 0;
	}
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
		daemon_conn_close(s->unidentified);
	return 0;
}

static int on_linger(sd_event_source *source, uint64_t usec, void *arg)
{
	struct net_server *s = arg;

	(void)source;
	(void)usec;
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
	if (!webhooks_new(ev, on_posted, s, &s->webhooks, e))
		return false;
	if (!artifact_cache_new(ev,
		    &(struct artifact_cache_options){.dir = o->state_dir,
			    .private_copies = o->private_copies,
			    .requests = &s->requests},
		    &s->cache, e))
		return false;
	r = timer_new(s, &s->linger_timer, on_linger);
	if (r >= 0)
		r = timer_new(s, &s->hello_timer, on_no_hello);
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
		daemon_conn_close(s->unidentified);
	if (s->conn)
		daemon_conn_close(s->conn);
	while (s->requests)
		server_request_drop(s, s->requests);
	webhooks_free(s->webhooks);
	artifact_cache_free(s->cache);
	sd_event_source_disable_unref(s->listen_source);
	sd_event_source_disable_unref(s->linger_timer);
	sd_event_source_disable_unref(s->hello_timer);
	free(s);
}
