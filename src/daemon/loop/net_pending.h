/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to jobsched-net that have no result yet. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "net/net_frame.h"

struct net_pending {
	struct net_request request;
	int payload;   /* owned; -1: it is in 'bytes', or the request was sent by an earlier daemon */
	struct buf bytes;
	usec_t until;  /* boottime: then the daemon answers it with NET_BUSY */
	uint32_t life; /* of a call: the process of jobsched-net that has it; 0: none */
	struct net_pending *next, *before; /* in the order of the requests */
	struct net_pending *same;          /* the next one with the same hash of its id */
};

struct net_pendings { /* all zero: empty */
	struct net_pending *first, *last;
	struct map by_id; /* hash of the id → the first request with it */
};

struct net_pending *net_pendings_find(const struct net_pendings *all, const struct net_id *id); /* NULL: none */
struct net_pending *net_pendings_add(struct net_pendings *all, const struct net_request *r);
struct net_pending *net_pendings_take(struct net_pendings *all, const struct net_id *id); /* removes; NULL: none */
void net_pending_free(struct net_pending *p); /* NULL is fine */
void net_pendings_done(struct net_pendings *all);
