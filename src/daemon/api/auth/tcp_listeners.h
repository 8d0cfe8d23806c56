/* SPDX-License-Identifier: Apache-2.0 */
/* Listening TCP sockets, from the configuration or from systemd. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct err;

struct tcp_listener {
	int fd;                       /* owned */
	struct sockaddr_storage addr; /* with the port that the kernel chose */
	bool loopback, tls;
	char shown[80];               /* ADDRESS:PORT */
};
struct tcp_listeners {
	struct tcp_listener *v; /* owned */
	size_t n;
};
void tcp_listeners_done(struct tcp_listeners *l);

/*
 * 'lines' has one ADDRESS:PORT per line (NULL: none). 'fds' are sockets that systemd created; they
 * are moved. Without 'tls' an address that is not loopback is refused.
 */
bool tcp_listeners_open(const char *lines, const int *fds, size_t n_fds, bool tls,
	struct tcp_listeners *ret, struct err *e);
/* Describes a listening socket. Refused: not a listening TCP socket. */
bool tcp_listener_describe(int fd /* not moved */, struct tcp_listener *ret, struct err *e);
