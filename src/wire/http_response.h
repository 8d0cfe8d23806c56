/* SPDX-License-Identifier: Apache-2.0 */
/* Strict, bounded reader for one HTTP/1.1 response. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "wire/http_client.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct http_tls;

struct http_response {
	struct buf in;      /* received; consumed up to 'at' */
	size_t at;
	size_t got;         /* bytes received since the request was sent */
	struct buf head;    /* names and values, each ended by NUL */
	int status;
	int64_t length;     /* of the body; -1: chunked */
	bool keep;          /* the connection may be used again */
	struct http_tls *tls; /* borrowed: reads from the socket go through it; NULL: plain */
};
void http_response_done(struct http_response *a);
void http_response_reset(struct http_response *a); /* before a new request; discards unread data */

/* Deadlines are on CLOCK_BOOTTIME; -1: none, 0: only data that has already arrived. */
usec_t http_response_deadline(int timeout_ms);
bool http_response_is_late(usec_t until);
/* ERR_UNREACHABLE after the deadline */
bool http_response_poll(int fd, short events, usec_t until, struct err *e);

bool http_response_read_head(struct http_response *a, int fd, usec_t until, struct err *e);
const char *http_response_header(const struct http_response *a, const char *name);

struct http_response_limits {
	usec_t until;   /* for the whole body; -1: use 'pause_ms' */
	int pause_ms;   /* maximum time without data; -1: none */
	size_t max;     /* bytes of the body */
};
/* If 'fn' returns false, reading ends successfully with 'keep' cleared. */
bool http_response_read_body(struct http_response *a, int fd, const struct http_response_limits *l,
	http_client_chunk_fn *fn, void *arg, struct err *e);
