/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and HMAC-SHA256. Not optimised: the inputs are a few kilobytes. */
#include "base/sha256.h"
#include <string.h>

#define BLOCK 64

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void hash_block(struct sha256 *s, const unsigned char *p)
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t one = v[7] + (rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25)) +
			       ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		uint32_t two = (rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22)) +
			       ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		s->state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
		0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len > 0) {
		size_t at = s->len % BLOCK, n = BLOCK - at < len ? BLOCK - at : len;

		memcpy(s->block + at, p, n);
		s->len += n;
		p += n;
		len -= n;
		if (at + n == BLOCK)
			hash_block(s, s->block);
	}
}

void sha256_end(struct sha256 *s, unsigned char out[SHA256_LEN])
{
	static const unsigned char fill[BLOCK] = {0x80};
	uint64_t bits = s->len * 8;
	size_t at = s->len % BLOCK;
	unsigned char length[8];

	sha256_add(s, fill, (at < 56 ? 56 : 120) - at);
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(s, length, sizeof(length));
	for (int i = 0; i < SHA256_LEN; i++)
		out[i] = (unsigned char)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hmac(const void *key, size_t key_len, const struct sha256_part *parts, size_t n,
	unsigned char out[SHA256_LEN])
{
	unsigned char block[BLOCK] = {};
	struct sha256 s;

	if (key_len > BLOCK) {
		sha256_init(&s);
		sha256_add(&s, key, key_len);
		sha256_end(&s, block);
	} else if (key_len > 0) {
		memcpy(block, key, key_len);
	}
	for (int i = 0; i < BLOCK; i++)
		block[i] ^= 0x36;
	sha256_init(&s);
	sha256_add(&s, block, sizeof(block));
	for (size_t i = 0; i < n; i++)
		sha256_add(&s, parts[i].data, parts[i].len);
	sha256_end(&s, out);
	for (int i = 0; i < BLOCK; i++)
		block[i] ^= 0x36 ^ 0x5c;
	sha256_init(&s);
	sha256_add(&s, block, sizeof(block));
	sha256_add(&s, out, SHA256_LEN);
	sha256_end(&s, out);
	explicit_bzero(block, sizeof(block));
}

char *sha256_hex(const unsigned char in[SHA256_LEN], char out[SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_LEN; i++) {
		out[2 * i] = digits[in[i] >> 4];
		out[2 * i + 1] = digits[in[i] & 15];
	}
	out[SHA256_HEX - 1] = '\0';
	return out;
}
