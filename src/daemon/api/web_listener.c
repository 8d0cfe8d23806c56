/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves a listening socket that a local client passes over the Unix socket ('jobctl web'). A
 * daemon without network can serve it, and it ends with the client.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/auth/tcp_listeners.h"
#include "daemon/api/request_private.h"
#include "daemon/api/server_private.h"
#include "daemon/api/server_tcp.h"
#include "daemon/api/web_listener.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENERS_PER_USER 4
#define LISTENERS_MAX 32

struct web_listener {
	struct server *server;
	uint32_t uid;
	struct MHD_UpgradeResponseHandle *urh;
	sd_event_source *on_input;
	struct tcp_source *source; /* NULL: the client has not passed it yet */
	TAILQ_ENTRY(web_listener) in_tcp;
};

static void close_link(struct web_listener *w)
{
	struct server *s = w->server;

	if (!w->urh)
		return;
	TAILQ_REMOVE(&s->tcp->webs, w, in_tcp);
	sd_event_source_disable_unref(w->on_input);
	if (w->source)
		server_tcp_drop(s, w->source);
	MHD_upgrade_action(STEAL(w->urh), MHD_UPGRADE_ACTION_CLOSE);
	free(w);
	server_resumed(s);
}

void web_listeners_close(struct server_tcp *t)
{
	while (!TAILQ_EMPTY(&t->webs))
		close_link(TAILQ_FIRST(&t->webs));
}

/* Receives one byte with one descriptor. -1: none. */
static int receive_descriptor(int sock)
{
	char byte;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static bool serve_descriptor(struct web_listener *w, int fd, struct err *e)
{
	struct tcp_listener l = {};

	if (!tcp_listener_describe(fd, &l, e))
		return false;
	if (!l.loopback)
		return err_set(e, ERR_DENIED, "'%s' is not a loopback address", l.shown);
	return io_set_nonblock(fd) == 0 && server_tcp_read_tokens(w->server, e) &&
	       server_tcp_add(w->server, &l, &w->source, e);
}

/* The first message has the socket. Anything else, or the end of the client, ends the listener. */
static int on_web_input(sd_event_source *src, int sock, uint32_t events, void *arg)
{
	struct web_listener *w = arg;
	struct err e = {};
	int fd = w->source ? -1 : receive_descriptor(sock);
	char answer[600];

	(void)src;
	(void)events;
	if (fd < 0) {
		close_link(w);
		return 0;
	}
	if (serve_descriptor(w, fd, &e)) {
		(void)!send(sock, "ok\n", 3, MSG_NOSIGNAL | MSG_DONTWAIT);
		return 0;
	}
	snprintf(answer, sizeof(answer), "%s\n", e.msg);
	(void)!send(sock, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (!w->source)
		close(fd);
	close_link(w);
	return 0;
}

static void on_upgraded(void *arg, struct MHD_Connection *mhd, void *state, const char *extra,
	size_t extra_len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
	struct request *r = arg;
	struct web_listener *w = xcalloc(1, sizeof(*w));
	int e;

	(void)mhd;
	(void)state;
	(void)extra;
	(void)extra_len;
	w->server = r->server;
	w->uid = r->who.uid;
	w->urh = urh;
	TAILQ_INSERT_TAIL(&r->server->tcp->webs, w, in_tcp);
	e = sd_event_add_io(r->server->event, &w->on_input, sock, EPOLLIN, on_web_input, w);
	if (e < 0 || r->server->stopping)
		close_link(w);
}

static bool has_room(const struct request *r, struct err *e)
{
	const struct web_listener *w;
	size_t own = 0, all = 0;

	TAILQ_FOREACH(w, &r->server->tcp->webs, in_tcp) {
		all++;
		own += w->uid == r->who.uid;
	}
	return (own < LISTENERS_PER_USER && all < LISTENERS_MAX) ||
	       err_set(e, ERR_LIMIT, "there are %zu listeners of 'jobctl web'; end one of them", all);
}

void web_listener_start(struct request *r)
{
	struct err e = {};

	if (r->conn->tcp || !r->server->tcp)
		err_set(&e, ERR_DENIED, "a listener can be passed on the Unix socket only");
	if (e.kind != ERR_NONE || !has_room(r, &e)) {
		request_answer_err(r, &e);
		return;
	}
	r->response = MHD_create_response_for_upgrade(on_upgraded, r);
	if (!r->response) {
		err_set(&e, ERR_INTERNAL, "the HTTP server cannot switch protocols");
		request_answer_err(r, &e);
		return;
	}
	MHD_add_response_header(r->response, MHD_HTTP_HEADER_UPGRADE, "jobsched-listener");
	r->answered = true;
	r->status = MHD_HTTP_SWITCHING_PROTOCOLS;
	request_resume(r);
}
