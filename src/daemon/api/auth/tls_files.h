/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate and key of the TLS listeners, read again when the files change. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct err;
struct tls_files;

/* 'client_ca' is NULL if clients need no certificate. ERR_INVALID: missing, or not a pair. */
bool tls_files_new(const char *certificate, const char *key, const char *client_ca,
	struct tls_files **ret, struct err *e);
void tls_files_free(struct tls_files *t);
AUTO_DEFINE(tls_files);

/*
 * Reads the files if they have changed since the last call. True: new contents are in use. Files
 * that cannot be used are reported once, and the old contents stay in use.
 */
bool tls_files_refresh(struct tls_files *t);
/* The certificate of the client in a GnuTLS session is signed by the client CA. */
bool tls_files_peer_verified(void *session);
const char *tls_files_certificate(const struct tls_files *t); /* PEM */
const char *tls_files_key(const struct tls_files *t);
const char *tls_files_client_ca(const struct tls_files *t);   /* NULL: none */
