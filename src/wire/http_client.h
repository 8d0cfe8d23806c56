/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/1.1 conversation with the daemon over its Unix socket. */
#pragma once
#include "base/auto.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct http_client;
struct err;

#define HTTP_CLIENT_HEAD_MAX (16 * 1024)           /* bytes of an answer's head */
#define HTTP_CLIENT_BODY_MAX (256 * 1024 * 1024) /* bytes of a JSON answer */

/* ERR_UNREACHABLE: nobody listens there; ERR_DENIED: we may not connect; ERR_INVALID: no socket path. */
bool http_client_open(const char *socket_path, struct http_client **ret, struct err *e);
void http_client_free(struct http_client *c);
AUTO_DEFINE(http_client);

/*
 * Sends a request and reads the JSON answer. An error answer of the daemon becomes *e with its kind,
 * message and field. The connection is kept for the next call. A connection lost after the request
 * left is ERR_UNCERTAIN, but for a GET, which is sent once more when the daemon had closed the kept
 * connection and is ERR_UNREACHABLE otherwise.
 * 'timeout_ms' is for the whole of it; -1: none.
 */
bool http_client_call(struct http_client *c, const char *method, const char *path, const json_t *body /* NULL: none */,
	int timeout_ms, json_t **ret, struct err *e);

/* A streamed answer; 'fn' returns false to stop early. 'timeout_ms' is between two arrivals; -1: none. */
typedef bool http_client_chunk_fn(const char *data, size_t len, void *arg);
bool http_client_stream(struct http_client *c, const char *path, int timeout_ms, http_client_chunk_fn *fn, void *arg,
	struct err *e);

/* 'fn' is called once for each request that has no answer after so long; NULL: for none. It goes on waiting. */
typedef void http_client_unresponsive_fn(void *arg);
void http_client_on_unresponsive(struct http_client *c, int after_ms, http_client_unresponsive_fn *fn, void *arg);
pid_t http_client_peer_pid(const struct http_client *c); /* the process that listens; 0: not known */

/* Of the last answer: NULL when absent. Valid until the next request. */
const char *http_client_header(const struct http_client *c, const char *name);
