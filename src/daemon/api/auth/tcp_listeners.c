/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the listening TCP sockets of the API. */
#include "daemon/api/auth/tcp_listeners.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "daemon/api/auth/tcp_address.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 1024
#define SOCKET_UNIT "jobschedd-tcp.socket"

void tcp_listeners_done(struct tcp_listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].fd >= 0)
			close(l->v[i].fd);
	free(l->v);
	*l = (struct tcp_listeners){};
}

bool tcp_listener_describe(int fd, struct tcp_listener *ret, struct err *e)
{
	struct sockaddr_storage a = {};
	socklen_t len = sizeof(a), size = sizeof(int);
	char text[TCP_ADDRESS_TEXT];
	int listening = 0, type = 0;

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return err_errno(e, errno, "could not examine a socket");
	if ((a.ss_family != AF_INET && a.ss_family != AF_INET6) || type != SOCK_STREAM || !listening)
		return err_set(e, ERR_INVALID, "a socket is not a listening TCP socket");
	tcp_address_text(&a, text);
	*ret = (struct tcp_listener){
		.fd = fd, .addr = a, .loopback = tcp_address_is_loopback(&a)};
	snprintf(ret->shown, sizeof(ret->shown), strchr(text, ':') ? "[%s]:%u" : "%s:%u", text,
		tcp_address_port(&a));
	return true;
}

static bool add_socket(struct tcp_listeners *l, int fd, bool tls, struct err *e)
{
	struct tcp_listener one = {};
	int r;

	if (!tcp_listener_describe(fd, &one, e))
		return false;
	if (!tls && !one.loopback)
		return err_set(e, ERR_INVALID,
			"'%s' can be reached from other machines and needs TLS: set 'tls-certificate' and "
			"'tls-key' in jobschedd.conf(5), or listen on 127.0.0.1",
			one.shown);
	r = io_set_nonblock(fd);
	if (r < 0)
		return err_errno(e, -r, "could not use the socket '%s'", one.shown);
	one.tls = tls;
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = one;
	return true;
}

/* A unit without network cannot create a TCP socket, or creates one that no client can reach. */
static bool no_socket(int errnum, const char *text, struct err *e)
{
	if (errnum == EAFNOSUPPORT)
		return err_set(e, ERR_INVALID,
			"could not listen on '%s': this unit has no network; remove 'listen' and enable "
			SOCKET_UNIT ", see API OVER TCP in jobschedd(8)",
			text);
	if (errnum == EADDRINUSE)
		return err_set(e, ERR_INVALID,
			"could not listen on '%s': another program uses the port; 'ss -ltnp' shows it",
			text);
	return err_errno(e, errnum, "could not listen on '%s'", text);
}

static bool open_socket(struct tcp_listeners *l, const char *text, bool tls, struct err *e)
{
	struct sockaddr_storage a;
	socklen_t len;
	const int on = 1;

	if (!tcp_address_parse(text, &a, &len, e))
		return false;
	AUTO_FD fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return no_socket(errno, text, e);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, BACKLOG) < 0)
		return no_socket(errno, text, e);
	if (!add_socket(l, fd, tls, e))
		return false;
	(void)STEAL_FD(fd);
	return true;
}

bool tcp_listeners_open(const char *lines, const int *fds, size_t n_fds, bool tls,
	struct tcp_listeners *ret, struct err *e)
{
	AUTO_DONE(tcp_listeners) l = {};

	for (size_t i = 0; i < n_fds; i++)
		if (!add_socket(&l, fds[i], tls, e)) {
			for (; i < n_fds; i++)
				close(fds[i]);
			return false;
		}
	while (lines && *lines) {
		size_t len = strcspn(lines, "\n");
		AUTO_TEXT one = xstrndup(lines, len);

		if (!open_socket(&l, one, tls, e))
			return false;
		lines += len + (lines[len] == '\n');
	}
	*ret = l;
	l = (struct tcp_listeners){};
	return true;
}
