/* SPDX-License-Identifier: Apache-2.0 */
/* Names and text form of tokens. */
#include "core/job/token.h"
#include "base/sha256.h"
#include <stdio.h>
#include <string.h>

static const char *const kind_names[TOKEN_KIND_MAX] = {
	[TOKEN_API] = "token", [TOKEN_SESSION] = "session", [TOKEN_ONCE] = "once"};
static const char *const role_names[TOKEN_ROLE_MAX] = {
	[TOKEN_VIEWER] = "viewer", [TOKEN_OPERATOR] = "operator", [TOKEN_ADMIN] = "admin"};
static const char prefix[] = "jst_";

const char *token_kind_name(enum token_kind k)
{
	return k < TOKEN_KIND_MAX ? kind_names[k] : "unknown";
}

const char *token_role_name(enum token_role r)
{
	return r < TOKEN_ROLE_MAX ? role_names[r] : "unknown";
}

bool token_role_parse(const char *name, enum token_role *ret)
{
	for (int r = 0; r < TOKEN_ROLE_MAX; r++)
		if (strcmp(role_names[r], name) == 0) {
			*ret = (enum token_role)r;
			return true;
		}
	return false;
}

static bool all_hex(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'f'))
			return false;
	return true;
}

bool token_text_parse(const char *text, size_t len, struct token_text *ret)
{
	const char *id = text + strlen(prefix), *secret = id + TOKEN_ID_LEN + 1;

	if (len != TOKEN_TEXT_LEN || memcmp(text, prefix, strlen(prefix)) != 0 ||
		!all_hex(id, TOKEN_ID_LEN) || id[TOKEN_ID_LEN] != '_' ||
		!all_hex(secret, TOKEN_SECRET_LEN))
		return false;
	*ret = (struct token_text){};
	memcpy(ret->id, id, TOKEN_ID_LEN);
	memcpy(ret->secret, secret, TOKEN_SECRET_LEN);
	return true;
}

void token_text_write(const struct token_text *t, char out[TOKEN_TEXT_LEN + 1])
{
	snprintf(out, TOKEN_TEXT_LEN + 1, "%s%s_%s", prefix, t->id, t->secret);
}

void token_text_hash(const struct token_text *t, char out[TOKEN_HASH_LEN + 1])
{
	unsigned char digest[SHA256_LEN];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, t->secret, TOKEN_SECRET_LEN);
	sha256_end(&s, digest);
	sha256_hex(digest, out);
}

bool token_hash_equal(const char a[TOKEN_HASH_LEN + 1], const char b[TOKEN_HASH_LEN + 1])
{
	volatile unsigned char differs = 0;

	for (size_t i = 0; i < TOKEN_HASH_LEN; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return differs == 0;
}
