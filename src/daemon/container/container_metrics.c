/* SPDX-License-Identifier: Apache-2.0 */
/* Counts runs of container mode and serves the counters. */
#include "daemon/container/container_metrics.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#define CONNECTIONS_MAX 16
#define CONNECTION_TIMEOUT 10 /* seconds */
#define SERIES_MAX 10000      /* jobs; a table has at most so many entries */

/* The counters of one job. */
struct series {
	char *job;
	size_t line;             /* of its last start */
	int64_t started, succeeded, failed;
	usec_t last_start, last_success, last_took;
};

struct container_metrics {
	struct series *v;
	size_t n;
	size_t entries;
	struct MHD_Daemon *http; /* NULL: not served */
	sd_event_source *on_http, *on_timeout;
};

struct container_metrics *container_metrics_new(void)
{
	return xcalloc(1, sizeof(struct container_metrics));
}

void container_metrics_free(struct container_metrics *m)
{
	if (!m)
		return;
	sd_event_source_disable_unref(m->on_http);
	sd_event_source_disable_unref(m->on_timeout);
	if (m->http)
		MHD_stop_daemon(m->http);
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].job);
	free(m->v);
	free(m);
}

/* NULL: there are too many. */
static struct series *series_of(struct container_metrics *m, const char *job)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->v[i].job, job) == 0)
			return &m->v[i];
	if (m->n == SERIES_MAX)
		return NULL;
	m->v = xgrow(m->v, m->n, sizeof *m->v);
	m->v[m->n] = (struct series){ .job = xstrdup(job) };
	return &m->v[m->n++];
}

void container_metrics_started(struct container_metrics *m, const char *job, size_t line, usec_t now)
{
	struct series *s = series_of(m, job);

	if (!s)
		return;
	s->line = line;
	s->started++;
	s->last_start = now;
}

void container_metrics_ended(struct container_metrics *m, const char *job, bool succeeded, usec_t took, usec_t now)
{
	struct series *s = series_of(m, job);

	if (!s)
		return;
	s->succeeded += succeeded;
	s->failed += !succeeded;
	s->last_took = took;
	if (succeeded)
		s->last_success = now;
}

void container_metrics_set_entries(struct container_metrics *m, size_t entries)
{
	m->entries = entries;
}

/* ---- text ---- */

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP jobsched_container_%s %s\n# TYPE jobsched_container_%s %s\n", name, help, name, type);
}

/* Names of jobs have no character that needs a backslash. */
static void put_labels(struct buf *out, const char *name, const struct series *s)
{
	buf_printf(out, "jobsched_container_%s{job=\"%s\",line=\"%zu\"", name, s->job, s->line);
}

static void put_seconds(struct buf *out, usec_t t)
{
	buf_printf(out, "} %" PRId64 ".%06" PRId64 "\n", t / USEC_SEC, t % USEC_SEC);
}

static void put_counters(struct buf *out, const struct container_metrics *m)
{
	put_head(out, "runs_total", "counter", "Runs that have ended, by job and result.");
	for (size_t i = 0; i < m->n; i++) {
		put_labels(out, "runs_total", &m->v[i]);
		buf_printf(out, ",result=\"succeeded\"} %" PRId64 "\n", m->v[i].succeeded);
		put_labels(out, "runs_total", &m->v[i]);
		buf_printf(out, ",result=\"failed\"} %" PRId64 "\n", m->v[i].failed);
	}
	put_head(out, "running", "gauge", "Runs that have not ended.");
	for (size_t i = 0; i < m->n; i++) {
		put_labels(out, "running", &m->v[i]);
		buf_printf(out, "} %" PRId64 "\n", m->v[i].started - m->v[i].succeeded - m->v[i].failed);
	}
}

static void put_metrics(struct buf *out, const struct container_metrics *m)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} times[] = {
		{ "last_start_timestamp_seconds", "Time of the last start.", offsetof(struct series, last_start) },
		{ "last_success_timestamp_seconds", "End of the last run that succeeded; 0: none.",
			offsetof(struct series, last_success) },
		{ "last_duration_seconds", "Duration of the last run that ended.", offsetof(struct series, last_took) },
	};

	put_head(out, "entries", "gauge", "Entries of the crontab in use.");
	buf_printf(out, "jobsched_container_entries %zu\n", m->entries);
	put_counters(out, m);
	for (size_t k = 0; k < ELEMENTS(times); k++) {
		put_head(out, times[k].name, "gauge", times[k].help);
		for (size_t i = 0; i < m->n; i++) {
			put_labels(out, times[k].name, &m->v[i]);
			put_seconds(out, *(const usec_t *)((const char *)&m->v[i] + times[k].offset));
		}
	}
}

/* ---- HTTP ---- */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, struct buf *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(text->len, text->data, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result done;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	done = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
	const char *version, const char *body, size_t *body_len, void **state)
{
	AUTO_DONE(buf) text = {};

	(void)version;
	(void)body;
	if (*body_len) {
		*body_len = 0; /* ignored */
		return MHD_YES;
	}
	if (!*state) { /* the head only; the answer follows when the request is complete */
		*state = arg;
		return MHD_YES;
	}
	if (strcmp(method, "GET") != 0) {
		buf_str(&text, "only GET is supported\n");
		return answer(c, MHD_HTTP_METHOD_NOT_ALLOWED, &text);
	}
	if (strcmp(url, "/metrics") != 0) {
		buf_str(&text, "the metrics are at /metrics\n");
		return answer(c, MHD_HTTP_NOT_FOUND, &text);
	}
	put_metrics(&text, arg);
	return answer(c, MHD_HTTP_OK, &text);
}

static void run_http(struct container_metrics *m)
{
	MHD_UNSIGNED_LONG_LONG ms;
	bool later;

	MHD_run(m->http);
	later = MHD_get_timeout(m->http, &ms) == MHD_YES;
	if (later)
		sd_event_source_set_time_relative(m->on_timeout, ms * 1000);
	sd_event_source_set_enabled(m->on_timeout, later ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_http(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	(void)source;
	(void)fd;
	(void)events;
	run_http(arg);
	return 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	run_http(arg);
	return 0;
}

/* Splits HOST:PORT; the host is NULL for all addresses. */
static bool split_address(const char *address, char **ret_host, const char **ret_port)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? (size_t)(colon - address) : 0;

	if (!colon || !colon[1])
		return false;
	*ret_port = colon + 1;
	if (len == 0)
		*ret_host = NULL;
	else if (address[0] == '[' && address[len - 1] == ']')
		*ret_host = xstrndup(address + 1, len - 2);
	else
		*ret_host = xstrndup(address, len);
	return true;
}

static int open_socket(const char *address, struct err *e)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	AUTO_TEXT host = NULL;
	const char *port;
	int fd = -1, one = 1;

	if (!split_address(address, &host, &port) || getaddrinfo(host, port, &hints, &list) != 0) {
		err_set(e, ERR_INVALID, "--metrics: '%.100s' is not HOST:PORT with a numeric host, or :PORT", address);
		return -1;
	}
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, CONNECTIONS_MAX) < 0) {
			err_errno(e, errno, "--metrics: cannot listen at '%.100s'", address);
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd;
}

static char *socket_address(int fd)
{
	struct sockaddr_storage a = {};
	socklen_t len = sizeof a;
	char host[64] = "", port[16] = "";

	if (getsockname(fd, (struct sockaddr *)&a, &len) == 0)
		getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
	return xprintf(strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

bool container_metrics_listen(struct container_metrics *m, sd_event *ev, const char *address, char **ret_address,
	struct err *e)
{
	AUTO_FD fd = open_socket(address, e);
	const union MHD_DaemonInfo *info;

	if (fd < 0)
		return e->kind != ERR_NONE ? false : err_set(e, ERR_INTERNAL, "--metrics: cannot create a socket");
	*ret_address = socket_address(fd);
	m->http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, m, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)CONNECTION_TIMEOUT, MHD_OPTION_END);
	if (!m->http)
		return err_set(e, ERR_INTERNAL, "--metrics: the HTTP server cannot be started");
	STEAL_FD(fd); /* closed by MHD */
	info = MHD_get_daemon_info(m->http, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || sd_event_add_io(ev, &m->on_http, info->epoll_fd, EPOLLIN, on_http, m) < 0 ||
		sd_event_add_time_relative(ev, &m->on_timeout, CLOCK_MONOTONIC, USEC_SEC, 0, on_timeout, m) < 0)
		return err_set(e, ERR_INTERNAL, "--metrics: the HTTP server cannot be watched");
	return true;
}
