/* SPDX-License-Identifier: Apache-2.0 */
/* JSON web tokens, verified with configured keys. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include "core/job/token.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct jwt_keys;

struct jwt_keys_options {
	const char *file;      /* a JWKS, a PEM public key, or the bytes of a secret for HS256 */
	const char *audience;  /* required value of 'aud' */
	const char *issuer;    /* required value of 'iss'; NULL: not checked */
};
bool jwt_keys_new(const struct jwt_keys_options *o, struct jwt_keys **ret, struct err *e);
void jwt_keys_free(struct jwt_keys *k);
AUTO_DEFINE(jwt_keys);

#define JWT_TEXT_MAX 8192

/* The claims of a valid token. */
struct jwt_claims {
	char user[64];           /* 'sub': a user of this system */
	enum token_role role;    /* 'jobsched_role', viewer by default */
	char scope[200];         /* 'jobsched_scope'; empty: all verbs of the role */
	usec_t expires_at;
};
/* ERR_UNAUTHENTICATED names the claim or the reason. The file is read again when it changes. */
bool jwt_keys_verify(struct jwt_keys *k, const char *text, usec_t now, struct jwt_claims *ret,
	struct err *e);
bool jwt_keys_is_jwt(const char *text, size_t len); /* has the form of one: two dots */
