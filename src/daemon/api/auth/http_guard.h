/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a request over TCP that need no identity: target, host, origin. */
#pragma once
#include <stdbool.h>

struct err;
struct strv;

/*
 * The raw target of the request. Refuses a path that another parser could read differently: empty
 * and dot components, encoded separators, parameters after ';'. Refuses a query with a token.
 */
bool http_guard_target(const char *target, struct err *e);

/*
 * The Host header is an IP address, 'localhost' or one of 'names', each with or without a port.
 * Other names may be under the control of an attacker (DNS rebinding).
 */
bool http_guard_host(const char *host /* NULL: absent */, const struct strv *names, struct err *e);

/*
 * A request that changes something must not come from a page of another site. The headers are
 * NULL if absent. 'cookie': the request is authenticated by a cookie, so one of them is required.
 */
struct http_guard_origin {
	const char *origin, *fetch_site, *host;
	bool tls, cookie;
};
bool http_guard_origin(const struct http_guard_origin *o, struct err *e);
