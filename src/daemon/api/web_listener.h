/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that local clients pass to the daemon. */
#pragma once

struct request;
struct server_tcp;

/*
 * Answers 101; then the client sends one byte with a listening loopback socket as SCM_RIGHTS, and
 * the daemon answers "ok" or a reason. The listener is served until the client disconnects.
 */
void web_listener_start(struct request *r);
void web_listeners_close(struct server_tcp *t);
