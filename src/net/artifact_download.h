/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the contents of a URL into a file and checks its SHA-256. It blocks, so it runs in a child of its own. */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct quota;

#define ARTIFACT_DOWNLOAD_TRIES 3 /* of one fetch, while the network or the server fails; they use up no retry of the job */

struct artifact_source {
	const char *url;      /* file:/path, http: or https: */
	const char *sha256;   /* lower-case hexadecimal digits */
	int64_t limit;        /* bytes */
	usec_t timeout;       /* of one try */
	int file_socket;      /* of a 'file:' URL: the spawner's child sends the open file here; borrowed */
	struct quota *quota;
};
/* 'fd' is an empty file. The error names the URL without its query, which may be a token. */
bool artifact_download(const struct artifact_source *s, int fd, struct err *e);
bool artifact_download_verify(int fd, const char *sha256, struct err *e); /* of a whole file, read from its start */
