/* SPDX-License-Identifier: Apache-2.0 */
/* Signs a webhook, so that the receiver can verify its sender and its time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct strv;

/* Adds Jobsched-Timestamp and Jobsched-Signature: sha256=HMAC(key, "TIMESTAMP.BODY"). */
bool webhook_sign(const char *key_file, int64_t timestamp /* seconds */, const struct buf *body, struct strv *headers,
	struct err *e);
