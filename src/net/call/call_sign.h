/* SPDX-License-Identifier: Apache-2.0 */
/* Signs calls as Standard Webhooks does (HMAC-SHA256, version v1). */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * Appends "v1,SIGNATURE" of ID.TIMESTAMP.BODY, after a blank if 'out' is not empty: one per key. A key 'whsec_BASE64' is
 * decoded; another key is used as it is.
 */
void call_sign_add(struct buf *out, const struct buf *key, const char *id, int64_t timestamp,
	const void *body, size_t len);
