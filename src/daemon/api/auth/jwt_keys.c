/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies JSON web tokens with librhonabwy. */
#include "daemon/api/auth/jwt_keys.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include <jansson.h>
#include <rhonabwy.h>
#include <string.h>
#include <sys/stat.h>

#define KEYS_MAX 100
#define FILE_MAX_BYTES (256 * 1024)
#define SECRET_MIN 32 /* bytes */

struct jwt_keys {
	char *file, *audience, *issuer; /* owned; NULL issuer: not checked */
	jwks_t *keys;                   /* owned */
	struct stat seen;
};

/* An algorithm is used only with keys of its type; others, and 'none', are refused. */
static const struct {
	jwa_alg alg;
	int type;
} algorithms[] = {
	{R_JWA_ALG_HS256, R_KEY_TYPE_SYMMETRIC},
	{R_JWA_ALG_RS256, R_KEY_TYPE_RSA},
	{R_JWA_ALG_ES256, R_KEY_TYPE_EC},
	{R_JWA_ALG_EDDSA, R_KEY_TYPE_EDDSA},
};

void jwt_keys_free(struct jwt_keys *k)
{
	if (!k)
		return;
	if (k->keys)
		r_jwks_free(k->keys);
	free(k->file);
	free(k->audience);
	free(k->issuer);
	free(k);
}

/* ---- keys ---- */

static bool add_key(jwks_t *keys, jwk_t *key, bool imported)
{
	bool ok = imported && r_jwks_append_jwk(keys, key) == RHN_OK;

	r_jwk_free(key);
	return ok;
}

static bool import_keys(jwks_t *keys, const struct buf *text)
{
	jwk_t *key = NULL;
	size_t len = text->len;

	if (text_starts(text->data, "{"))
		return strstr(text->data, "\"keys\"")
			       ? r_jwks_import_from_json_str(keys, text->data) == RHN_OK
			       : r_jwk_init(&key) == RHN_OK &&
					 add_key(keys, key,
						 r_jwk_import_from_json_str(key, text->data) == RHN_OK);
	if (r_jwk_init(&key) != RHN_OK)
		return false;
	if (text_starts(text->data, "-----BEGIN"))
		return add_key(keys, key,
			r_jwk_import_from_pem_der(key, R_X509_TYPE_PUBKEY, R_FORMAT_PEM,
				(unsigned char *)text->data, text->len) == RHN_OK);
	while (len > 0 && (text->data[len - 1] == '\n' || text->data[len - 1] == '\r'))
		len--;
	return add_key(keys, key,
		len >= SECRET_MIN && r_jwk_import_from_symmetric_key(key,
					     (unsigned char *)text->data, len) == RHN_OK);
}

static bool read_keys(struct jwt_keys *k, struct err *e)
{
	AUTO_DONE(buf) text = {};
	jwks_t *keys = NULL;
	int r = io_read_file(k->file, &text, FILE_MAX_BYTES);

	if (r < 0)
		return err_set(e, ERR_INVALID, "could not read '%s' ('jwt-key-file'): %s", k->file,
			strerror(-r));
	if (text.len == 0 || r_jwks_init(&keys) != RHN_OK || !import_keys(keys, &text) ||
		r_jwks_size(keys) == 0 || r_jwks_size(keys) > KEYS_MAX) {
		if (keys)
			r_jwks_free(keys);
		return err_set(e, ERR_INVALID,
			"'%s' ('jwt-key-file') has no key that can be used: a JWKS, a PEM public key, or "
			"a secret of at least %d bytes is required",
			k->file, SECRET_MIN);
	}
	if (k->keys)
		r_jwks_free(k->keys);
	k->keys = keys;
	return true;
}

bool jwt_keys_new(const struct jwt_keys_options *o, struct jwt_keys **ret, struct err *e)
{
	AUTO(jwt_keys) *k = xcalloc(1, sizeof(*k));

	if (!o->audience)
		return err_set(e, ERR_INVALID,
			"'jwt-key-file' is set without 'jwt-audience'; tokens for other services "
			"would be accepted");
	k->file = xstrdup(o->file);
	k->audience = xstrdup(o->audience);
	k->issuer = xstrdup(o->issuer);
	(void)stat(k->file, &k->seen);
	if (!read_keys(k, e))
		return false;
	*ret = STEAL(k);
	return true;
}

static void refresh_keys(struct jwt_keys *k)
{
	struct stat now = {};
	struct err e = {};

	if (stat(k->file, &now) < 0 ||
		(now.st_ino == k->seen.st_ino && now.st_size == k->seen.st_size &&
			now.st_mtim.tv_sec == k->seen.st_mtim.tv_sec &&
			now.st_mtim.tv_nsec == k->seen.st_mtim.tv_nsec))
		return;
	k->seen = now;
	if (read_keys(k, &e))
		log_info("the keys in '%s' were read again", k->file);
	else
		log_warning("the previous keys stay in use: %s", e.msg);
}

/* ---- signature ---- */

bool jwt_keys_is_jwt(const char *text, size_t len)
{
	size_t dots = 0;

	for (size_t i = 0; i < len; i++)
		dots += text[i] == '.';
	return dots == 2 && len <= JWT_TEXT_MAX;
}

static bool key_fits(jwk_t *key, jwa_alg alg, const char *kid)
{
	const char *own = r_jwk_get_property_str(key, "kid");
	int type = r_jwk_key_type(key, NULL, 0);

	if (kid && own && strcmp(kid, own) != 0)
		return false;
	for (size_t i = 0; i < ELEMENTS(algorithms); i++)
		if (algorithms[i].alg == alg)
			return (type & algorithms[i].type) != 0;
	return false;
}

static bool signature_valid(struct jwt_keys *k, jwt_t *jwt)
{
	jwa_alg alg = r_jwt_get_sign_alg(jwt);
	const char *kid = r_jwt_get_header_str_value(jwt, "kid");
	bool valid = false;

	for (size_t i = 0; i < r_jwks_size(k->keys) && !valid; i++) {
		jwk_t *key = r_jwks_get_at(k->keys, i);

		valid = key && key_fits(key, alg, kid) && r_jwt_verify_signature(jwt, key, 0) == RHN_OK;
		r_jwk_free(key);
	}
	return valid;
}

/* ---- claims ---- */

static bool bad_claim(struct err *e, const char *why)
{
	return err_set(e, ERR_UNAUTHENTICATED, "the JSON web token is not valid: %s", why);
}

static bool has_audience(const json_t *aud, const char *wanted)
{
	size_t i;
	json_t *one;

	if (json_is_string(aud))
		return strcmp(json_string_value(aud), wanted) == 0;
	json_array_foreach(aud, i, one)
		if (json_is_string(one) && strcmp(json_string_value(one), wanted) == 0)
			return true;
	return false;
}

/* A text claim of limited length. False: it is too long or not a text. */
static bool text_claim(const json_t *claims, const char *name, char *out, size_t size)
{
	const json_t *v = json_object_get(claims, name);

	out[0] = '\0';
	if (!v)
		return true;
	if (!json_is_string(v) || json_string_length(v) >= size ||
		strlen(json_string_value(v)) != json_string_length(v))
		return false;
	memcpy(out, json_string_value(v), json_string_length(v) + 1);
	return true;
}

static bool check_times(const json_t *claims, usec_t now, struct jwt_claims *ret, struct err *e)
{
	const json_t *exp = json_object_get(claims, "exp"), *nbf = json_object_get(claims, "nbf");
	json_int_t at = json_integer_value(exp);

	if (!json_is_integer(exp) || at <= 0 || at > INT64_MAX / USEC_SEC)
		return bad_claim(e, "it has no expiry ('exp')");
	ret->expires_at = at * USEC_SEC;
	if (ret->expires_at <= now)
		return bad_claim(e, "it has expired");
	if (nbf && (!json_is_integer(nbf) || json_integer_value(nbf) > now / USEC_SEC + 60))
		return bad_claim(e, "it is not valid yet ('nbf')");
	return true;
}

static bool read_claims(const struct jwt_keys *k, const json_t *claims, usec_t now,
	struct jwt_claims *ret, struct err *e)
{
	const char *issuer = json_string_value(json_object_get(claims, "iss"));
	char role[20];

	*ret = (struct jwt_claims){.role = TOKEN_VIEWER};
	if (!check_times(claims, now, ret, e))
		return false;
	if (!has_audience(json_object_get(claims, "aud"), k->audience))
		return bad_claim(e, "it is for another audience ('aud')");
	if (k->issuer && !text_equal(k->issuer, issuer))
		return bad_claim(e, "it has another issuer ('iss')");
	if (!text_claim(claims, "sub", ret->user, sizeof(ret->user)) || !ret->user[0])
		return bad_claim(e, "its subject ('sub') is not a user name");
	if (!text_claim(claims, "jobsched_role", role, sizeof(role)) ||
		(role[0] && !token_role_parse(role, &ret->role)))
		return bad_claim(e, "'jobsched_role' is not viewer, operator or admin");
	if (!text_claim(claims, "jobsched_scope", ret->scope, sizeof(ret->scope)))
		return bad_claim(e, "'jobsched_scope' is not a list of verbs");
	return true;
}

bool jwt_keys_verify(struct jwt_keys *k, const char *text, usec_t now, struct jwt_claims *ret,
	struct err *e)
{
	jwt_t *jwt = NULL;
	json_t *claims = NULL;
	bool ok;

	refresh_keys(k);
	if (strlen(text) > JWT_TEXT_MAX || r_jwt_init(&jwt) != RHN_OK)
		return bad_claim(e, "it is too long");
	/* no key and no address in the token is used */
	if (r_jwt_advanced_parse(jwt, text, R_PARSE_NONE, 0) != RHN_OK)
		ok = bad_claim(e, "it cannot be parsed");
	else if (r_jwt_get_type(jwt) != R_JWT_TYPE_SIGN || !signature_valid(k, jwt))
		ok = bad_claim(e, "no configured key verifies its signature");
	else {
		claims = r_jwt_get_full_claims_json_t(jwt);
		ok = read_claims(k, claims, now, ret, e);
	}
	json_decref(claims);
	r_jwt_free(jwt);
	return ok;
}
