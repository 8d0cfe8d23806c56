/* SPDX-License-Identifier: Apache-2.0 */
/* The spawner's connections: to the daemon, to clients before their hello, to warrant clients. */
#pragma once
#include "base/clock.h"
#include "base/map.h"
#include "exec/proto/epoll_source.h"
#include "exec/proto/frame.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct admission;
struct conns;
struct start_queue;
struct table_reader;
struct err;
struct reexec_state_conn;
struct workers;

#define UNAUTHENTICATED_MAX 8 /* connections that have not sent hello */

struct conn {
	struct epoll_source source;
	struct conns *all;     /* borrowed */
	uint32_t version;      /* of the protocol; 0: no hello yet */
	usec_t hello_until;    /* CLOCK_BOOTTIME; closed then if there was no hello */
	uid_t peer;            /* uid of the peer from SO_PEERCRED; set by the constructor only */
	bool warrant_only;        /* accepted on the warrant socket */
	bool full;             /* the socket buffer is full; nothing is read until it has room */
	unsigned lists;        /* list_done frames still to be sent */
	bool sandboxes_pending;   /* the sandboxes frame is still to be sent */
	char node[FRAME_NODE_MAX];
	struct conn *next_closed;
};

struct conns {
	int ep;                   /* borrowed, as are the next six */
	int output_dir;
	const char *id;           /* of the spawner */
	struct workers *workers;
	struct start_queue *starts;
	const struct admission *admission;
	struct table_reader *tables;
	uid_t daemon_uid;         /* the uid that may connect, besides root */
	struct epoll_source listen;     /* the descriptor is borrowed */
	/* The warrant socket, open to all users; -1: none; borrowed. */
	struct epoll_source warrant_listen;
	struct conn *unauthenticated[UNAUTHENTICATED_MAX];
	struct conn *warrant_clients[UNAUTHENTICATED_MAX]; /* accepted on the warrant socket */
	/* Bytes checked for non-root warrant clients in the current second: see conn_warrant.c. */
	struct map checked;         /* struct checked by uid, owned */
	int64_t checked_bytes;      /* of all of them */
	usec_t checked_since;       /* CLOCK_BOOTTIME of the start of that second */
	struct conn *daemon;      /* NULL: none */
	struct conn *closed;        /* closed; freed by conns_cleanup() */
};

int conns_watch(struct conns *cs, int listen, int warrant_listen /* -1: none */); /* 0, or -errno */
bool conns_resume(struct conns *cs, const struct reexec_state_conn *from, const char *node,
	struct err *e);
/* Frees closed connections, closes those without hello; returns the next timeout. */
usec_t conns_cleanup(struct conns *cs, usec_t now);
void conns_done(struct conns *cs);
/* Sends the reports of workers while the socket has room. */
void conns_report(struct conns *cs);

/* May be called twice; freed by conns_cleanup(). */
void conn_close(struct conn *c);
/* Sends the answer and closes. */
void conn_warrant_request(struct conn *c, const struct frame *f, int fd);
void conns_forget_checked(struct conns *cs);

/* False: not sent. The socket buffer is full (c->full is set) or the connection was closed. */
bool conn_send(struct conn *c, const struct frame *f);
bool conn_send_with(struct conn *c, const struct frame *f, const int *fds, size_t n);
