/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one HTTP/1.1 answer from a non-blocking descriptor, strictly and within bounds. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "wire/http_client.h"
#include <stdbool.h>
#include <stdint.h>

struct err;

struct http_response {
	struct buf in;      /* received, not yet consumed up to 'at' */
	size_t at;
	size_t got;         /* bytes received since the request left */
	struct buf head;    /* header lines, each ended by NUL */
	int status;
	int64_t length;     /* of the body; -1: chunked */
	bool keep;          /* the connection may be used again */
};
void http_response_done(struct http_response *a);
void http_response_reset(struct http_response *a); /* before a new request; forgets what was left unread */

/* Deadlines are on the clock that counts suspend; -1: none, 0: what is there already. */
usec_t http_response_deadline(int timeout_ms);
bool http_response_is_late(usec_t until);
bool http_response_poll(int fd, short events, usec_t until, struct err *e); /* ERR_UNREACHABLE when late */

bool http_response_read_head(struct http_response *a, int fd, usec_t until, struct err *e);
const char *http_response_header(const struct http_response *a, const char *name);

struct http_response_limits {
	usec_t until;   /* for the whole body; -1: 'pause_ms' between two arrivals instead */
	int pause_ms;   /* -1: none */
	size_t max;     /* bytes of the body */
};
/* 'fn' returning false ends it well, with 'keep' cleared. */
bool http_response_read_body(struct http_response *a, int fd, const struct http_response_limits *l, http_client_chunk_fn *fn,
	void *arg, struct err *e);
