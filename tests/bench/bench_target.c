/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server that answers each request after a fixed time. */
/*
 * usage: bench_target DELAY_US [CERTIFICATE KEY]     with files in PEM for HTTPS
 * Prints its port. GET /figures answers since the last time: other requests, the most that waited at a time, connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROOM 8192 /* bytes of a request */
#define CONNECTIONS 4096
#define EVENTS 256

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

struct conn {
	int fd;
	bool ready;         /* TLS: the handshake is complete */
	bool figures;       /* the request asks for the figures */
	gnutls_session_t tls;
	size_t len, asked;  /* bytes read; of them, the first request */
	int64_t due;        /* when the answer is sent; 0: no request waits */
	struct conn *next;  /* the request that came after it */
	char data[ROOM + 1];
};

static struct {
	int epoll;
	int64_t delay; /* nanoseconds */
	gnutls_certificate_credentials_t certificate;
	struct conn *first, **last;
	long requests, waiting, waiting_max, conns;
} all = {.last = &all.first};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void conn_close(struct conn *c)
{
	for (struct conn **at = &all.first; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			if (!c->next)
				all.last = at;
			all.waiting--;
			break;
		}
	if (c->tls)
		gnutls_deinit(c->tls);
	close(c->fd);
	free(c);
}

static ssize_t conn_read(struct conn *c)
{
	ssize_t n = c->tls ? gnutls_record_recv(c->tls, c->data + c->len, ROOM - c->len)
			   : recv(c->fd, c->data + c->len, ROOM - c->len, 0);

	return n >= 0 || (c->tls ? !gnutls_error_is_fatal((int)n) : errno == EAGAIN) ? n : -2;
}

/* The answers are short and the client waits for them, so that the socket has room. */
static void conn_write(struct conn *c, const char *text)
{
	size_t len = strlen(text);
	ssize_t n = c->tls ? gnutls_record_send(c->tls, text, len) : send(c->fd, text, len, MSG_NOSIGNAL);

	if (n != (ssize_t)len)
		shutdown(c->fd, SHUT_RDWR);
}

/* The bytes of the first request; 0: it is not complete. */
static size_t request_size(struct conn *c)
{
	const char *end, *length;

	c->data[c->len] = '\0';
	end = strstr(c->data, "\r\n\r\n");
	if (!end)
		return 0;
	length = strcasestr(c->data, "\r\ncontent-length:");
	c->asked = (size_t)(end - c->data) + 4 + (length && length < end ? (size_t)atol(length + 17) : 0);
	return c->len >= c->asked ? c->asked : 0;
}

static bool conn_next_request(struct conn *c)
{
	if (c->due || !request_size(c))
		return false;
	c->figures = strncmp(c->data, "GET /figures ", 13) == 0;
	c->len -= c->asked;
	memmove(c->data, c->data + c->asked, c->len);
	return true;
}

static void conn_answer(struct conn *c)
{
	char text[200], figures[64];

	if (!c->figures) {
		conn_write(c, answer);
		return;
	}
	snprintf(figures, sizeof(figures), "%ld %ld %ld\n", all.requests, all.waiting_max, all.conns - 1);
	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(figures), figures);
	conn_write(c, text);
	all.requests = all.waiting_max = all.conns = 0;
}

static void conn_requests(struct conn *c)
{
	while (conn_next_request(c)) {
		all.requests += !c->figures;
		if (!all.delay || c->figures) {
			conn_answer(c);
			continue;
		}
		c->due = now_ns() + all.delay;
		c->next = NULL;
		*all.last = c;
		all.last = &c->next;
		if (++all.waiting > all.waiting_max)
			all.waiting_max = all.waiting;
	}
}

static void on_ready(struct conn *c)
{
	ssize_t n;

	if (c->tls && !c->ready) {
		int r = gnutls_handshake(c->tls);

		c->ready = r == 0;
		if (r < 0 && gnutls_error_is_fatal(r))
			conn_close(c);
		if (r < 0)
			return;
	}
	do {
		n = conn_read(c);
		if (n == 0 || n == -2 || (n > 0 && c->len + (size_t)n == ROOM)) {
			conn_close(c);
			return;
		}
		c->len += n > 0 ? (size_t)n : 0;
		conn_requests(c);
	} while (c->tls && n > 0); /* gnutls may hold more than the socket does */
}

static void on_connect(int listener)
{
	struct conn *c = calloc(1, sizeof(*c));
	int one = 1;

	c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->fd < 0) {
		free(c);
		return;
	}
	all.conns++;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (all.certificate) {
		gnutls_init(&c->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK);
		gnutls_set_default_priority(c->tls);
		gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, all.certificate);
		gnutls_transport_set_int(c->tls, c->fd);
	}
	epoll_ctl(all.epoll, EPOLL_CTL_ADD, c->fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = c});
}

/* Returns the time until the next answer, or -1. */
static int64_t answers_due(void)
{
	int64_t now = now_ns();

	while (all.first && all.first->due <= now) {
		struct conn *c = all.first;

		all.first = c->next;
		if (!all.first)
			all.last = &all.first;
		all.waiting--;
		c->due = 0;
		conn_answer(c);
		conn_requests(c);
	}
	return all.first ? all.first->due - now : -1;
}

static int listener_new(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 || listen(fd, CONNECTIONS) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &size) < 0)
		return -1;
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	epoll_ctl(all.epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN});
	return fd;
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS];
	int listener;

	if (argc != 2 && argc != 4)
		return 2;
	all.delay = atoll(argv[1]) * 1000;
	if (argc == 4 && (gnutls_certificate_allocate_credentials(&all.certificate) < 0 ||
				 gnutls_certificate_set_x509_key_file(all.certificate, argv[2], argv[3], GNUTLS_X509_FMT_PEM) < 0))
		return 1;
	all.epoll = epoll_create1(EPOLL_CLOEXEC);
	listener = listener_new();
	while (listener >= 0) {
		int64_t wait = answers_due();
		struct timespec t = {wait / 1000000000, wait % 1000000000};
		int n = epoll_pwait2(all.epoll, events, EVENTS, wait < 0 ? NULL : &t, NULL);

		for (int i = 0; i < n; i++)
			if (events[i].data.ptr)
				on_ready(events[i].data.ptr);
			else
				on_connect(listener);
	}
	return 1;
}
