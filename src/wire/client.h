/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/1.1 conversation with the daemon over its Unix socket. */
#pragma once
#include "base/auto.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct client;
struct err;

bool client_open(const char *socket_path, struct client **ret, struct err *e); /* ERR_UNREACHABLE */
void client_free(struct client *c);
AUTO_DEFINE(client);

/*
 * Sends a request and reads the JSON answer. An error answer of the daemon becomes *e with its kind, message and field.
 * The connection is kept for the next call. A connection lost after the request left is ERR_UNCERTAIN.
 */
bool client_call(struct client *c, const char *method, const char *path, const json_t *body /* NULL: none */,
	int timeout_ms, json_t **ret, struct err *e);

/* A streamed answer; 'fn' returns false to stop early. */
typedef bool client_chunk_fn(const char *data, size_t len, void *arg);
bool client_stream(struct client *c, const char *path, client_chunk_fn *fn, void *arg, struct err *e);
