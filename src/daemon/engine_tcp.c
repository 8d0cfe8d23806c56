/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the TCP side of the API as configured. */
#include "base/auto.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/api/auth/jwt_keys.h"
#include "daemon/api/auth/tls_files.h"
#include "daemon/api/listener.h"
#include "daemon/api/server_tcp.h"
#include "daemon/engine_private.h"
#include "daemon/loop/config.h"

/*
 * Opens the sockets and reads the keys before the store is opened, so that a mistake in the
 * configuration is an error at the start.
 */
bool engine_open_tcp(struct engine *g, struct err *e)
{
	const struct config *c = g->o.config;
	const int *fds = NULL;
	size_t n = listener_take_tcp(g->listener, &fds);
	bool tls = c->tls_certificate || c->tls_key || c->tls_client_ca;

	return tcp_listeners_open(c->listen, fds, n, tls, &g->tcp, e) &&
	       (!tls || tls_files_new(c->tls_certificate, c->tls_key, c->tls_client_ca, &g->tls, e)) &&
	       (!c->jwt_key_file || jwt_keys_new(&(struct jwt_keys_options){.file = c->jwt_key_file,
						    .audience = c->jwt_audience,
						    .issuer = c->jwt_issuer},
						    &g->jwt, e));
}

bool engine_serve_tcp(struct engine *g, struct err *e)
{
	const struct config *c = g->o.config;
	struct server_tcp_options o = {.listeners = &g->tcp,
		.tls = STEAL(g->tls),
		.jwt = STEAL(g->jwt),
		.hosts = c->hosts,
		.node_name = g->o.node_name,
		.session_life = c->session_lifetime,
		.requests_per_second = c->requests_per_second,
		.requests_burst = c->requests_burst};

	return server_tcp_start(g->server, &o, e);
}

void engine_end_tcp(struct engine *g)
{
	tcp_listeners_done(&g->tcp);
	tls_files_free(g->tls);
	jwt_keys_free(g->jwt);
}
