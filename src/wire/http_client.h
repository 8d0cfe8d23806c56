/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 client of the daemon, over its Unix socket or over TCP. */
#pragma once
#include "base/auto.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct http_client;
struct err;

#define HTTP_CLIENT_HEAD_MAX (16 * 1024)           /* bytes of the head of a response */
#define HTTP_CLIENT_BODY_MAX (256 * 1024 * 1024) /* bytes of a JSON response */

/*
 * ERR_UNREACHABLE: the socket does not exist or is not served; ERR_DENIED: no permission to
 * connect; ERR_INVALID: not a valid socket path.
 */
bool http_client_open(const char *socket_path, struct http_client **ret, struct err *e);
/*
 * A daemon over TCP. 'url' is as in http_url.h. 'token' is sent with each request; NULL: none. The
 * files are those of http_tls_open(). All texts are copied.
 */
struct http_client_remote {
	const char *url, *token, *ca_file, *certificate, *key;
};
bool http_client_open_remote(const struct http_client_remote *o, struct http_client **ret,
	struct err *e);
void http_client_free(struct http_client *c);
AUTO_DEFINE(http_client);

/*
 * Sends a request and reads the JSON response. An error response sets *e to its kind, message and
 * field. The connection is kept for the next call. If it is lost after the request was sent, the
 * error is ERR_UNCERTAIN; for a GET it is ERR_UNREACHABLE, after one retry if the daemon had closed
 * a kept connection. 'timeout_ms' applies to the whole call; -1: none.
 */
bool http_client_call(struct http_client *c, const char *method, const char *path,
	const json_t *body /* NULL: none */, int timeout_ms, json_t **ret, struct err *e);

/*
 * Reads a streamed response; 'fn' returns false to stop early. 'timeout_ms' is the maximum time
 * without data; -1: none.
 */
typedef bool http_client_chunk_fn(const char *data, size_t len, void *arg);
bool http_client_stream(struct http_client *c, const char *path, int timeout_ms,
	http_client_chunk_fn *fn, void *arg, struct err *e);

/*
 * 'fn' is called once for each request without a response after 'after_ms'; the call continues to
 * wait. NULL: never.
 */
typedef void http_client_unresponsive_fn(void *arg);
void http_client_on_unresponsive(struct http_client *c, int after_ms,
	http_client_unresponsive_fn *fn, void *arg);
/*
 * For another thread: the call in progress and all later ones fail with ERR_UNREACHABLE. A call
 * that is connecting fails when that has ended.
 */
void http_client_interrupt(struct http_client *c);
/* Process id of the listener; 0: not known. */
pid_t http_client_peer_pid(const struct http_client *c);

/* A header of the last response; NULL: absent. Valid until the next request. */
const char *http_client_header(const struct http_client *c, const char *name);
