/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's side of the socket: who is connected, what the engine asks, what it is told. */
#pragma once
#include "base/clock.h"
#include "exec/proto/epoll_source.h"
#include "exec/proto/frame.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct admission;
struct conns;
struct start_queue;
struct err;
struct reexec_state_conn;
struct workers;

#define UNAUTHENTICATED_MAX 8 /* connections that have not said hello */

struct conn {
	struct epoll_source source;
	struct conns *all;     /* borrowed */
	uint32_t version;      /* 0: no hello yet */
	usec_t hello_until;    /* boottime */
	uid_t peer;            /* uid of the peer, from SO_PEERCRED; set by the constructor and never later */
	bool warrant_only;        /* came through the socket for warrants */
	bool full;             /* its socket takes no more: we listen again when it does */
	unsigned lists;        /* list_done frames owed */
	bool sandboxes_pending;   /* it has not heard which there are */
	char node[FRAME_NODE_MAX];
	struct conn *next_dead;
};

struct conns {
	int ep;                   /* borrowed, as are the next four */
	int output_dir;
	const char *id;           /* of the spawner */
	struct workers *workers;
	struct start_queue *starts;
	const struct admission *admission;
	uid_t engine_uid;         /* who may connect, beside root */
	struct epoll_source listen;     /* its descriptor is borrowed too */
	struct epoll_source asks;       /* for everybody, and for warrants only; -1: there is none; borrowed */
	struct conn *unauthenticated[UNAUTHENTICATED_MAX];
	struct conn *warrant_clients[UNAUTHENTICATED_MAX]; /* who came to the socket for warrants */
	int64_t asked;            /* bytes that were looked at for them lately */
	usec_t asked_at;          /* boottime */
	struct conn *engine;      /* NULL: none */
	struct conn *dead;        /* freed at the end of the turn */
};

int conns_watch(struct conns *cs, int listen, int asks /* -1: none */); /* 0, or -errno */
bool conns_resume(struct conns *cs, const struct reexec_state_conn *from, const char *node, struct err *e);
usec_t conns_cleanup(struct conns *cs, usec_t now);      /* frees the dead; when the next guest has waited too long */
void conns_done(struct conns *cs);
void conns_report(struct conns *cs);                  /* what workers have to tell, as the socket allows */

void conn_close(struct conn *c);                      /* twice is fine; freed at the end of the turn */
void conn_warrant_request(struct conn *c, const struct frame *f, int fd); /* answered, and closed */

/* A frame to an engine. False: it was not taken, and none will be before the socket says so. */
bool conn_send(struct conn *c, const struct frame *f);
bool conn_send_with(struct conn *c, const struct frame *f, const int *fds, size_t n);
