/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the daemon, from its arrival to the acknowledgement of its result. */
#pragma once
#include "base/buf.h"
#include "net/net_frame.h"
#include "net/net_payload.h"
#include <stdbool.h>
#include <stdint.h>

struct net_call;
struct s3_transfer;
struct net_server;

enum request_stage {
	REQUEST_UNDER_WAY,
	/* has its result; its artifact stays in use until the daemon acknowledges the result */
	REQUEST_ENDED,
};

enum request_owes { /* frames that have not been sent to the daemon yet */
	OWES_RESULT = 1 << 0,
	OWES_HAS = 1 << 1,
	OWES_FILE = 1 << 2,
	OWES_SECRET = 1 << 3,
};

struct request {
	struct net_server *server;  /* borrowed */
	struct net_id id;
	int64_t uid, limit;
	usec_t timeout;
	struct net_payload payload; /* owned */
	enum request_stage stage;
	bool wanted;                /* the daemon has named it on this connection */
	unsigned owes;              /* enum request_owes */
	enum net_outcome outcome;
	char error[NET_TEXT_MAX];
	char key[NET_KEY_MAX];      /* of an artifact; empty otherwise */
	struct net_call *call;     /* owned; of an unfinished call; NULL otherwise */
	struct net_call_result end; /* of a finished call */
	struct s3_transfer *s3;     /* owned; of an unfinished storage request; NULL otherwise */
	struct buf response;        /* owned; of a finished call */
	int result_fd;              /* owned; the directory of an artifact, or the response of the storage; -1: none */
	int file_socket;            /* owned; where the spawner sends the file; -1: none */
	int64_t secret;             /* index of the secret that is sent to file_socket */
	struct request *next, **at; /* in the list of the server, in the order of arrival */
	struct request *same;       /* the next one with the same hash of its id */
	struct request *owing, **owing_at; /* in the list of requests with unsent frames; owing_at NULL: not in it */
};

/*
 * Called when a request has ended; the daemon gets the result. The descriptor is moved; -1: none.
 */
void request_end(struct request *r, enum net_outcome outcome, const char *error, int fd);
/* The same for a call; sets id and ended_at. The response is moved. */
void request_end_call(struct request *r, const struct net_call_result *end, struct buf *response);
/* Requests the file of a secret, as request_need_file() does. */
void request_need_secret(struct request *r, int64_t index, int socket);
/*
 * Requests the file of a 'file:' artifact from the daemon. The file arrives at the other end of
 * this socket, which is moved.
 */
void request_need_file(struct request *r, int socket);
