/* SPDX-License-Identifier: Apache-2.0 */
/* State of the server, private to its files. */
#pragma once
#include "base/map.h"
#include "net/net_frame.h"
#include "net/net_packet.h"
#include "net/net_server.h"
#include "net/request.h"
#include <systemd/sd-event.h>

struct artifact_cache;
struct aws_credentials;
struct err;
struct net_calls;
struct s3_requests;
struct webhooks;

struct conn {
	struct net_server *server; /* borrowed */
	int fd;
	uint32_t version;          /* 0: no hello yet */
	bool synced, owes_synced;
	struct net_packet *out;    /* owned; frames that have not left yet */
	sd_event_source *source;
	char node[NET_NODE_MAX];
};

struct net_server {
	sd_event *ev; /* borrowed */
	struct net_server_options o;
	sd_event_source *listen_source, *linger_timer, *hello_timer;
	struct conn *conn;         /* to the daemon; NULL: none */
	struct conn *unidentified; /* a connection that has not sent hello; NULL: none */
	struct webhooks *webhooks;
	struct artifact_cache *cache;
	struct net_calls *calls;
	struct aws_credentials *aws;
	struct s3_requests *s3;
	uint32_t life;             /* random, not 0 */
	usec_t lease_end;          /* boottime; USEC_NEVER: none */
	sd_event_source *lease_timer;
	struct request *requests, **last;
	size_t requests_n;
	struct map by_id;          /* hash of the id → the first request with it */
	struct request *owing, **owing_last;
	sd_event_source *flush;    /* sends the unsent frames of requests after the other events of this turn */
	struct net_packet in;
};

/* net_server.c */
void net_server_conn_close(struct conn *c);

/* net_requests.c */
struct request *net_requests_find(const struct net_server *s, const struct net_id *id);
struct request *net_requests_add(struct net_server *s, const struct net_id *id, int64_t uid);
void net_requests_start(struct request *r); /* its payload was read */
void net_requests_drop(struct net_server *s, struct request *r);
void net_requests_lose_calls(struct net_server *s); /* the run lease is over */
/* net_owed.c */
void net_owed_add(struct request *r, unsigned what /* enum request_owes */);
void net_owed_forget(struct request *r);
void net_owed_forget_all(struct net_server *s);
/*
 * False: the frame was not sent. Either the socket is full, and the loop continues when it is
 * writable, or the connection is broken.
 */
bool net_owed_send(struct conn *c, const struct net_frame *f, int fd);
void net_owed_flush(struct conn *c); /* sends all pending frames, until the socket is full */
int net_owed_on_flush(sd_event_source *source, void *arg);

/* net_requests.c */
bool net_requests_open(struct net_server *s, struct err *e); /* what the kinds of requests need */
void net_requests_close(struct net_server *s);
