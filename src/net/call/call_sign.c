/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the signatures of Standard Webhooks. */
#include "net/call/call_sign.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/sha256.h"
#include "base/text.h"
#include <inttypes.h>
#include <string.h>

#define KEY_PREFIX "whsec_"

void call_sign_add(struct buf *out, const struct buf *key, const char *id, int64_t timestamp,
	const void *body, size_t len)
{
	AUTO_TEXT before = xprintf("%s.%" PRId64 ".", id, timestamp);
	AUTO_DONE(buf) decoded = {};
	unsigned char mac[SHA256_LEN];
	size_t prefix = strlen(KEY_PREFIX);
	const struct buf *use = key;

	if (key->data && text_starts(key->data, KEY_PREFIX) &&
		buf_base64_decode(key->data + prefix, key->len - prefix, &decoded))
		use = &decoded;
	sha256_hmac(use->data ? use->data : "", use->len,
		(struct sha256_part[]){{before, strlen(before)}, {body, len}}, 2, mac);
	buf_str(out, out->len ? " v1," : "v1,");
	buf_base64(out, mac, sizeof(mac));
	if (decoded.data)
		explicit_bzero(decoded.data, decoded.cap);
}
