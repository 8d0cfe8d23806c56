/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104). Webhooks are signed with it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32
#define SHA256_HEX (2 * SHA256_LEN + 1)

struct sha256 {
	uint32_t state[8];
	uint64_t len;            /* bytes so far */
	unsigned char block[64];
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, unsigned char out[SHA256_LEN]);

/* The HMAC of the concatenated parts. */
struct sha256_part {
	const void *data;
	size_t len;
};
void sha256_hmac(const void *key, size_t key_len, const struct sha256_part *parts, size_t n,
	unsigned char out[SHA256_LEN]);
char *sha256_hex(const unsigned char in[SHA256_LEN], char out[SHA256_HEX]);
