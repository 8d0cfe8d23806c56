/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens for the API over TCP: kinds, roles, text form. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The numbers are stored. */
enum token_kind {
	TOKEN_API,     /* created by 'jobctl token add' */
	TOKEN_SESSION, /* a login of a browser, in a cookie */
	TOKEN_ONCE,    /* can be exchanged for a session once */
	TOKEN_KIND_MAX
};
const char *token_kind_name(enum token_kind k);

/* Each role includes the ones before it. The numbers are stored. */
enum token_role { TOKEN_VIEWER, TOKEN_OPERATOR, TOKEN_ADMIN, TOKEN_ROLE_MAX };
const char *token_role_name(enum token_role r);
bool token_role_parse(const char *name, enum token_role *ret);

/*
 * A token is "jst_ID_SECRET". The ID identifies the row, the store keeps a hash of the secret.
 */
#define TOKEN_ID_LEN 16      /* hex digits */
#define TOKEN_SECRET_LEN 64  /* hex digits: 256 bits */
#define TOKEN_TEXT_LEN (4 + TOKEN_ID_LEN + 1 + TOKEN_SECRET_LEN)
#define TOKEN_HASH_LEN 64    /* hex digits of SHA-256 */
struct token_text {
	char id[TOKEN_ID_LEN + 1];
	char secret[TOKEN_SECRET_LEN + 1];
};
/* 'text' is a token with exactly this length; *ret is set only then. */
bool token_text_parse(const char *text, size_t len, struct token_text *ret);
void token_text_write(const struct token_text *t, char out[TOKEN_TEXT_LEN + 1]);
void token_text_hash(const struct token_text *t, char out[TOKEN_HASH_LEN + 1]);
/* Compares two hashes in constant time. */
bool token_hash_equal(const char a[TOKEN_HASH_LEN + 1], const char b[TOKEN_HASH_LEN + 1]);
