/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to the daemon, with retries. */
#include "wire/http_client.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "wire/error_json.h"
#include "wire/http_response.h"
#include "wire/http_tls.h"
#include "wire/http_url.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#define CONNECT_TIMEOUT_SEC 10 /* connect() blocks while the backlog of the socket is full */
#define CONNECTIONS_MAX 3      /* of one request */

struct http_client {
	char *path;    /* owned: of the Unix socket; NULL: over TCP */
	struct http_url url;
	char *token, *ca_file, *certificate, *key; /* owned; NULL: none */
	struct http_tls *tls; /* owned; NULL: not encrypted */
	int fd;        /* -1: not connected; changed under the mutex */
	pthread_mutex_t mutex; /* for http_client_interrupt() */
	bool interrupted;
	bool fresh;    /* no response has been received on this connection yet */
	struct http_response response;
	http_client_unresponsive_fn *on_unresponsive; /* NULL: none */
	void *unresponsive_arg;
	int unresponsive_ms;
};

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	pthread_mutex_destroy(&c->mutex);
	http_tls_free(c->tls);
	http_response_done(&c->response);
	http_url_done(&c->url);
	if (c->token)
		explicit_bzero(c->token, strlen(c->token));
	free(c->token);
	free(c->ca_file);
	free(c->certificate);
	free(c->key);
	free(c->path);
	free(c);
}

static void close_connection(struct http_client *c)
{
	http_tls_free(STEAL(c->tls));
	c->response.tls = NULL;
	pthread_mutex_lock(&c->mutex);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	pthread_mutex_unlock(&c->mutex);
}

/* False: the client was interrupted; the connection is not used. */
static bool use_connection(struct http_client *c, int *fd)
{
	bool use;

	pthread_mutex_lock(&c->mutex);
	use = !c->interrupted;
	if (use)
		c->fd = STEAL_FD(*fd);
	pthread_mutex_unlock(&c->mutex);
	return use;
}

void http_client_interrupt(struct http_client *c)
{
	pthread_mutex_lock(&c->mutex);
	c->interrupted = true;
	if (c->fd >= 0)
		(void)shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_unlock(&c->mutex);
}

static bool cannot_connect(const char *path, int errnum, struct err *e)
{
	if (errnum == EACCES || errnum == EPERM)
		return err_set(e, ERR_DENIED, "no permission to connect to '%s': %s", path,
			strerror(errnum));
	if (errnum == EAGAIN)
		return err_set(e, ERR_UNREACHABLE,
			"no daemon accepted the connection to '%s' within %d s", path,
			CONNECT_TIMEOUT_SEC);
	return err_set(e, ERR_UNREACHABLE, "cannot connect to '%s': %s", path, strerror(errnum));
}

/* ---- TCP ---- */

/* Connects to one address. errno-style result; 0: connected. */
static int connect_address(const struct addrinfo *a, usec_t until, int *ret)
{
	AUTO_FD fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
		return errno;
	if (!http_response_poll(fd, POLLOUT, until, NULL))
		return ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return errno;
	if (error == 0)
		*ret = STEAL_FD(fd);
	return error;
}

static bool connect_host(const struct http_url *u, usec_t until, int *ret, struct err *e)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *all = NULL;
	int r = getaddrinfo(u->host, u->port, &hints, &all), error = ENOENT;

	if (r != 0)
		return err_set(e, ERR_UNREACHABLE, "cannot find the host '%s': %s", u->host,
			gai_strerror(r));
	for (const struct addrinfo *a = all; a && error != 0; a = a->ai_next)
		error = connect_address(a, until, ret);
	freeaddrinfo(all);
	return error == 0 || err_set(e, ERR_UNREACHABLE, "cannot connect to '%s': %s", u->shown,
				     strerror(error));
}

static bool reconnect_remote(struct http_client *c, struct err *e)
{
	const struct http_tls_options tls = {.host = c->url.host,
		.ca_file = c->ca_file,
		.certificate = c->certificate,
		.key = c->key,
		.until = http_response_deadline(CONNECT_TIMEOUT_SEC * 1000)};
	const int on = 1;
	int got = -1;

	close_connection(c);
	if (!connect_host(&c->url, tls.until, &got, e))
		return false;
	AUTO_FD fd = got;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (c->url.tls && !http_tls_open(fd, &tls, &c->tls, e))
		return false;
	http_response_reset(&c->response);
	if (!use_connection(c, &fd))
		return err_set(e, ERR_UNREACHABLE, "the connection was interrupted");
	c->response.tls = c->tls;
	c->fresh = true;
	return true;
}

bool http_client_open_remote(const struct http_client_remote *o, struct http_client **ret,
	struct err *e)
{
	AUTO(http_client) *c = xcalloc(1, sizeof *c);

	c->fd = -1;
	pthread_mutex_init(&c->mutex, NULL);
	if (!http_url_parse(o->url, &c->url, e))
		return false;
	c->token = xstrdup(o->token);
	c->ca_file = xstrdup(o->ca_file);
	c->certificate = xstrdup(o->certificate);
	c->key = xstrdup(o->key);
	if (!reconnect_remote(c, e))
		return false;
	*ret = STEAL(c);
	return true;
}

/* ---- Unix socket ---- */

static bool reconnect(struct http_client *c, struct err *e)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_sec = CONNECT_TIMEOUT_SEC};
	int r;

	if (!c->path)
		return reconnect_remote(c, e);
	strcpy(address.sun_path, c->path); /* http_client_open() checked the length */
	close_connection(c);
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(e, errno, "cannot create a socket");
	/* For a Unix socket SO_SNDTIMEO also limits connect(). */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	do
		r = connect(fd, (struct sockaddr *)&address, sizeof address);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return cannot_connect(c->path, errno, e);
	r = io_set_nonblock(fd);
	if (r < 0)
		return err_errno(e, -r, "cannot use the socket '%s'", c->path);
	http_response_reset(&c->response);
	if (!use_connection(c, &fd))
		return err_set(e, ERR_UNREACHABLE, "the connection was interrupted");
	c->fresh = true;
	return true;
}

bool http_client_open(const char *socket_path, struct http_client **ret, struct err *e)
{
	AUTO(http_client) *c = NULL;

	if (!*socket_path || strlen(socket_path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return err_set(e, ERR_INVALID,
			"'%s' cannot be the path of a socket: the length must be 1 to %zu bytes",
			socket_path, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	c = xcalloc(1, sizeof *c);
	c->fd = -1;
	pthread_mutex_init(&c->mutex, NULL);
	c->path = xstrdup(socket_path);
	if (!reconnect(c, e))
		return false;
	*ret = STEAL(c);
	return true;
}

/*
 * Sends all of 'data', or fails with ERR_UNREACHABLE. *ret_sent: at least one byte was sent, so the
 * request may be executed.
 */
static bool send_request(const struct http_client *c, const char *data, size_t len, usec_t until,
	bool *ret_sent, struct err *e)
{
	*ret_sent = false;
	while (len > 0) {
		ssize_t n = c->tls ? http_tls_send(c->tls, data, len)
				   : send(c->fd, data, len, MSG_NOSIGNAL);

		if (n > 0) {
			*ret_sent = true;
			data += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			if (!http_response_poll(c->fd, POLLOUT, until, e))
				return false;
		} else if (n < 0 && errno != EINTR) {
			return err_set(e, ERR_UNREACHABLE, "the daemon closed the connection: %s",
				strerror(errno));
		}
	}
	return true;
}

static void render_request(const struct http_client *c, struct buf *out, const char *method,
	const char *path, const char *body)
{
	buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: jobctl/%s\r\n", method, path,
		c->path ? "localhost" : c->url.shown, PACKAGE_VERSION);
	if (c->token)
		buf_printf(out, "Authorization: Bearer %s\r\n", c->token);
	if (body)
		buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			strlen(body));
	else if (strcmp(method, "GET") != 0)
		buf_str(out, "Content-Length: 0\r\n");
	buf_str(out, "\r\n");
	if (body)
		buf_str(out, body);
}

static void wait_unresponsive(struct http_client *c, usec_t until)
{
	usec_t first = http_response_deadline(c->unresponsive_ms);

	if (c->on_unresponsive && (until < 0 || first < until) &&
		!http_response_poll(c->fd, POLLIN, first, NULL))
		c->on_unresponsive(c->unresponsive_arg);
}

/* Sends the request once on the current connection and reads the head of the response. */
static bool exchange_once(struct http_client *c, const struct buf *request, usec_t until,
	bool *ret_sent, struct err *e)
{
	struct err sending = {};
	bool all_sent;

	http_response_reset(&c->response);
	*ret_sent = false;
	all_sent = send_request(c, request->data, request->len, until, ret_sent, &sending);
	if (all_sent)
		wait_unresponsive(c, until);
	/*
	 * The daemon may refuse a request before it is sent completely; the response can be read
	 * nevertheless.
	 */
	if (http_response_read_head(&c->response, c->fd, all_sent ? until : 0, e)) {
		if (!all_sent)
			c->response.keep = false;
		return true;
	}
	if (!all_sent && e)
		*e = sending;
	return false;
}

/*
 * Sends a request and reads the head of the response. The daemon closes a connection that was idle for
 * too long, also a new one if this process got no CPU time before it sent its request. Then a request
 * of which nothing was sent, or a GET on a kept connection, is sent again on a new connection.
 */
static bool exchange(struct http_client *c, const char *method, const char *path, const char *body,
	usec_t until, struct err *e)
{
	AUTO_DONE(buf) request = {};
	bool is_get = strcmp(method, "GET") == 0, sent = false;

	render_request(c, &request, method, path, body);
	if (c->fd < 0 && !reconnect(c, e))
		return false;
	for (int left = CONNECTIONS_MAX; left > 0; left--) {
		if (exchange_once(c, &request, until, &sent, e))
			return true;
		if ((sent && (!is_get || c->fresh)) || c->response.got > 0 || http_response_is_late(until))
			break;
		if (left > 1 && !reconnect(c, e))
			return false;
	}
	close_connection(c);
	if (sent && !is_get && e && e->kind == ERR_UNREACHABLE)
		e->kind = ERR_UNCERTAIN;
	return false;
}

static bool collect(const char *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
	return true;
}

/* Converts an error response to *e. */
static bool read_refusal(const struct http_response *a, const json_t *body, struct err *e)
{
	if (body && error_json_read(body, e))
		return false;
	return err_set(e, a->status == 503 ? ERR_BUSY : ERR_INTERNAL,
		"the daemon sent status %d without an error message", a->status);
}

/* Reads the whole body as JSON. *ret is NULL if the body is empty or not JSON. */
static bool read_json(struct http_client *c, usec_t until, json_t **ret, struct err *e)
{
	const struct http_response_limits limits = {.until = until, .max = HTTP_CLIENT_BODY_MAX};
	AUTO_DONE(buf) text = {};
	json_error_t problem;

	if (!http_response_read_body(&c->response, c->fd, &limits, collect, &text, e)) {
		close_connection(c);
		return false;
	}
	if (c->response.keep)
		c->fresh = false;
	else
		close_connection(c);
	*ret = text.len ? json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &problem) : NULL;
	return true;
}

bool http_client_call(struct http_client *c, const char *method, const char *path,
	const json_t *body, int timeout_ms, json_t **ret, struct err *e)
{
	usec_t until = http_response_deadline(timeout_ms);
	AUTO_TEXT text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_t *got = NULL;

	if (body && !text)
		return err_set(e, ERR_INTERNAL, "cannot write the request as JSON");
	if (!exchange(c, method, path, text, until, e))
		return false;
	if (!read_json(c, until, &got, e)) {
		if (strcmp(method, "GET") != 0 && e && e->kind == ERR_UNREACHABLE)
			e->kind = ERR_UNCERTAIN;
		return false;
	}
	if (c->response.status >= 200 && c->response.status < 300 && got) {
		*ret = got;
		return true;
	}
	if (c->response.status >= 400)
		read_refusal(&c->response, got, e);
	else
		err_set(e, ERR_INTERNAL, "the response of the daemon to '%s %s' is not JSON",
			method, path);
	json_decref(got);
	return false;
}

bool http_client_stream(struct http_client *c, const char *path, int timeout_ms,
	http_client_chunk_fn *fn, void *arg, struct err *e)
{
	const struct http_response_limits limits = {
		.until = -1, .pause_ms = timeout_ms, .max = SIZE_MAX};
	bool all;

	if (!exchange(c, "GET", path, NULL, http_response_deadline(timeout_ms), e))
		return false;
	if (c->response.status < 200 || c->response.status >= 300) {
		json_t *got = NULL;

		if (read_json(c, http_response_deadline(timeout_ms), &got, e))
			read_refusal(&c->response, got, e);
		json_decref(got);
		return false;
	}
	all = http_response_read_body(&c->response, c->fd, &limits, fn, arg, e);
	if (all && c->response.keep)
		c->fresh = false;
	else
		close_connection(c);
	return all;
}

void http_client_on_unresponsive(struct http_client *c, int after_ms,
	http_client_unresponsive_fn *fn, void *arg)
{
	c->unresponsive_ms = after_ms;
	c->on_unresponsive = fn;
	c->unresponsive_arg = arg;
}

pid_t http_client_peer_pid(const struct http_client *c)
{
	struct ucred who = {};
	socklen_t size = sizeof who;

	return c->path && c->fd >= 0 && getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.pid
											  : 0;
}

const char *http_client_header(const struct http_client *c, const char *name)
{
	return http_response_header(&c->response, name);
}
