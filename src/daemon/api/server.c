/* SPDX-License-Identifier: Apache-2.0 */
/* Runs libmicrohttpd inside the event loop. */
#include "daemon/api/server.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/auth/http_guard.h"
#include "daemon/api/auth/tls_files.h"
#include "daemon/api/request_private.h"
#include "daemon/api/server_private.h"
#include "daemon/loop/output_watch.h"
#include "daemon/loop/user_lookup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* bytes per connection: a request head of maximum size plus buffers for the response */
#define POOL (40 * 1024)
/* seconds after which a client that reads nothing of its response is disconnected */
#define STALL 600
#define CONNECTIONS (1 << 20) /* limit of MHD; the configured limit is checked before */

/* ---- MHD in the loop ---- */

/* In ms; 0: MHD has more to do. */
static MHD_UNSIGNED_LONG_LONG next_timeout(const struct server *s)
{
	MHD_UNSIGNED_LONG_LONG ms, least = UINT64_MAX;
	struct mhd_loop *l;

	TAILQ_FOREACH(l, &s->loops, in_server)
		if (MHD_get_timeout(l->mhd, &ms) == MHD_YES && ms < least)
			least = ms;
	return least;
}

static void set_timers(struct server *s, MHD_UNSIGNED_LONG_LONG least)
{
	bool soon = s->resumed || least == 0, later;

	later = !soon && least != UINT64_MAX;
	sd_event_source_set_enabled(s->on_again, soon ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
	if (later)
		sd_event_source_set_time_relative(s->on_timeout, least * 1000);
	sd_event_source_set_enabled(s->on_timeout, later ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void free_loop(struct server *s, struct mhd_loop *l)
{
	TAILQ_REMOVE(&s->loops, l, in_server);
	sd_event_source_disable_unref(l->on_mhd);
	if (l->mhd)
		MHD_stop_daemon(l->mhd);
	free(l);
}

void server_run(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG least = 0;
	struct mhd_loop *l, *next;

	/* the second time MHD watches the connections that it has just answered, which a loop iteration would delay */
	for (int i = 0; i < 2 && (least == 0 || s->resumed); i++) {
		s->resumed = false;
		TAILQ_FOREACH(l, &s->loops, in_server)
			MHD_run(l->mhd);
		least = next_timeout(s);
	}
	for (l = TAILQ_FIRST(&s->loops); l; l = next) {
		next = TAILQ_NEXT(l, in_server);
		if (l->retired && l->connections == 0)
			free_loop(s, l);
	}
	set_timers(s, least);
}

void server_send_answers(struct server *s)
{
	if (s->resumed)
		server_run(s);
}

/*
 * MHD does not signal resumed connections on its epoll descriptor. All connections resumed in one
 * loop iteration are processed together.
 */
void server_resumed(struct server *s)
{
	s->resumed = true;
	sd_event_source_set_enabled(s->on_again, SD_EVENT_ONESHOT);
}

static int on_mhd(sd_event_source *src, int fd, uint32_t events, void *arg)
{
	struct mhd_loop *l = arg;

	(void)src;
	(void)fd;
	(void)events;
	server_run(l->server);
	return 0;
}

static int on_timeout(sd_event_source *src, uint64_t when, void *arg)
{
	(void)src;
	(void)when;
	server_run(arg);
	return 0;
}

static int on_mhd_again(sd_event_source *src, void *arg)
{
	(void)src;
	server_run(arg);
	return 0;
}

/* ---- callbacks of MHD ---- */

static void on_connection(void *arg, struct MHD_Connection *mhd, void **state,
	enum MHD_ConnectionNotificationCode what)
{
	struct server *s = arg;

	(void)mhd;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*state = STEAL(s->arriving);
	} else if (*state) {
		server_conn_free(*state);
		*state = NULL;
	}
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	     : c >= 'a' && c <= 'f' ? c - 'a' + 10
	     : c >= 'A' && c <= 'F' ? c - 'A' + 10
				    : -1;
}

/* Decodes %XX in place. An invalid escape or %00 is noted, and the request is refused later. */
static size_t on_unescape(void *arg, struct MHD_Connection *mhd, char *text)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *c = info ? info->socket_context : NULL;
	char *to = text;

	(void)arg;
	for (const char *from = text; *from; from++) {
		int high = *from == '%' ? hex(from[1]) : -1;
		int low = high >= 0 ? hex(from[2]) : -1;

		if (*from != '%') {
			*to++ = *from;
		} else if (low >= 0 && high + low > 0) {
			*to++ = (char)(high * 16 + low);
			from += 2;
		} else {
			*to++ = *from;
			if (c)
				c->bad_escape = true;
		}
	}
	*to = '\0';
	return (size_t)(to - text);
}

/* Checks the target of a request over TCP as the client sent it, before it is decoded. */
static void *on_raw_target(void *arg, const char *target, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *c = info ? info->socket_context : NULL;

	(void)arg;
	if (c && c->tcp) {
		c->bad_target = (struct err){};
		http_guard_target(target, &c->bad_target);
	}
	return NULL;
}

/* ---- start and stop ---- */

#define PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static bool start_mhd(struct mhd_loop *l, const struct tls_files *tls, struct err *e)
{
	struct server *s = l->server;
	const char *ca = tls ? tls_files_client_ca(tls) : NULL;
	struct MHD_OptionItem secure[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, tls ? (char *)tls_files_certificate(tls) : NULL},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, tls ? (char *)tls_files_key(tls) : NULL},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (char *)PRIORITIES},
		{ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, (char *)ca},
		{MHD_OPTION_END, 0, NULL}};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	/*
	 * no MHD_USE_ERROR_LOG: MHD would log failed TCP options, which a Unix socket does not
	 * have, for every response
	 */
	l->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
					  MHD_ALLOW_SUSPEND_RESUME |
					  (unsigned)(tls ? MHD_USE_TLS : MHD_ALLOW_UPGRADE),
		0, NULL, NULL, request_on_call, s, MHD_OPTION_NOTIFY_COMPLETED,
		request_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, s, MHD_OPTION_URI_LOG_CALLBACK,
		on_raw_target, s, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)STALL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
		tls ? secure : none, MHD_OPTION_END);
	return l->mhd ||
	       err_set(e, ERR_INTERNAL, "could not start the HTTP server: %s", strerror(errno));
}

bool server_add_loop(struct server *s, const struct tls_files *tls, struct mhd_loop **ret,
	struct err *e)
{
	struct mhd_loop *l = xcalloc(1, sizeof(*l));
	const union MHD_DaemonInfo *info;
	int r = -EIO;

	l->server = s;
	TAILQ_INSERT_TAIL(&s->loops, l, in_server);
	if (!start_mhd(l, tls, e)) {
		free_loop(s, l);
		return false;
	}
	info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (info)
		r = sd_event_add_io(s->event, &l->on_mhd, info->epoll_fd, EPOLLIN, on_mhd, l);
	if (r < 0) {
		free_loop(s, l);
		return err_errno(e, -r, "could not add the HTTP server to the loop");
	}
	*ret = l;
	return true;
}

void server_retire_loop(struct server *s, struct mhd_loop *l)
{
	l->retired = true;
	server_resumed(s); /* frees it if it has no connection */
}

static bool join_loop(struct server *s, struct err *e)
{
	int r = sd_event_add_time_relative(s->event, &s->on_timeout, CLOCK_MONOTONIC, 0, 1,
		on_timeout, s);

	if (r >= 0)
		r = sd_event_source_set_enabled(s->on_timeout, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_defer(s->event, &s->on_again, on_mhd_again, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->on_again, SD_EVENT_OFF);
	return r >= 0 || err_errno(e, -r, "could not add the HTTP server to the loop");
}

bool server_start(struct sd_event *ev, int listen_fd, const struct server_context *c,
	const struct server_limits *l, struct server **ret, struct err *e)
{
	AUTO(server) *s = xcalloc(1, sizeof(*s));

	s->event = sd_event_ref(ev);
	s->context = *c;
	s->limits = *l;
	s->started = clock_boot(c->clock);
	s->access = (struct access){ .user_mode = c->user_mode, .self = getuid() };
	s->listen_fd = listen_fd;
	s->admin_gid = NO_GROUP;
	TAILQ_INIT(&s->loops);
	for (int p = 0; p < PHASE_MAX; p++)
		TAILQ_INIT(&s->phases[p]);
	s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!user_lookup_new(ev, &s->user_lookup, e) || !join_loop(s, e) ||
		!server_add_loop(s, NULL, &s->plain, e) || !server_listen(s, listen_fd, e))
		return false;
	server_find_admins(s);
	*ret = STEAL(s);
	return true;
}

void server_set_limits(struct server *s, const struct server_limits *l)
{
	s->limits = *l;
}

void server_stop(struct server *s)
{
	s->stopping = true;
	server_unlisten(s);
	server_tcp_unlisten(s);
}

void server_refuse_waiting(struct server *s, const struct err *why, bool unknown)
{
	struct conn *c;

	TAILQ_FOREACH(c, &s->phases[PHASE_BUSY], in_phase)
		if (c->request)
			request_refuse_waiting(c->request, why, unknown);
}

/*
 * MHD aborts if it is stopped with a suspended connection, so all connections are resumed and
 * answered first.
 */
static void abandon_all(struct server *s)
{
	struct mhd_loop *l;
	struct conn *c;

	for (int p = 0; p < PHASE_MAX; p++)
		TAILQ_FOREACH(c, &s->phases[p], in_phase)
			if (c->request)
				request_abandon(c->request);
	/* the first call resumes the connections, the others send short responses */
	for (int i = 0; i < 4; i++)
		TAILQ_FOREACH(l, &s->loops, in_server)
			MHD_run(l->mhd);
}

void server_free(struct server *s)
{
	if (!s)
		return;
	server_stop(s);
	server_forget_admins(s);
	abandon_all(s);
	while (!TAILQ_EMPTY(&s->loops))
		free_loop(s, TAILQ_FIRST(&s->loops));
	server_tcp_free(s->tcp);
	sd_event_source_disable_unref(s->on_timeout);
	sd_event_source_disable_unref(s->on_again);
	sd_event_source_disable_unref(s->on_deadline);
	sd_event_source_disable_unref(s->on_relief);
	output_watch_free(s->outputs);
	if (s->reserve_fd >= 0)
		close(s->reserve_fd);
	user_lookup_free(s->user_lookup);
	client_users_done(s);
	sd_event_unref(s->event);
	free(s);
}
