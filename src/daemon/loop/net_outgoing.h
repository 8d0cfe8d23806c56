/* SPDX-License-Identifier: Apache-2.0 */
/* Packets to jobsched-net that have not left yet. */
#pragma once
#include "net/net_frame.h"

struct buf;
struct outgoing;

struct net_outgoing { /* all zero: empty */
	struct outgoing *first, *last;
	void *spare; /* owned; memory for the next packet; NULL: none */
};

/*
 * Appends the frame with these bytes, in the last packet if the version of the frame and the descriptor allow that. The
 * descriptor is moved; -1: none.
 */
void net_outgoing_add(struct net_outgoing *o, const struct net_frame *f, const struct buf *bytes, int fd);
int net_outgoing_flush(struct net_outgoing *o, int socket); /* 0: all were sent; or -errno */
void net_outgoing_drop(struct net_outgoing *o);             /* keeps 'spare' */
