/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the frames of requests that the daemon has not received yet: results, files, secrets. */
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/text.h"
#include "net/net_server_private.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* ---- the list of requests with unsent frames ---- */

void net_owed_add(struct request *r, unsigned what)
{
	struct net_server *s = r->server;

	r->owes |= what;
	if (!r->owing_at) {
		r->owing_at = s->owing_last;
		*s->owing_last = r;
		s->owing_last = &r->owing;
	}
	sd_event_source_set_enabled(s->flush, SD_EVENT_ONESHOT);
}

void net_owed_forget(struct request *r)
{
	r->owes = 0;
	if (!r->owing_at)
		return;
	*r->owing_at = r->owing;
	if (r->owing)
		r->owing->owing_at = r->owing_at;
	else
		r->server->owing_last = r->owing_at;
	r->owing = NULL;
	r->owing_at = NULL;
}

void net_owed_forget_all(struct net_server *s)
{
	while (s->owing)
		net_owed_forget(s->owing);
}

/* ---- sending ---- */

static bool sent(struct conn *c, int r)
{
	if (r == -EAGAIN || r == -ETOOMANYREFS)
		sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLOUT);
	else if (r < 0)
		shutdown(c->fd, SHUT_RDWR); /* the loop sees the end of the connection */
	return r == 0;
}

static bool packet_flush(struct conn *c)
{
	return sent(c, net_packet_send(c->fd, c->out, -1));
}

bool net_owed_send(struct conn *c, const struct net_frame *f, int fd)
{
	return packet_flush(c) && sent(c, net_packet_send_frame(c->fd, f, fd));
}

/* The frame leaves with others, or alone to a daemon of an earlier version. */
static bool frame_put(struct conn *c, const struct net_frame *f, const struct buf *bytes)
{
	if (c->version < NET_FRAME_VERSION_BATCH)
		return net_owed_send(c, f, -1);
	return net_packet_add(c->out, f, bytes->data, bytes->len) ||
		(packet_flush(c) && net_packet_add(c->out, f, bytes->data, bytes->len));
}

/* A long response, and one to a daemon of an earlier version, is passed as a memory file. */
static bool call_result_send(struct conn *c, const struct request *r)
{
	AUTO_FD fd = -1;
	struct net_frame f;

	net_frame_init(&f, NET_CALL_RESULT, c->version);
	f.call = r->end;
	if (r->response.len <= (c->version < NET_FRAME_VERSION_BATCH ? 0 : NET_INLINE_MAX))
		return frame_put(c, &f, &r->response);
	fd = io_memfd_sealed("jobsched-response", r->response.data, r->response.len);
	if (fd < 0)
		f.call.kept = 0;
	return net_owed_send(c, &f, fd);
}

static bool owed_frame_send(struct conn *c, struct request *r, enum request_owes what)
{
	static const enum net_frame_type types[] = {
		[OWES_RESULT] = NET_RESULT, [OWES_HAS] = NET_HAS, [OWES_FILE] = NET_NEED_FILE,
		[OWES_SECRET] = NET_NEED_SECRET};
	struct net_frame f;
	int fd = -1;

	net_frame_init(&f, types[what], c->version);
	if (what == OWES_SECRET) {
		f.need_secret = (struct net_need_secret){.id = r->id, .index = r->secret};
		fd = r->file_socket;
	} else if (what == OWES_RESULT) {
		f.result = (struct net_result){.id = r->id, .outcome = r->outcome};
		net_frame_text(f.result.error, sizeof(f.result.error), r->error);
		fd = r->result_fd;
	} else {
		f.id = r->id;
		fd = what == OWES_FILE ? r->file_socket : -1;
	}
	return net_owed_send(c, &f, fd);
}

static bool owed_send(struct conn *c, struct request *r, enum request_owes what)
{
	bool call = r->id.kind == NET_KIND_CALL;

	if (!(r->owes & what) || (call && c->version < NET_FRAME_VERSION_CALLS))
		return true;
	if (call && what == OWES_RESULT) {
		failpoint_pass(FP_CALL_TELL);
		if (!call_result_send(c, r))
			return false;
	} else if (!owed_frame_send(c, r, what))
		return false;
	r->owes &= ~(unsigned)what;
	if (what == OWES_FILE || what == OWES_SECRET) {
		auto_fd_close(&r->file_socket);
		r->file_socket = -1;
	}
	return true;
}

void net_owed_flush(struct conn *c)
{
	struct request *next;
	struct net_frame f;

	if (!c || !c->version)
		return;
	for (struct request *r = c->server->owing; r; r = next) {
		next = r->owing;
		if (!owed_send(c, r, OWES_HAS) || !owed_send(c, r, OWES_FILE) || !owed_send(c, r, OWES_SECRET) ||
			!owed_send(c, r, OWES_RESULT))
			return;
		if (!r->owes)
			net_owed_forget(r);
	}
	if (!packet_flush(c) || !c->owes_synced)
		return;
	net_frame_init(&f, NET_SYNCED, c->version);
	c->owes_synced = !net_owed_send(c, &f, -1);
}

int net_owed_on_flush(sd_event_source *source, void *arg)
{
	struct net_server *s = arg;

	(void)source;
	net_owed_flush(s->conn);
	return 0;
}
