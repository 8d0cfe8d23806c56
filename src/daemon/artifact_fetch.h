/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the bytes behind a URL into a file and holds them against their SHA-256; it takes its time, on a thread. */
#pragma once
#include "base/clock.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

#define ARTIFACT_TRIES 3 /* of one fetch, when it is the network's fault; these use up no retry of a job */

struct artifact_source {
	const char *url;      /* file:/path, http: or https: */
	const char *sha256;   /* in small hex digits */
	int64_t limit;        /* bytes */
	usec_t timeout;       /* of one try */
	bool public_only;     /* a file must be one that everybody may read: we read it for somebody else */
	const atomic_bool *stop;
};
/* 'fd' is an empty file. The error names the URL without its query, which may be a token. */
bool artifact_fetch(const struct artifact_source *s, int fd, struct err *e);
