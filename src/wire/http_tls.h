/* SPDX-License-Identifier: Apache-2.0 */
/* TLS connection of the HTTP client. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct http_tls;

/*
 * Performs the handshake on a connected, non-blocking socket and verifies the certificate for
 * 'host' with the authorities in 'ca_file' (NULL: those of the system). 'certificate' and 'key' are
 * files of a client certificate; NULL: none.
 */
struct http_tls_options {
	const char *host, *ca_file, *certificate, *key;
	usec_t until;
};
bool http_tls_open(int fd, const struct http_tls_options *o, struct http_tls **ret, struct err *e);
void http_tls_free(struct http_tls *t); /* does not close the socket */
AUTO_DEFINE(http_tls);

/* As recv() and send(): -1 with errno, EAGAIN when the socket is not ready. */
ssize_t http_tls_recv(struct http_tls *t, void *out, size_t len);
ssize_t http_tls_send(struct http_tls *t, const void *data, size_t len);
