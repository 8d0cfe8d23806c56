/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes JSON web tokens: the input as a token, which no key has signed, and the input as the claims of a token that is
 * signed with the key. What is accepted has a user, the audience and an expiry in the future.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/api/auth/jwt_keys.h"
#include <gnutls/crypto.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW (INT64_C(1700000000) * USEC_SEC)
#define AUDIENCE "jobs"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secret[] = "a secret of more than thirty-two bytes";

/* The file is not read again while it does not change. */
static struct jwt_keys *open_keys(void)
{
	static struct jwt_keys *keys;
	static char path[] = "/tmp/fuzz-jwt.XXXXXX";
	int fd;

	if (keys)
		return keys;
	fd = mkstemp(path);
	if (fd < 0 || write(fd, secret, strlen(secret)) != (ssize_t)strlen(secret) || close(fd) < 0 ||
		!jwt_keys_new(&(struct jwt_keys_options){.file = path, .audience = AUDIENCE}, &keys, NULL))
		abort();
	unlink(path); /* a missing file leaves the keys in use */
	return keys;
}

static void add_base64url(struct buf *out, const uint8_t *data, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)data[i] << 16 | (n > 1 ? (uint32_t)data[i + 1] << 8 : 0) | (n > 2 ? data[i + 2] : 0);

		for (size_t k = 0; k <= n; k++)
			buf_char(out, digits[v >> (18 - 6 * k) & 63]);
	}
}

static void sign(struct buf *out, const uint8_t *claims, size_t len)
{
	static const char head[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
	uint8_t mac[32];

	add_base64url(out, (const uint8_t *)head, strlen(head));
	buf_char(out, '.');
	add_base64url(out, claims, len);
	if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret, strlen(secret), out->data, out->len, mac) < 0)
		abort();
	buf_char(out, '.');
	add_base64url(out, mac, sizeof(mac));
}

/* Compares the accepted claims with a second parser. The claims end at a null byte, as librhonabwy reads them. */
static void check_claims(const struct jwt_claims *c, const char *text)
{
	json_t *o = json_loads(text, 0, NULL);
	const json_t *aud = json_object_get(o, "aud");
	bool meant = json_is_string(aud) && strcmp(json_string_value(aud), AUDIENCE) == 0;

	for (size_t i = 0; i < json_array_size(aud); i++)
		meant |= json_is_string(json_array_get(aud, i)) && strcmp(json_string_value(json_array_get(aud, i)), AUDIENCE) == 0;
	if (!meant || !c->user[0] || strlen(c->user) >= sizeof(c->user) || strlen(c->scope) >= sizeof(c->scope) ||
		c->expires_at <= NOW || c->role >= TOKEN_ROLE_MAX || json_integer_value(json_object_get(o, "exp")) * USEC_SEC <= NOW)
		abort();
	json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jwt_keys *keys = open_keys();
	AUTO_TEXT text = xstrndup((const char *)data, size);
	AUTO_DONE(buf) token = {};
	struct jwt_claims claims = {};
	struct err e = {};

	if (size > JWT_TEXT_MAX)
		return 0;
	jwt_keys_is_jwt(text, strlen(text));
	if (jwt_keys_verify(keys, text, NOW, &claims, &e))
		abort();
	if (e.kind == ERR_NONE || !e.msg[0])
		abort();
	e = (struct err){};
	sign(&token, data, size);
	if (jwt_keys_verify(keys, token.data, NOW, &claims, &e))
		check_claims(&claims, text);
	else if (e.kind == ERR_NONE || !e.msg[0])
		abort();
	return 0;
}
