/* SPDX-License-Identifier: Apache-2.0 */
/* Three threads: requests, the event stream, the output of one run. */
#include "jobctl/top/top_link.h"

#include "base/buf.h"
#include "base/text.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/follow.h"
#include "jobctl/member.h"
#include "jobctl/render/run_output.h"
#include "wire/http_client.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

#define REQUEST_MS 30000
#define RETRY_SEC 1          /* pause before a connection is tried again */
#define BUSY_TRIES 5
#define OUTPUT_TAIL 262144   /* bytes of earlier output that are shown */
#define EVENTS_MAX 10000     /* events that wait for the screen; a thread with more waits */
#define JOIN_TRIES 40        /* of 50 ms each */

struct link_request {
	int tag;
	char *method, *path; /* owned */
};

/* One thread with its own connection. */
struct link_line {
	struct top_link *link;
	pthread_t thread;
	bool started;
	bool stop;           /* under the mutex of the link */
	struct ctl ctl;      /* its own copy */
	int64_t run;         /* of the output */
};

struct top_link {
	pthread_mutex_t mutex;
	pthread_cond_t wake;            /* a request was added, an event was taken, or 'stop' was set */
	int fd;                         /* eventfd */
	struct link_request *requests;  /* owned queue */
	size_t n_requests, unanswered;
	struct top_link_event *events;  /* owned queue; the first is at 'taken' */
	size_t n_events, taken;
	struct link_line asking, events_line, output;
};

void top_link_event_done(struct top_link_event *ev)
{
	json_decref(ev->answer);
	free(ev->data);
	*ev = (struct top_link_event){};
}

/* ---- shared state ---- */

static bool is_stopped(struct link_line *line)
{
	bool stop;

	pthread_mutex_lock(&line->link->mutex);
	stop = line->stop;
	pthread_mutex_unlock(&line->link->mutex);
	return stop;
}

static void post(struct link_line *line, struct top_link_event ev)
{
	struct top_link *l = line->link;

	pthread_mutex_lock(&l->mutex);
	while (l->n_events - l->taken >= EVENTS_MAX && !line->stop)
		pthread_cond_wait(&l->wake, &l->mutex);
	if (line->stop) {
		top_link_event_done(&ev);
	} else {
		l->events = xgrow(l->events, l->n_events, sizeof *l->events);
		l->events[l->n_events++] = ev;
		(void)eventfd_write(l->fd, 1);
	}
	pthread_mutex_unlock(&l->mutex);
}

/* Waits before another try; returns early when the thread is to stop. */
static void pause_before_retry(struct link_line *line)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += RETRY_SEC;
	pthread_mutex_lock(&line->link->mutex);
	while (!line->stop &&
		pthread_cond_timedwait(&line->link->wake, &line->link->mutex, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&line->link->mutex);
}

/* A connection that is opened while the thread is stopped is not used. */
static bool line_connect(struct link_line *line, struct err *e)
{
	struct ctl fresh = {.socket_given = line->ctl.socket_given,
		.instance = line->ctl.instance,
		.where = line->ctl.where};

	if (line->ctl.client)
		return true;
	if (!connect_daemon(&fresh, e))
		return false;
	pthread_mutex_lock(&line->link->mutex);
	line->ctl.client = fresh.client;
	line->ctl.socket = fresh.socket;
	if (line->stop)
		http_client_interrupt(line->ctl.client);
	pthread_mutex_unlock(&line->link->mutex);
	return true;
}

/* The daemon may have another socket after a restart: the path is searched again. */
static void line_disconnect(struct link_line *line)
{
	pthread_mutex_lock(&line->link->mutex);
	ctl_done(&line->ctl);
	pthread_mutex_unlock(&line->link->mutex);
}

static bool line_call(struct link_line *line, const char *method, const char *path, json_t **ret,
	struct err *e)
{
	for (int i = 0;; i++) {
		if (!line_connect(line, e))
			return false;
		if (http_client_call(line->ctl.client, method, path, NULL, REQUEST_MS, ret, e))
			return true;
		if (e->kind == ERR_UNREACHABLE || e->kind == ERR_UNCERTAIN)
			line_disconnect(line);
		if (e->kind != ERR_BUSY || i >= BUSY_TRIES || is_stopped(line))
			return false;
		pause_before_retry(line);
	}
}

/* ---- requests ---- */

static bool take_request(struct link_line *line, struct link_request *ret)
{
	struct top_link *l = line->link;
	bool found;

	pthread_mutex_lock(&l->mutex);
	while (l->n_requests == 0 && !line->stop)
		pthread_cond_wait(&l->wake, &l->mutex);
	found = !line->stop;
	if (found) {
		*ret = l->requests[0];
		l->n_requests--;
		for (size_t i = 0; i < l->n_requests; i++)
			l->requests[i] = l->requests[i + 1];
	}
	pthread_mutex_unlock(&l->mutex);
	return found;
}

static void *run_requests(void *arg)
{
	struct link_line *line = arg;
	struct link_request r;

	while (take_request(line, &r)) {
		struct top_link_event ev = {.kind = TOP_LINK_ANSWER, .tag = r.tag};

		line_call(line, r.method, r.path, &ev.answer, &ev.err);
		free(r.method);
		free(r.path);
		pthread_mutex_lock(&line->link->mutex);
		line->link->unanswered--;
		pthread_mutex_unlock(&line->link->mutex);
		post(line, ev);
	}
	return NULL;
}

void top_link_ask(struct top_link *l, int tag, const char *method, const char *path)
{
	pthread_mutex_lock(&l->mutex);
	l->requests = xgrow(l->requests, l->n_requests, sizeof *l->requests);
	l->requests[l->n_requests++] =
		(struct link_request){tag, xstrdup(method), xstrdup(path)};
	l->unanswered++;
	pthread_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->mutex);
}

size_t top_link_waiting(struct top_link *l)
{
	size_t n;

	pthread_mutex_lock(&l->mutex);
	n = l->unanswered;
	pthread_mutex_unlock(&l->mutex);
	return n;
}

/* ---- events ---- */

static bool on_event_data(const char *data, size_t len, void *arg)
{
	(void)data;
	(void)len;
	post(arg, (struct top_link_event){.kind = TOP_LINK_CHANGED});
	return !is_stopped(arg);
}

static void *run_events(void *arg)
{
	struct link_line *line = arg;
	struct err e = {};

	while (!is_stopped(line)) {
		if (line_connect(line, &e))
			http_client_stream(line->ctl.client, "/v1/events?follow=true&limit=0", -1,
				on_event_data, line, &e);
		line_disconnect(line);
		post(line, (struct top_link_event){.kind = TOP_LINK_CHANGED});
		pause_before_retry(line);
	}
	return NULL;
}

/* ---- output ---- */

struct output_part {
	struct link_line *line;
	struct run_output escaped;
	int64_t got; /* bytes of this attempt */
};

static void post_output(struct output_part *p)
{
	size_t len = p->escaped.out.len;

	if (len == 0)
		return;
	post(p->line, (struct top_link_event){.kind = TOP_LINK_OUTPUT,
			      .run = p->line->run,
			      .data = buf_steal(&p->escaped.out),
			      .len = len});
}

static bool on_output_data(const char *data, size_t len, void *arg)
{
	struct output_part *p = arg;

	run_output_put(&p->escaped, data, len);
	p->got += (int64_t)len;
	post_output(p);
	return !is_stopped(p->line);
}

/* The offset at which the end of the output began; -1: there was no answer. */
static int64_t tail_start(const struct link_line *line)
{
	const char *text = line->ctl.client
				   ? http_client_header(line->ctl.client, "X-Jobsched-Output-Bytes")
				   : NULL;
	int64_t bytes;

	if (!text || !text_parse_int(text, 0, INT64_MAX, &bytes))
		return -1;
	return bytes > OUTPUT_TAIL ? bytes - OUTPUT_TAIL : 0;
}

/*
 * Follows one attempt to its end. The first request asks for the end of the output; after an
 * interruption the output continues at the next byte.
 */
static void follow_attempt(struct link_line *line, int64_t attempt)
{
	struct output_part p = {.line = line};
	int64_t start = -1;
	struct err e = {};

	while (!is_stopped(line)) {
		AUTO_DONE(buf) path = {};
		bool ended = false;

		buf_printf(&path, "/v1/runs/%" PRId64 "/output?follow=true&attempt=%" PRId64,
			line->run, attempt);
		if (start < 0)
			buf_printf(&path, "&tail=%d", OUTPUT_TAIL);
		else
			buf_printf(&path, "&from=%" PRId64, start + p.got);
		if (line_connect(line, &e))
			ended = http_client_stream(line->ctl.client, path.data, -1, on_output_data,
				&p, &e);
		if (start < 0)
			start = tail_start(line);
		if (ended || e.kind == ERR_NOT_FOUND)
			break;
		line_disconnect(line);
		pause_before_retry(line);
	}
	run_output_end(&p.escaped);
	post_output(&p);
	run_output_done(&p.escaped);
}

/* The run with its newest attempt; false: the thread is to stop or there is no such run. */
static bool read_run(struct link_line *line, json_t **ret, struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/runs/%" PRId64, line->run);

	while (!is_stopped(line)) {
		if (line_call(line, "GET", path, ret, e))
			return true;
		if (e->kind != ERR_UNREACHABLE && e->kind != ERR_UNCERTAIN)
			return false;
		pause_before_retry(line);
	}
	return false;
}

static void *run_output_thread(void *arg)
{
	struct link_line *line = arg;
	struct top_link_event end = {.kind = TOP_LINK_OUTPUT_END, .run = line->run};
	int64_t attempt = 0;

	for (;;) {
		json_auto_t *run = NULL;

		if (!read_run(line, &run, &end.err))
			break;
		if (member_int(run, "attempt") > attempt) {
			attempt = member_int(run, "attempt");
			follow_attempt(line, attempt);
			continue;
		}
		if (follow_run_is_final(run)) {
			end.answer = json_incref(run);
			break;
		}
		pause_before_retry(line);
	}
	post(line, end);
	return NULL;
}

/* ---- start and stop ---- */

static bool line_start(struct top_link *l, struct link_line *line, const struct ctl *c,
	void *(*fn)(void *), struct err *e)
{
	int r;

	line->link = l;
	line->stop = false;
	line->ctl = (struct ctl){.socket_given = c->socket_given,
		.url = c->url,
		.token_file = c->token_file,
		.ca_file = c->ca_file,
		.context = c->context,
		.instance = c->instance,
		.where = c->where};
	r = pthread_create(&line->thread, NULL, fn, line);
	line->started = r == 0;
	return r == 0 || err_errno(e, r, "cannot start a thread");
}

/*
 * A thread that is connecting cannot be interrupted. If it does not end within two seconds, it is
 * left alone, and its data with it. False: that happened.
 */
static bool line_stop(struct top_link *l, struct link_line *line)
{
	if (!line->started)
		return true;
	for (int i = 0; i < JOIN_TRIES; i++) {
		struct timespec until;

		pthread_mutex_lock(&l->mutex);
		line->stop = true;
		if (line->ctl.client)
			http_client_interrupt(line->ctl.client);
		pthread_cond_broadcast(&l->wake);
		pthread_mutex_unlock(&l->mutex);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(line->thread, NULL, &until) == 0) {
			line->started = false;
			ctl_done(&line->ctl);
			return true;
		}
	}
	return false;
}

bool top_link_open(const struct ctl *c, struct top_link **ret, struct err *e)
{
	AUTO(top_link) *l = xcalloc(1, sizeof *l);
	pthread_condattr_t attr;

	pthread_mutex_init(&l->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->wake, &attr);
	pthread_condattr_destroy(&attr);
	l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->fd < 0)
		return err_errno(e, errno, "cannot create an eventfd");
	/* the output thread is started with these when it is needed */
	l->output.ctl = (struct ctl){.socket_given = c->socket_given,
		.url = c->url,
		.token_file = c->token_file,
		.ca_file = c->ca_file,
		.context = c->context,
		.instance = c->instance,
		.where = c->where};
	if (!line_start(l, &l->asking, c, run_requests, e) ||
		!line_start(l, &l->events_line, c, run_events, e))
		return false;
	*ret = STEAL(l);
	return true;
}

void top_link_free(struct top_link *l)
{
	if (!l)
		return;
	if (!line_stop(l, &l->output) || !line_stop(l, &l->events_line) || !line_stop(l, &l->asking))
		return;
	for (size_t i = 0; i < l->n_requests; i++) {
		free(l->requests[i].method);
		free(l->requests[i].path);
	}
	for (size_t i = l->taken; i < l->n_events; i++)
		top_link_event_done(&l->events[i]);
	free(l->requests);
	free(l->events);
	if (l->fd >= 0)
		close(l->fd);
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->mutex);
	free(l);
}

int top_link_fd(const struct top_link *l)
{
	return l->fd;
}

bool top_link_take(struct top_link *l, struct top_link_event *ret)
{
	bool found;
	eventfd_t n;

	pthread_mutex_lock(&l->mutex);
	found = l->taken < l->n_events;
	if (found) {
		*ret = l->events[l->taken];
		l->events[l->taken++] = (struct top_link_event){};
	} else {
		l->taken = l->n_events = 0;
		(void)eventfd_read(l->fd, &n);
	}
	pthread_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->mutex);
	return found;
}

void top_link_unfollow(struct top_link *l)
{
	(void)line_stop(l, &l->output);
}

void top_link_follow(struct top_link *l, int64_t run)
{
	struct ctl where = l->output.ctl;

	top_link_unfollow(l);
	if (l->output.started)
		return; /* the earlier thread does not end */
	where.client = NULL;
	where.socket = NULL;
	l->output.run = run;
	(void)line_start(l, &l->output, &where, run_output_thread, NULL);
}
