/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections over TCP. */
#include "daemon/api/server_tcp.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/api/auth/jwt_keys.h"
#include "daemon/api/auth/tcp_listeners.h"
#include "daemon/api/auth/tls_files.h"
#include "daemon/api/auth/token_cache.h"
#include "daemon/api/server_private.h"
#include "daemon/api/web_listener.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TLS_CHECK (2 * USEC_SEC) /* between looks at the certificate files */
/* Failed authentications of one address: as many at once, then one in six seconds. */
#define FAILURES_BURST 20
#define FAILURES_PER_SECOND (1.0 / 6)

struct tcp_source {
	struct server *server;
	struct tcp_listener l;
	sd_event_source *on_accept;
	TAILQ_ENTRY(tcp_source) in_tcp;
};

/* ---- accepting ---- */

static struct client_user *address_user(struct server_tcp *t, int64_t key)
{
	struct client_user *p = map_get(&t->addresses, key);

	if (p)
		return p;
	p = xcalloc(1, sizeof(*p));
	p->uid = UID_OVERFLOW; /* no user, so no permission is derived from it */
	p->number = UID_OVERFLOW;
	map_put(&t->addresses, key, p);
	return p;
}

static void forget_address(struct server_tcp *t, int64_t key)
{
	struct client_user *p = map_get(&t->addresses, key);

	if (!p || p->connections > 0)
		return;
	map_take(&t->addresses, key);
	free(p->name);
	free(p);
}

void server_tcp_conn_done(struct conn *c)
{
	c->server->tcp->connections--;
	forget_address(c->server->tcp, c->address_key);
}

/* Clients over TCP use at most half of all connections, so that local users are not locked out. */
static bool tcp_has_room(const struct server *s)
{
	return s->tcp->connections < (s->limits.connections + 1) / 2;
}

/* Other machines can connect only if some client could authenticate itself. */
static bool can_authenticate(const struct tcp_source *src)
{
	const struct server_tcp *t = src->server->tcp;

	return src->l.loopback || t->jwt || (t->tokens && !token_cache_is_empty(t->tokens));
}

static void accept_tcp(struct tcp_source *src, int fd, const struct sockaddr_storage *addr,
	socklen_t len)
{
	struct server *s = src->server;
	struct conn *c;

	if (!can_authenticate(src)) {
		server_log_refusal(s, "there is no token; 'jobctl token add NAME' makes one");
		close(fd);
		return;
	}
	if (!tcp_has_room(s)) {
		server_log_refusal(s, "clients over TCP have half of all connections");
		close(fd);
		return;
	}
	c = xcalloc(1, sizeof(*c));
	c->server = s;
	c->fd = fd;
	c->tcp = true;
	c->tls = src->l.tls;
	c->loop = c->tls ? s->tls : s->plain;
	c->loopback = tcp_address_is_loopback(addr);
	c->port = tcp_address_port(&src->l.addr);
	c->gid = NO_GROUP;
	c->address_key = tcp_address_key(addr);
	tcp_address_text(addr, c->address);
	c->user = address_user(s->tcp, c->address_key);
	if (!server_conn_admit(c)) {
		forget_address(s->tcp, c->address_key);
		free(c);
		return;
	}
	s->tcp->connections++;
	server_conn_serve(c, (const struct sockaddr *)addr, len);
}

static int on_tcp_accept(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct tcp_source *src = arg;
	struct server *s = src->server;

	(void)source;
	(void)events;
	for (int i = 0; i < ACCEPT_BURST; i++) {
		struct sockaddr_storage addr = {};
		socklen_t len = sizeof(addr);
		int got = accept4(fd, (struct sockaddr *)&addr, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (got >= 0) {
			accept_tcp(src, got, &addr, len);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			server_log_refusal(s, strerror(errno));
		break;
	}
	server_run(s);
	return 0;
}

bool server_tcp_add(struct server *s, struct tcp_listener *l, struct tcp_source **ret,
	struct err *e)
{
	struct tcp_source *t = xcalloc(1, sizeof(*t));
	int r;

	t->server = s;
	t->l = *l;
	l->fd = -1;
	/* edge-triggered: out of descriptors, the loop does not spin but waits for the next client */
	r = sd_event_add_io(s->event, &t->on_accept, t->l.fd, EPOLLIN | EPOLLET, on_tcp_accept, t);
	if (r >= 0) /* Unix clients come first */
		r = sd_event_source_set_priority(t->on_accept, SD_EVENT_PRIORITY_NORMAL + 1);
	TAILQ_INSERT_TAIL(&s->tcp->sources, t, in_tcp);
	if (r < 0) {
		server_tcp_drop(s, t);
		return err_errno(e, -r, "could not listen on '%s'", l->shown);
	}
	if (ret)
		*ret = t;
	return true;
}

void server_tcp_drop(struct server *s, struct tcp_source *t)
{
	TAILQ_REMOVE(&s->tcp->sources, t, in_tcp);
	sd_event_source_disable_unref(t->on_accept);
	close(t->l.fd);
	free(t);
}

void server_tcp_unlisten(struct server *s)
{
	if (s->tcp)
		web_listeners_close(s->tcp);
	while (s->tcp && !TAILQ_EMPTY(&s->tcp->sources))
		server_tcp_drop(s, TAILQ_FIRST(&s->tcp->sources));
}

/* ---- certificates ---- */

static int on_tls_check(sd_event_source *src, uint64_t when, void *arg)
{
	struct server *s = arg;
	struct mhd_loop *fresh = NULL;
	struct err e = {};

	(void)when;
	sd_event_source_set_time_relative(src, TLS_CHECK);
	sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	if (!tls_files_refresh(s->tcp->tls))
		return 0;
	if (!server_add_loop(s, s->tcp->tls, &fresh, &e)) {
		log_error("the previous TLS certificate stays in use: %s", e.msg);
		return 0;
	}
	server_retire_loop(s, s->tls);
	s->tls = fresh;
	return 0;
}

static bool start_tls(struct server *s, struct tls_files *tls, struct err *e)
{
	int r;

	s->tcp->tls = tls;
	if (!server_add_loop(s, tls, &s->tls, e))
		return false;
	r = sd_event_add_time_relative(s->event, &s->tcp->on_tls_check, CLOCK_MONOTONIC, TLS_CHECK,
		USEC_SEC / 10, on_tls_check, s);
	return r >= 0 || err_errno(e, -r, "could not watch the TLS certificate");
}

/* ---- start and stop ---- */

static void add_hosts(struct strv *to, const char *list)
{
	while (list && *list) {
		size_t blank = strspn(list, " ,"), len = strcspn(list + blank, " ,");

		if (len > 0)
			strv_take(to, xstrndup(list + blank, len));
		list += blank + len;
	}
}

static void add_own_name(struct strv *to, const char *node_name)
{
	char host[256] = "";

	if (node_name)
		strv_add(to, node_name);
	if (gethostname(host, sizeof(host) - 1) == 0 && host[0])
		strv_add(to, host);
}

bool server_tcp_start(struct server *s, struct server_tcp_options *o, struct err *e)
{
	struct server_tcp *t = s->tcp = xcalloc(1, sizeof(*t));

	t->server = s;
	TAILQ_INIT(&t->sources);
	TAILQ_INIT(&t->webs);
	t->jwt = STEAL(o->jwt);
	t->session_life = o->session_life * USEC_SEC;
	add_hosts(&t->hosts, o->hosts);
	add_own_name(&t->hosts, o->node_name);
	rate_limit_init(&t->requests, (double)o->requests_per_second, (double)o->requests_burst);
	rate_limit_init(&t->failures, FAILURES_PER_SECOND, FAILURES_BURST);
	if (o->tls && !start_tls(s, STEAL(o->tls), e))
		return false;
	for (size_t i = 0; i < o->listeners->n; i++) {
		log_info("listening on %s://%s", o->listeners->v[i].tls ? "https" : "http",
			o->listeners->v[i].shown);
		if (!server_tcp_add(s, &o->listeners->v[i], NULL, e))
			return false;
	}
	return o->listeners->n == 0 || server_tcp_read_tokens(s, e);
}

bool server_tcp_read_tokens(struct server *s, struct err *e)
{
	return s->tcp->tokens ||
	       token_cache_new(s->event, s->context.store, &s->tcp->tokens, e);
}

void server_tcp_free(struct server_tcp *t)
{
	struct client_user *p;

	if (!t)
		return;
	server_tcp_unlisten(t->server);
	sd_event_source_disable_unref(t->on_tls_check);
	token_cache_free(t->tokens);
	tls_files_free(t->tls);
	jwt_keys_free(t->jwt);
	strv_done(&t->hosts);
	rate_limit_done(&t->requests);
	rate_limit_done(&t->failures);
	for (size_t i = 0; (p = map_next(&t->addresses, &i));)
		free(p);
	map_done(&t->addresses);
	free(t);
}
