/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of the socket between the daemon and jobsched-net: one frame, or since version 4 several. */
#pragma once
#include "net/net_frame.h"

#define NET_PACKET_MAX (16 << 10)

struct net_packet {
	size_t len;
	char data[NET_PACKET_MAX];
};

/* A frame of a received packet, and the bytes that follow its fields, which are in the packet. */
struct net_received {
	struct net_frame frame;
	const char *bytes;
	size_t len; /* 0: none */
};

/* Appends the frame with these bytes. False: the packet has no room for it. */
bool net_packet_add(struct net_packet *p, const struct net_frame *f, const void *bytes, size_t len);
int net_packet_send(int fd, struct net_packet *p, int passed /* -1: none */); /* 0 or -errno; empties it if it was sent */
/* Sends a packet with this frame alone. */
int net_packet_send_frame(int fd, const struct net_frame *f, int passed /* -1: none */);
/* 0 or -errno. p->len 0: the other side has closed the connection. The caller owns *ret_fd; -1: none was passed. */
int net_packet_recv(int fd, struct net_packet *p, int *ret_fd);
/* Takes the frame at *at, which is below p->len, and checks it like net_frame_check(). */
bool net_packet_next(const struct net_packet *p, size_t *at, size_t fds, enum net_frame_from from, uint32_t version,
	struct net_received *ret, struct err *e);
