/* SPDX-License-Identifier: Apache-2.0 */
/* Names of objects in S3-compatible storage, and the URLs of requests for them. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;

#define S3_BUCKET_MAX 63 /* bytes, as AWS allows */
#define S3_KEY_MAX 1024

/* s3://BUCKET/KEY */
struct s3_name {
	char bucket[S3_BUCKET_MAX + 1];
	const char *key; /* in the parsed text; may be empty */
};
bool s3_url_parse(const char *url, struct s3_name *ret, struct err *e);

/* Where buckets are. */
struct s3_place {
	const char *endpoint; /* http://HOST[:PORT] or https://…; NULL: AWS */
	const char *region;
	int addressing;       /* enum s3_addressing */
};
/* Auto: by path if there is an endpoint or the bucket has a dot, otherwise by host name. */
enum s3_addressing { S3_ADDRESSING_AUTO, S3_ADDRESSING_PATH, S3_ADDRESSING_VIRTUAL };

bool s3_url_endpoint_check(const char *endpoint, struct err *e);
/* An archive: a prefix without leading and trailing '/', of letters, digits and ._-/ only. */
bool s3_url_archive_check(const char *url, struct err *e);
/* The bucket is one of the names, which are separated by commas or blanks; NULL: of none. */
bool s3_url_bucket_listed(const char *list, const char *bucket);

/* An artifact that is an object is in a listed bucket. True for other URLs and NULL. */
bool s3_url_artifact_check(const char *url, const char *buckets, struct err *e);

/* The URL of a request; 'query' is sorted and encoded already; NULL: none. The caller frees it. */
char *s3_url_request(const struct s3_place *p, const char *bucket, const char *key, const char *query);
/* Percent-encodes a text as SigV4 does. */
void s3_url_encode(struct buf *out, const char *text, bool keep_slashes);
