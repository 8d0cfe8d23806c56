/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the requests of the daemon to the spawner; queues frames while the socket has no room. */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/start/start_plan.h"
#include "exec/proto/payload.h"
#include "exec/proto/spawn_client_private.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define UNREAD_STEP (200 * USEC_MSEC)

void spawn_client_outgoing_free(struct outgoing *o)
{
	if (!o)
		return;
	frame_fds_close(o->fds, o->n);
	free(o);
}

/*
 * After an error that cannot be handled here. The loop then reads the end of the connection and
 * reports SPAWN_GONE.
 */
static void client_shut_down(struct spawn_client *c)
{
	shutdown(c->fd, SHUT_RDWR);
}

static void client_watch_writable(struct spawn_client *c, bool on)
{
	if (sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLET | (on ? (uint32_t)EPOLLOUT : 0)) < 0)
		client_shut_down(c);
}

/* The socket buffer is full, or the user has too many descriptors in flight in sockets. */
static bool send_would_block(int r)
{
	return r == -EAGAIN || r == -ETOOMANYREFS;
}

int spawn_client_unread_bytes(const struct spawn_client *c)
{
	int n = 0;

	return ioctl(c->fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

void spawn_client_note_unread(struct spawn_client *c)
{
	usec_t now = clock_boot(&clock_system);

	/* A time that is older than the truth by UNREAD_STEP is good enough and saves a system call per frame. */
	if (!c->unread_since || (now - c->unread_since >= UNREAD_STEP && spawn_client_unread_bytes(c) == 0))
		c->unread_since = now;
}

void spawn_client_flush(struct spawn_client *c)
{
	struct outgoing *o;

	while ((o = c->first)) {
		int r = frame_send(c->fd, &o->frame, o->fds, o->n);

		if (send_would_block(r))
			/* EPOLLET: if there is room by now, the event fires at once. */
			client_watch_writable(c, true);
		else if (r < 0)
			client_shut_down(c);
		if (r < 0)
			return;
		c->first = o->next;
		if (!c->first)
			c->last = &c->first;
		spawn_client_outgoing_free(o);
	}
	client_watch_writable(c, false);
}

static void outgoing_append(struct spawn_client *c, const struct frame *f, const int *fds, size_t n)
{
	struct outgoing *o = xcalloc(1, sizeof(*o));

	o->frame = *f;
	for (; o->n < n; o->n++)
		o->fds[o->n] = fds[o->n];
	*c->last = o;
	c->last = &o->next;
}

/* Sends the frame, or queues it until the socket has room. The descriptors are moved. */
static void frame_post(struct spawn_client *c, const struct frame *f, int *fds, size_t n)
{
	int r;

	spawn_client_note_unread(c);
	r = c->gone ? -EPIPE : c->first ? -EAGAIN : frame_send(c->fd, f, fds, n);
	if (send_would_block(r)) {
		outgoing_append(c, f, fds, n);
		client_watch_writable(c, true);
		return;
	}
	frame_fds_close(fds, n);
	if (r < 0 && !c->gone)
		client_shut_down(c);
}

/* Without other descriptors, a small payload travels inside the frame: a memfd costs both sides several system calls. */
static bool payload_fits(const struct spawn_client *c, const struct frame_start *s, const struct buf *payload)
{
	return c->version >= 4 && !s->has_stdin && !s->has_artifact && payload->len <= FRAME_PAYLOAD_MAX;
}

/*
 * Opens the descriptors of a start, in the order of struct frame_start. On failure all of them are
 * closed.
 */
static bool start_fds_open(const struct start_plan *p, uint32_t version, const struct frame_start *s,
	int fds[FRAME_FDS_MAX], size_t *ret_n, struct err *e)
{
	size_t n = 0;

	fds[n] = payload_memfd(p, version, e);
	if (fds[n] < 0)
		return err_wrap(e, "could not pass the command of run %lld to the spawner",
			(long long)p->run);
	n++;
	if (s->has_stdin) {
		fds[n] = io_memfd_sealed("jobsched-stdin", p->stdin_data.data, p->stdin_data.len);
		if (fds[n] < 0) {
			err_errno(e, -fds[n], "could not pass the input of run %lld to the spawner",
				(long long)p->run);
			frame_fds_close(fds, n);
			return false;
		}
		n++;
	}
	if (s->has_artifact) {
		fds[n] = fcntl(p->tree, F_DUPFD_CLOEXEC, 3);
		if (fds[n] < 0) {
			err_errno(e, errno, "could not pass the artifact of run %lld to the spawner", (long long)p->run);
			frame_fds_close(fds, n);
			return false;
		}
		n++;
	}
	*ret_n = n;
	return true;
}

bool spawn_client_start(struct spawn_client *c, const struct start_plan *p, struct err *e)
{
	AUTO_DONE(buf) payload = {};
	struct frame f;
	int fds[FRAME_FDS_MAX];
	size_t n = 0;

	if (p->stdin_data.data && p->stdin_data.len > (size_t)FRAME_STDIN_MAX)
		return err_set(e, ERR_TOO_LARGE, "the input of run %lld is larger than 16 MiB",
			(long long)p->run);
	if (!payload_encode(p, c->version, &payload, e))
		return err_wrap(e, "could not pass the command of run %lld to the spawner", (long long)p->run);
	frame_init(&f, FRAME_START, c->version);
	f.start = (struct frame_start){.run = p->run, .fence = p->fence, .attempt = p->attempt,
		.timeout = p->timeout, .grace = p->grace, .output_limit = p->output_limit, .part = p->part,
		.has_stdin = p->stdin_data.data != NULL, .has_warrant = p->has_warrant,
		.has_artifact = p->spec.artifact && p->part == 0, .ends_with_lease = p->ends_with_lease};
	if (p->has_warrant)
		memcpy(f.start.warrant, p->warrant, WARRANT_LEN);
	if (payload_fits(c, &f.start, &payload))
		frame_start_enclose(&f, payload.data, payload.len);
	else if (!start_fds_open(p, c->version, &f.start, fds, &n, e))
		return false;
	if (!frame_check(&f, f.size, n, FRAME_FROM_DAEMON, c->version, e)) {
		frame_fds_close(fds, n);
		return false;
	}
	frame_post(c, &f, fds, n);
	return true;
}

static void run_frame_post(struct spawn_client *c, enum frame_type type, int64_t run, int64_t fence)
{
	struct frame f;

	frame_init(&f, type, c->version);
	f.run = (struct frame_run){.run = run, .fence = fence};
	frame_post(c, &f, NULL, 0);
}

void spawn_client_cancel(struct spawn_client *c, int64_t run, int64_t fence)
{
	run_frame_post(c, FRAME_CANCEL, run, fence);
}

void spawn_client_ack(struct spawn_client *c, int64_t run, int64_t fence)
{
	run_frame_post(c, FRAME_ACK, run, fence);
}

void spawn_client_list(struct spawn_client *c)
{
	struct frame f;

	frame_init(&f, FRAME_LIST, c->version);
	frame_post(c, &f, NULL, 0);
}

bool spawn_client_open_file(struct spawn_client *c, const struct spawn_file *s, struct err *e)
{
	AUTO_DONE(buf) text = {};
	const char *path = s->path;
	struct frame f;
	int fds[2];

	if (c->version < 2)
		return err_set(e, ERR_REFUSED, "the spawner is older than the daemon and cannot open files; "
			"'systemctl reload jobsched-spawner' upgrades it");
	while (path[0] == '/' && path[1] == '/')
		path++;
	buf_add(&text, s->owner, strlen(s->owner) + 1);
	buf_add(&text, path, strlen(path) + 1);
	fds[0] = io_memfd_sealed("jobsched-file", text.data, text.len);
	fds[1] = fds[0] < 0 ? -1 : fcntl(s->socket, F_DUPFD_CLOEXEC, 3);
	if (fds[1] < 0) {
		err_errno(e, fds[0] < 0 ? -fds[0] : errno, "could not ask the spawner for a file");
		auto_fd_close(&fds[0]);
		return false;
	}
	frame_init(&f, FRAME_OPEN_FILE, c->version);
	f.open_file = (struct frame_open_file){.run = s->run, .fence = s->fence, .uid = s->uid};
	frame_post(c, &f, fds, 2);
	return true;
}

bool spawn_client_state(struct spawn_client *c, const struct spawn_state *s, struct err *e)
{
	struct frame f;
	int fds[2];

	if (c->version < 6)
		return err_set(e, ERR_REFUSED, "the spawner is older than the daemon and cannot move the state of runs; "
			"'systemctl reload jobsched-spawner' upgrades it");
	fds[0] = fcntl(s->data, F_DUPFD_CLOEXEC, 3);
	fds[1] = fds[0] < 0 ? -1 : fcntl(s->socket, F_DUPFD_CLOEXEC, 3);
	if (fds[1] < 0) {
		err_errno(e, errno, "could not pass the state of run %lld to the spawner", (long long)s->run);
		auto_fd_close(&fds[0]);
		return false;
	}
	frame_init(&f, FRAME_STATE, c->version);
	f.state = (struct frame_state){.run = s->run, .fence = s->fence, .uid = s->uid, .verb = s->verb};
	frame_text(f.state.owner, sizeof(f.state.owner), s->owner);
	frame_post(c, &f, fds, 2);
	return true;
}

void spawn_client_watch_tables(struct spawn_client *c, bool on)
{
	struct frame f;

	if (c->version < 3)
		return;
	frame_init(&f, FRAME_WATCH_TABLES, c->version);
	f.watch_tables.on = on;
	frame_post(c, &f, NULL, 0);
}

void spawn_client_lease(struct spawn_client *c, usec_t end_at, usec_t kill_at)
{
	struct frame f;

	frame_init(&f, FRAME_LEASE, c->version);
	f.lease = (struct frame_lease){.end_at = end_at, .kill_at = kill_at};
	frame_post(c, &f, NULL, 0);
}

void spawn_client_forget_output(struct spawn_client *c, int64_t run, int64_t attempt)
{
	struct frame f;

	frame_init(&f, FRAME_FORGET_OUTPUT, c->version);
	f.attempt = (struct frame_attempt){.run = run, .attempt = attempt};
	frame_post(c, &f, NULL, 0);
}
