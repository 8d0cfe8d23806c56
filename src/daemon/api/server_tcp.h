/* SPDX-License-Identifier: Apache-2.0 */
/* The API over TCP: listeners, names, keys. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct jwt_keys;
struct server;
struct tcp_listener;
struct tcp_listeners;
struct tls_files;

struct server_tcp_options {
	struct tcp_listeners *listeners; /* contents moved */
	struct tls_files *tls;           /* moved; NULL: none */
	struct jwt_keys *jwt;            /* moved; NULL: none */
	const char *hosts;               /* names of this server, separated by commas; NULL: none */
	const char *node_name;
	int64_t session_life;            /* seconds */
	int64_t requests_per_second, requests_burst; /* of one token */
};

/* Also called without listeners, for the ones that 'jobctl web' adds later. */
bool server_tcp_start(struct server *s, struct server_tcp_options *o, struct err *e);

/* Serves one more listening socket on loopback, without TLS. */
struct tcp_source;
bool server_tcp_add(struct server *s, struct tcp_listener *l /* fd moved */,
	struct tcp_source **ret, struct err *e);
void server_tcp_drop(struct server *s, struct tcp_source *t);
