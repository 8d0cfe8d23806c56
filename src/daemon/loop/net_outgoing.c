/* SPDX-License-Identifier: Apache-2.0 */
/* Collects frames in packets. */
#include "daemon/loop/net_outgoing.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "net/net_packet.h"
#include <stdlib.h>
#include <unistd.h>

struct outgoing {
	struct net_packet packet;
	int fd; /* owned; -1: none */
	struct outgoing *next;
};

static struct outgoing *outgoing_new(struct net_outgoing *o, int fd)
{
	struct outgoing *p = o->spare ? STEAL(o->spare) : xcalloc(1, sizeof(*p));

	p->packet.len = 0;
	p->fd = fd;
	p->next = NULL;
	if (o->last)
		o->last->next = p;
	else
		o->first = p;
	o->last = p;
	return p;
}

void net_outgoing_add(struct net_outgoing *o, const struct net_frame *f, const struct buf *bytes, int fd)
{
	bool joins = f->version >= NET_FRAME_VERSION_BATCH && fd < 0 && o->last && o->last->fd < 0;

	if (!joins || !net_packet_add(&o->last->packet, f, bytes->data, bytes->len))
		net_packet_add(&outgoing_new(o, fd)->packet, f, bytes->data, bytes->len);
}

static void outgoing_remove_first(struct net_outgoing *o)
{
	struct outgoing *p = o->first;

	o->first = p->next;
	if (!o->first)
		o->last = NULL;
	auto_fd_close(&p->fd);
	free(o->spare);
	o->spare = p;
}

int net_outgoing_flush(struct net_outgoing *o, int socket)
{
	int r = 0;

	while (o->first && (r = net_packet_send(socket, &o->first->packet, o->first->fd)) == 0)
		outgoing_remove_first(o);
	return r;
}

void net_outgoing_drop(struct net_outgoing *o)
{
	while (o->first)
		outgoing_remove_first(o);
}
