/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a daemon. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;

struct http_url {
	bool tls;
	char *host;     /* owned; an IPv6 address without brackets */
	char port[6];
	char *shown;    /* owned: HOST:PORT, for the Host header */
};
void http_url_done(struct http_url *u);
/*
 * https://HOST[:PORT], or http:// with a loopback host, because the token would be sent in clear
 * text. A path other than '/' is refused.
 */
bool http_url_parse(const char *text, struct http_url *ret, struct err *e);
