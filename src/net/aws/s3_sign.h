/* SPDX-License-Identifier: Apache-2.0 */
/* Signs a libcurl request to S3-compatible storage with AWS Signature Version 4. */
#pragma once
#include <stdbool.h>

struct aws_keys;
struct curl_slist;

#define S3_SIGN_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* SHA-256 of an empty body */

/* 'sha256' is that of the body, in hex. The headers are those of the request so far; the caller frees them. */
bool s3_sign(void *easy /* CURL * */, const struct aws_keys *keys, const char *region, const char *sha256,
	struct curl_slist **headers);
