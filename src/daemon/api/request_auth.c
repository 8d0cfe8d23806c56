/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticates and authorises a request over TCP, before its route is looked up. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/api/auth/http_guard.h"
#include "daemon/api/auth/jwt_keys.h"
#include "daemon/api/auth/tls_files.h"
#include "daemon/api/auth/token_cache.h"
#include "daemon/api/request_private.h"
#include "daemon/api/route.h"
#include "daemon/api/server_private.h"
#include "store/token_row.h"
#include <stdio.h>
#include <string.h>

const char *request_header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

void request_cookie_name(const struct request *r, char out[COOKIE_NAME_MAX])
{
	if (r->conn->tls)
		snprintf(out, COOKIE_NAME_MAX, "__Host-jobsched");
	else
		snprintf(out, COOKIE_NAME_MAX, "jobsched-%u", r->conn->port);
}

static bool request_is_safe(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

/* ---- credentials ---- */

/* The token of the request with its length; NULL: it has none. */
static const char *find_credentials(struct request *r, size_t *ret_len)
{
	static const char bearer[] = "Bearer ";
	const char *text = request_header(r, MHD_HTTP_HEADER_AUTHORIZATION);
	char name[COOKIE_NAME_MAX];

	if (text) {
		r->has_credentials = true;
		if (strncasecmp(text, bearer, strlen(bearer)) != 0)
			text = "";
		else
			text += strlen(bearer);
	} else {
		request_cookie_name(r, name);
		text = MHD_lookup_connection_value(r->mhd, MHD_COOKIE_KIND, name);
		r->by_cookie = r->has_credentials = text != NULL;
	}
	*ret_len = text ? strlen(text) : 0;
	return text;
}

/* Sessions are for cookies, and tokens are not: a stolen cookie is of no use as a token. */
static bool kind_fits(const struct request *r, const struct token_row *row)
{
	return row->kind == (r->by_cookie ? TOKEN_SESSION : TOKEN_API);
}

static bool set_token_caller(struct request *r, const struct token_row *row, struct err *e)
{
	uint64_t verbs = 0;

	if (row->scope && !access_scope_parse(row->scope, &verbs, e))
		return false;
	r->who = (struct caller){.uid = owner_uid(row->owner),
		.number = row->owner,
		.token = true,
		.role = row->role,
		.everyone = row->everyone,
		.verbs = verbs};
	r->token_owner = row->owner;
	r->token_expires = row->expires_at;
	snprintf(r->token_id, sizeof(r->token_id), "%s", row->id);
	snprintf(r->token_name, sizeof(r->token_name), "%s",
		row->name ? row->name : token_kind_name(row->kind));
	r->user = client_user_get(r->server, r->who.uid);
	r->authenticated = true;
	return true;
}

/* The user is looked up later, see request_identity.c. */
static bool set_jwt_caller(struct request *r, const char *text, struct err *e)
{
	struct jwt_claims claims;
	uint64_t verbs = 0;

	if (!jwt_keys_verify(r->server->tcp->jwt, text, request_now(r), &claims, e) ||
		(claims.scope[0] && !access_scope_parse(claims.scope, &verbs, e)))
		return false;
	r->who = (struct caller){
		.uid = UID_OVERFLOW, .token = true, .role = claims.role, .verbs = verbs};
	r->token_owner = -1;
	r->token_expires = claims.expires_at;
	r->jwt_user = xstrdup(claims.user);
	snprintf(r->token_name, sizeof(r->token_name), "jwt");
	r->authenticated = true;
	return true;
}

static usec_t boot_now(const struct request *r)
{
	return clock_boot(r->context->clock);
}

static bool is_throttled(const struct request *r)
{
	return rate_limit_is_empty(&r->server->tcp->failures, r->conn->address_key, boot_now(r));
}

/* The row of the token of a login or of a request. */
const struct token_row *request_token_find(const struct request *r, const char *text, size_t len)
{
	struct server_tcp *t = r->server->tcp;
	struct token_text parsed;

	return t->tokens && token_text_parse(text, len, &parsed)
		       ? token_cache_find(t->tokens, &parsed, request_now(r))
		       : NULL;
}

bool request_is_valid(const struct request *r)
{
	struct token_cache *tokens = request_tokens(r);

	if (!r->conn->tcp)
		return true;
	if (r->token_expires && r->token_expires <= request_now(r))
		return false;
	return !r->token_id[0] || (tokens && token_cache_has(tokens, r->token_id));
}

static bool authenticate(struct request *r, struct err *e)
{
	struct server_tcp *t = r->server->tcp;
	size_t len = 0;
	const char *text = find_credentials(r, &len);
	const struct token_row *row;

	if (!text)
		return err_set(e, ERR_UNAUTHENTICATED,
			"a token is required: 'Authorization: Bearer TOKEN'; 'jobctl token add NAME' "
			"makes one");
	row = request_token_find(r, text, len);
	if (row && kind_fits(r, row))
		return set_token_caller(r, row, e);
	/* a signature costs more than a hash; a client on loopback shares its address with others */
	if (t->jwt && !r->by_cookie && jwt_keys_is_jwt(text, len) &&
		(r->conn->loopback || !is_throttled(r)))
		return set_jwt_caller(r, text, e);
	if (r->by_cookie)
		return err_set(e, ERR_UNAUTHENTICATED, "the session has ended; log in again");
	return err_set(e, ERR_UNAUTHENTICATED,
		"the token is not valid: it is unknown, was revoked or has expired; "
		"'jobctl token list' shows the valid ones");
}

bool request_login_failed(struct request *r, struct err *e)
{
	if (rate_limit_take(&r->server->tcp->failures, r->conn->address_key, boot_now(r)))
		return false;
	err_set(e, ERR_LIMIT, "too many failed logins from your address; try again in a few seconds");
	return true;
}

/* ---- checks ---- */

/* Headers that decide about a request. A proxy might read another one of them than the daemon. */
static const char *const single_headers[] = {MHD_HTTP_HEADER_HOST, MHD_HTTP_HEADER_AUTHORIZATION,
	MHD_HTTP_HEADER_CONTENT_TYPE, "Origin", "Sec-Fetch-Site"};

struct header_count {
	unsigned seen[ELEMENTS(single_headers)];
};

static enum MHD_Result count_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct header_count *c = arg;

	(void)kind;
	(void)value;
	for (size_t i = 0; i < ELEMENTS(single_headers); i++)
		c->seen[i] += strcasecmp(name, single_headers[i]) == 0;
	return MHD_YES;
}

static bool check_repeated(const struct request *r, struct err *e)
{
	struct header_count c = {};

	MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, count_header, &c);
	for (size_t i = 0; i < ELEMENTS(single_headers); i++)
		if (c.seen[i] > 1)
			return err_set(e, ERR_INVALID, "the request has more than one %s header", single_headers[i]);
	return true;
}

/* With 'tls-client-ca' every connection needs a certificate, besides the token. */
static bool check_certificate(struct request *r, struct err *e)
{
	const union MHD_ConnectionInfo *info;

	if (!r->conn->tls || r->conn->certified || !tls_files_client_ca(r->server->tcp->tls))
		return true;
	info = MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	r->conn->certified = info && tls_files_peer_verified(info->tls_session);
	return r->conn->certified ||
	       err_set(e, ERR_UNAUTHENTICATED,
		       "a client certificate that 'tls-client-ca' has signed is required");
}

static bool check_origin(const struct request *r, const char *method, struct err *e)
{
	if (request_is_safe(method))
		return true;
	return http_guard_origin(&(struct http_guard_origin){.origin = request_header(r, "Origin"),
					 .fetch_site = request_header(r, "Sec-Fetch-Site"),
					 .host = request_header(r, MHD_HTTP_HEADER_HOST),
					 .tls = r->conn->tls,
					 .cookie = r->by_cookie},
		e);
}

static bool check_rate(struct request *r, struct err *e)
{
	struct server_tcp *t = r->server->tcp;
	/* one of a JWT is shared by the address */
	int64_t key = r->token_id[0] ? (int64_t)strtoull(r->token_id, NULL, 16)
				     : r->conn->address_key;

	return rate_limit_take(&t->requests, key, boot_now(r)) ||
	       err_set(e, ERR_LIMIT,
		       "too many requests with this token: the limit is %.0f per second; try again "
		       "in a second",
		       t->requests.per_second);
}

static bool check_type(const struct request *r, struct err *e)
{
	const char *type = request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
	size_t len = type ? strcspn(type, "; \t") : 0;

	return (len == strlen("application/json") &&
		       strncasecmp(type, "application/json", len) == 0) ||
	       err_set(e, ERR_INVALID,
		       "the body must be JSON, with 'Content-Type: application/json'");
}

bool request_auth_begin(struct request *r, const char *method, struct err *e)
{
	if (!r->conn->tcp)
		return true;
	if (r->conn->bad_target.kind != ERR_NONE) {
		*e = r->conn->bad_target;
		r->must_close = true;
		return false;
	}
	if (!check_certificate(r, e) || !check_repeated(r, e) ||
		!http_guard_host(request_header(r, MHD_HTTP_HEADER_HOST), &r->server->tcp->hosts, e))
		return false;
	authenticate(r, &r->auth_err);
	return check_origin(r, method, e) && (!r->authenticated || check_rate(r, e));
}

bool request_auth_admit(struct request *r, const struct route *route, struct err *e)
{
	if (!r->conn->tcp || (route && route->anonymous))
		return true;
	if (!r->authenticated) {
		if (!r->has_credentials || !request_login_failed(r, e))
			*e = r->auth_err;
		return false;
	}
	if (!route || access_token_may(&r->who, route->verb))
		return true;
	return err_set(e, ERR_DENIED, "the token (role '%s') does not permit this: '%s'",
		token_role_name(r->who.role), access_verb_name(route->verb));
}

bool request_auth_body(struct request *r, bool has_body, struct err *e)
{
	if (!r->conn->tcp || !has_body || check_type(r, e))
		return true;
	request_answer_err(r, e);
	r->status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	return false;
}
