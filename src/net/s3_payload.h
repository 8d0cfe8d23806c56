/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of a request to S3-compatible storage, and that of its result. */
#pragma once
#include "net/net_payload.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum s3_verb {
	S3_PUT,      /* the body of the payload */
	S3_PUT_FILE, /* parts of a file, whose descriptor jobsched-net requests by need_file */
	S3_GET,
	S3_LIST,     /* a GET whose answer is a list; the body of the result has a key per line */
	S3_VERB_MAX
};

#define S3_PARTS_MAX 4
#define S3_BODY_MAX ((size_t)2 << 20)        /* of the answer to a GET, and of the body of a payload */
#define S3_OBJECT_MAX (INT64_C(5) << 30)     /* a larger object would need a multipart upload */

struct s3_part {
	int64_t offset, length; /* in the file */
};
struct s3_payload {
	enum s3_verb verb;
	const char *url, *region;
	const char *sha256;      /* of the body or the file; empty for GET and LIST */
	int64_t from, length;    /* of GET: the range; length 0: the whole object */
	struct s3_part parts[S3_PARTS_MAX];
	size_t parts_n;
};
/* A sealed memfd; -1: see *e */
int s3_payload_memfd(const struct s3_payload *p, const void *body, size_t len, struct err *e);
/* The texts are borrowed from 'from'. */
bool s3_payload_parse(const struct net_payload *from, struct s3_payload *ret, struct err *e);

/* The answer of the server. */
struct s3_result {
	int64_t status;
	const char *message;  /* code and message of an error; empty: none */
	int64_t total;        /* bytes of the whole object; -1: unknown */
	bool more;            /* the list is truncated */
	const char *body;
	size_t body_len;
};
int s3_result_memfd(const struct s3_result *r, struct err *e);
bool s3_result_parse(const struct net_payload *from, struct s3_result *ret, struct err *e);
