/* SPDX-License-Identifier: Apache-2.0 */
/* Requests the files of secrets one after another; substitutes and masks their values. */
#include "net/call/call_secrets.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/call.h"
#include "net/opened_file.h"
#include "net/request.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#define OPEN_TIMEOUT (20 * USEC_SEC)
#define MASKED_MIN 4 /* shorter values are not masked: they occur in ordinary text */

static void socket_close(struct call_secrets *s)
{
	s->source = sd_event_source_disable_unref(s->source);
	auto_fd_close(&s->socket);
	s->socket = -1;
}

static void finish(struct call_secrets *s, const struct err *why)
{
	socket_close(s);
	sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	s->on_ready(why, s->arg);
}

/* ---- one file ---- */

static bool value_read(struct call_secrets *s, struct err *e)
{
	const char *name = s->names[s->read];
	struct buf *value = &s->values[s->read];
	AUTO_FD fd = -1;
	int error = opened_file_receive(s->socket, &fd), r;

	if (error)
		return err_errno(e, error, "the secret '%s' could not be read", name);
	r = io_read_all(fd, value, CALL_SECRET_MAX);
	if (r < 0)
		return err_errno(e, -r, "the secret '%s' could not be read", name);
	while (value->len > 0 && value->data[value->len - 1] == '\n')
		value->len--;
	buf_room(value, 1)[0] = '\0';
	return true;
}

static bool file_request(struct call_secrets *s, sd_event *ev, struct err *e);

static int on_file(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct call_secrets *s = arg;
	sd_event *ev = sd_event_source_get_event(source);
	struct err e = {};

	(void)fd;
	(void)events;
	if (!value_read(s, &e)) {
		finish(s, &e);
		return 0;
	}
	socket_close(s);
	s->read++;
	if (s->read == s->n)
		finish(s, NULL);
	else if (!file_request(s, ev, &e))
		finish(s, &e);
	return 0;
}

static bool file_request(struct call_secrets *s, sd_event *ev, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_errno(e, errno, "could not make a socket");
	s->socket = pair[0];
	if (sd_event_add_io(ev, &s->source, s->socket, EPOLLIN, on_file, s) < 0) {
		close(pair[1]);
		return err_set(e, ERR_INTERNAL, "could not watch a socket");
	}
	request_need_secret(s->request, (int64_t)s->read, pair[1]);
	return true;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *arg)
{
	struct call_secrets *s = arg;
	struct err e = {};

	(void)source;
	(void)usec;
	err_set(&e, ERR_BUSY, "the process that opens the secret '%s' as the owner of the job did not answer",
		s->names[s->read]);
	finish(s, &e);
	return 0;
}

bool call_secrets_start(struct call_secrets *s, struct sd_event *ev, struct err *e)
{
	s->socket = -1;
	return (sd_event_add_time_relative(ev, &s->timer, CLOCK_BOOTTIME, OPEN_TIMEOUT, 0, on_timeout,
			s) >= 0 || err_set(e, ERR_INTERNAL, "could not make a timer")) &&
		file_request(s, ev, e);
}

void call_secrets_done(struct call_secrets *s)
{
	if (s->source || s->socket > 0)
		socket_close(s);
	s->timer = sd_event_source_disable_unref(s->timer);
	for (size_t i = 0; i < s->n; i++) {
		if (s->values[i].data)
			explicit_bzero(s->values[i].data, s->values[i].cap);
		buf_done(&s->values[i]);
	}
	s->n = 0;
}

/* ---- use ---- */

const struct buf *call_secrets_get(const struct call_secrets *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->read; i++)
		if (strlen(s->names[i]) == len && strncmp(s->names[i], name, len) == 0)
			return &s->values[i];
	return NULL;
}

char *call_secrets_expand(const struct call_secrets *s, const char *text, struct err *e)
{
	size_t at = 0, done = 0, from, len;
	AUTO_DONE(buf) out = {};
	const char *name;

	while (call_secret_next(text, &at, &from, &name, &len)) {
		const struct buf *value = call_secrets_get(s, name, len);

		if (!value) {
			err_set(e, ERR_INVALID, "the secret '%.*s' is not declared", (int)len, name);
			return NULL;
		}
		for (size_t i = 0; i < value->len; i++)
			if ((unsigned char)value->data[i] < ' ' || value->data[i] == 0x7f) {
				err_set(e, ERR_INVALID,
					"the secret '%.*s' has several lines or control characters; it cannot be part of a "
					"URL or header", (int)len, name);
				return NULL;
			}
		buf_add(&out, text + done, from - done);
		buf_add(&out, value->data, value->len);
		done = at;
	}
	buf_str(&out, text + done);
	return buf_steal(&out);
}

void call_secrets_mask(const struct call_secrets *s, struct buf *text)
{
	for (size_t i = 0; i < s->read; i++) {
		const struct buf *v = &s->values[i];
		AUTO_DONE(buf) out = {};
		const char *from = text->data, *end = text->data + text->len, *hit;

		if (v->len < MASKED_MIN || text->len < v->len)
			continue;
		while ((hit = memmem(from, (size_t)(end - from), v->data, v->len))) {
			buf_add(&out, from, (size_t)(hit - from));
			buf_str(&out, "***");
			from = hit + v->len;
		}
		if (from == text->data)
			continue;
		buf_add(&out, from, (size_t)(end - from));
		explicit_bzero(text->data, text->len);
		buf_clear(text);
		buf_add(text, out.data, out.len);
	}
}
