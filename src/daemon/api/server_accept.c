/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections within limits; closes idle ones. */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "core/decide/fair_share.h"
#include "daemon/api/server_private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define IDLE_FACTOR 6
#define RELIEF (100 * USEC_MSEC)

/* ---- timeouts ---- */

static usec_t server_boot_now(const struct server *s)
{
	return clock_boot(s->context.clock);
}

static void arm_deadline(struct server *s)
{
	usec_t first = USEC_NEVER, now = server_boot_now(s);
	int enabled = SD_EVENT_OFF;

	for (int p = PHASE_HEAD; p < PHASE_BUSY; p++) {
		const struct conn *c = TAILQ_FIRST(&s->phases[p]);

		if (c && c->deadline < first)
			first = c->deadline;
	}
	if (first == USEC_NEVER)
		return;
	/* a timer that expires early enough is kept, because most deadlines are met */
	sd_event_source_get_enabled(s->on_deadline, &enabled);
	if (enabled != SD_EVENT_OFF && s->deadline_armed <= first)
		return;
	s->deadline_armed = first;
	sd_event_source_set_time_relative(s->on_deadline,
		first > now ? (uint64_t)(first - now) : 0);
	sd_event_source_set_enabled(s->on_deadline, SD_EVENT_ONESHOT);
}

/* An idle connection has a longer timeout than one without a first request. */
static int phase_seconds(const struct server *s, enum conn_phase phase)
{
	return phase == PHASE_HEAD   ? s->limits.head_timeout
	       : phase == PHASE_IDLE ? IDLE_FACTOR * s->limits.head_timeout
				     : s->limits.body_timeout;
}

void server_conn_enter(struct conn *c, enum conn_phase phase)
{
	struct server *s = c->server;

	TAILQ_REMOVE(&s->phases[c->phase], c, in_phase);
	c->phase = phase;
	c->extended = false;
	c->deadline = server_boot_now(s) + phase_seconds(s, phase) * USEC_SEC;
	TAILQ_INSERT_TAIL(&s->phases[phase], c, in_phase);
	if (phase != PHASE_BUSY)
		arm_deadline(s);
}

/* The client has sent bytes that the daemon has not read yet. */
static bool has_unread_input(const struct conn *c)
{
	int bytes = 0;

	return ioctl(c->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

/*
 * Closes connections whose client was silent for too long. Unread input at the deadline means that
 * the daemon was slow, not the client, so such a connection gets a second deadline, once per phase.
 */
static int on_conn_deadline(sd_event_source *src, uint64_t when, void *arg)
{
	struct server *s = arg;
	usec_t now = server_boot_now(s);

	(void)src;
	(void)when;
	for (int p = PHASE_HEAD; p < PHASE_BUSY; p++) {
		struct conn *c;

		while ((c = TAILQ_FIRST(&s->phases[p])) && c->deadline <= now) {
			if (!c->extended && has_unread_input(c)) {
				server_conn_enter(c, c->phase);
				c->extended = true;
				continue;
			}
			/* MHD reads the end of the stream and closes the connection */
			TAILQ_REMOVE(&s->phases[p], c, in_phase);
			c->phase = PHASE_BUSY;
			TAILQ_INSERT_TAIL(&s->phases[PHASE_BUSY], c, in_phase);
			shutdown(c->fd, SHUT_RDWR);
		}
	}
	arm_deadline(s);
	return 0;
}

/* ---- refusals ---- */

/*
 * Sends a complete response, which fits into the socket buffer. A client that has left is ignored.
 */
static void send_refusal(int fd, bool tls, int status, const char *phrase, const char *code,
	const char *message)
{
	char body[500], text[800];
	int n = snprintf(body, sizeof(body),
		"{\"error\":{\"code\":\"%s\",\"field\":null,\"message\":\"%s\"}}\n", code, message);

	snprintf(text, sizeof(text),
		"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
		"%sConnection: close\r\n\r\n%s",
		status, phrase, n, status == 403 ? "" : "Retry-After: 1\r\n", body);
	if (!tls) /* a handshake would take too long for a client that is refused */
		(void)!send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

void server_log_refusal(struct server *s, const char *why)
{
	usec_t now = server_boot_now(s);

	if (s->refusal_logged != 0 && now - s->refusal_logged < USEC_MIN)
		return;
	s->refusal_logged = now;
	log_warning("refusing connections: %s", why);
}

static void refuse_without_descriptor(struct server *s)
{
	int fd;

	server_log_refusal(s, "out of file descriptors; raise LimitNOFILE or lower 'connections'");
	if (s->reserve_fd >= 0) {
		close(s->reserve_fd);
		fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			send_refusal(fd, false, 503, "Service Unavailable", "busy",
				"the daemon has no file descriptor left; try again");
	}
	s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (s->reserve_fd >= 0)
		return;
	/*
	 * the reserve could not be opened again; the listening socket stays readable, so accepting
	 * pauses for a moment
	 */
	sd_event_source_set_enabled(s->on_accept, SD_EVENT_OFF);
	sd_event_source_set_time_relative(s->on_relief, RELIEF);
	sd_event_source_set_enabled(s->on_relief, SD_EVENT_ONESHOT);
}

static int on_relief(sd_event_source *src, uint64_t when, void *arg)
{
	struct server *s = arg;

	(void)src;
	(void)when;
	if (s->on_accept)
		sd_event_source_set_enabled(s->on_accept, SD_EVENT_ON);
	return 0;
}

/* ---- accepting ---- */

static size_t reserved_connections(const struct server_limits *l)
{
	return l->connections_reserved < l->connections / 4 ? l->connections_reserved
							    : l->connections / 4;
}

/* Whether a user may use one more of the connections that are not reserved. */
static bool has_share(const struct server *s, const struct client_user *p)
{
	struct fair_share share = {
		.total = (int64_t)(s->limits.connections - reserved_connections(&s->limits)),
		.used = (int64_t)s->users_connections,
		.per_owner = (int64_t)s->limits.connections_per_uid};

	return fair_share_allows(&share, (int64_t)p->connections, 1);
}

static void refuse_share(struct server *s, const struct conn *c)
{
	const struct client_user *p = c->user;
	char message[200];

	if (s->users_connections >= s->limits.connections - reserved_connections(&s->limits)) {
		server_log_refusal(s, "users have all connections that are not reserved ('connections')");
		send_refusal(c->fd, c->tls, 503, "Service Unavailable", "busy",
			"too many connections; try again");
		return;
	}
	snprintf(message, sizeof(message),
		"too many connections of your %s: %zu are open, the limit is %zu or less if few "
		"are free; close some, or try again",
		c->tcp ? "address" : "user", p->connections, s->limits.connections_per_uid);
	send_refusal(c->fd, c->tls, 429, "Too Many Requests", "limit", message);
}

/* Identifies the user of 'c'. False: the connection was refused and closed. */
static bool identify_connection(struct server *s, struct conn *c)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
		!access_serves(&s->access, who.uid)) {
		send_refusal(c->fd, false, 403, "Forbidden", "denied",
			"this daemon does not serve your user");
		return false;
	}
	c->pid = who.pid;
	c->gid = who.gid;
	c->user = client_user_get(s, who.uid);
	c->reserved = who.uid == 0 || s->context.user_mode;
	return true;
}

bool server_conn_admit(struct conn *c)
{
	struct server *s = c->server;

	if (s->connections >= s->limits.connections) {
		server_log_refusal(s, "the limit of 'connections' is reached");
		send_refusal(c->fd, c->tls, 503, "Service Unavailable", "busy",
			"too many connections; try again");
		return false;
	}
	if (c->reserved || has_share(s, c->user))
		return true;
	c->reserved = !c->tcp && c->user->connections < s->limits.connections_per_uid &&
		      server_conn_is_admin(c);
	if (!c->reserved)
		refuse_share(s, c);
	return c->reserved;
}

void server_conn_serve(struct conn *c, const struct sockaddr *addr, socklen_t len)
{
	struct server *s = c->server;

	c->phase = PHASE_BUSY;
	TAILQ_INSERT_TAIL(&s->phases[PHASE_BUSY], c, in_phase);
	c->user->connections++;
	c->loop->connections++;
	s->connections++;
	s->users_connections += !c->reserved;
	server_conn_enter(c, PHASE_HEAD);
	s->arriving = c;
	/* on failure MHD closes the descriptor without a call of on_connection() */
	if (MHD_add_connection(c->loop->mhd, c->fd, addr, len) != MHD_YES && s->arriving)
		server_conn_free(c);
	s->arriving = NULL;
}

static void accept_connection(struct server *s, int fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct conn *c = xcalloc(1, sizeof(*c));

	c->server = s;
	c->fd = fd;
	c->loop = s->plain;
	if (!identify_connection(s, c) || !server_conn_admit(c)) {
		free(c);
		return;
	}
	server_conn_serve(c, (struct sockaddr *)&addr, sizeof(addr));
}

static int on_api_accept(sd_event_source *src, int fd, uint32_t events, void *arg)
{
	struct server *s = arg;

	(void)src;
	(void)events;
	for (int i = 0; i < ACCEPT_BURST; i++) {
		int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (got >= 0) {
			accept_connection(s, got);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE)
			refuse_without_descriptor(s);
		else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			server_log_refusal(s, strerror(errno));
		break;
	}
	server_run(s);
	return 0;
}

void server_conn_free(struct conn *c)
{
	TAILQ_REMOVE(&c->server->phases[c->phase], c, in_phase);
	c->user->connections--;
	c->server->connections--;
	c->loop->connections--;
	c->server->users_connections -= !c->reserved;
	if (c->tcp)
		server_tcp_conn_done(c);
	free(c);
}

static int add_boottime_timer(struct server *s, sd_event_source **ret, sd_event_time_handler_t fn)
{
	int r = sd_event_add_time_relative(s->event, ret, CLOCK_BOOTTIME, 0, 1, fn, s);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

bool server_listen(struct server *s, int fd, struct err *e)
{
	int r = io_set_nonblock(fd);

	s->listen_fd = fd;
	if (r >= 0)
		r = sd_event_add_io(s->event, &s->on_accept, fd, EPOLLIN, on_api_accept, s);
	if (r >= 0)
		r = add_boottime_timer(s, &s->on_deadline, on_conn_deadline);
	if (r >= 0) /* a flood of requests does not delay deadlines */
		r = sd_event_source_set_priority(s->on_deadline, SD_EVENT_PRIORITY_NORMAL - 1);
	if (r >= 0)
		r = add_boottime_timer(s, &s->on_relief, on_relief);
	return r >= 0 || err_errno(e, -r, "could not listen on the socket");
}

void server_unlisten(struct server *s)
{
	s->on_accept = sd_event_source_disable_unref(s->on_accept);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	s->listen_fd = -1;
}
