/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads an artifact to a file. The function blocks, so it runs in a child process. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct quota;

/* of one download, if the network or the server fails; they do not count as retries of the job */
#define ARTIFACT_DOWNLOAD_TRIES 3

/* An object in S3-compatible storage. */
struct artifact_s3 {
	const char *url;      /* of the request */
	const char *region;
	const char *key_id, *key_secret, *key_token; /* token empty: none */
};
struct artifact_source {
	const char *url;      /* file:/path, http:, https: or s3: */
	const char *sha256;   /* lower-case hexadecimal digits */
	int64_t limit;        /* bytes */
	usec_t timeout;       /* of one try */
	/* for a 'file:' URL: a child of the spawner sends the open file here; borrowed */
	int file_socket;
	const struct artifact_s3 *s3; /* for an 's3:' URL; NULL otherwise */
	struct quota *quota;
};
/* 'fd' is an empty file. Errors show the URL without its query, which may contain a token. */
bool artifact_download(const struct artifact_source *s, int fd, struct err *e);
/* reads the whole file from its start */
bool artifact_download_verify(int fd, const char *sha256, struct err *e);
