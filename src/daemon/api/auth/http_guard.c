/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses targets, hosts and origins that a client of this server does not send. */
#include "daemon/api/auth/http_guard.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <arpa/inet.h>
#include <string.h>

/* ---- target ---- */

/* Encoded characters that change how a path is split or decoded. */
static const char *const refused_escapes[] = {"%00", "%25", "%2e", "%2f", "%3b", "%5c"};

static bool path_has_escape(const char *path, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++)
		for (size_t n = 0; path[i] == '%' && n < ELEMENTS(refused_escapes); n++)
			if (strncasecmp(path + i, refused_escapes[n], 3) == 0)
				return true;
	return false;
}

/* "//", "/./" and "/../"; a path that ends with "/" is refused by the route table. */
static bool path_has_odd_component(const char *path, size_t len)
{
	const char *end = path + len;

	for (const char *p = path; p < end;) {
		const char *next = memchr(p + 1, '/', (size_t)(end - p - 1));
		size_t n = (size_t)((next ? next : end) - p - 1);

		if ((n == 0 && next) || (n == 1 && p[1] == '.') ||
			(n == 2 && p[1] == '.' && p[2] == '.'))
			return true;
		p = next ? next : end;
	}
	return false;
}

static bool path_is_plain(const char *path, size_t len)
{
	return len > 0 && path[0] == '/' && !memchr(path, ';', len) && !memchr(path, '\\', len) &&
	       !path_has_escape(path, len) && !path_has_odd_component(path, len);
}

static bool query_has_token(const char *query)
{
	static const char *const names[] = {"token", "access_token", "authorization", "api_key"};

	while (*query) {
		size_t len = strcspn(query, "=&");

		for (size_t i = 0; i < ELEMENTS(names); i++)
			if (strlen(names[i]) == len && strncasecmp(query, names[i], len) == 0)
				return true;
		if (memmem(query, strcspn(query, "&"), "jst_", 4))
			return true;
		query += strcspn(query, "&");
		query += *query == '&';
	}
	return false;
}

bool http_guard_target(const char *target, struct err *e)
{
	size_t len = strcspn(target, "?");

	/* a fragment belongs to the browser and is never part of a request */
	if (strchr(target, '#') || !path_is_plain(target, len))
		return err_set(e, ERR_INVALID,
			"the path of the request is not in its normal form: empty or dot components, "
			"';', '\\', '#' and encoded separators are not allowed");
	if (memmem(target, len, "jst_", 4) || (target[len] == '?' && query_has_token(target + len + 1)))
		return err_set(e, ERR_INVALID,
			"a token must not be part of a URL, which is logged in many places; send it as "
			"'Authorization: Bearer TOKEN', and replace this token with 'jobctl token revoke'");
	return true;
}

/* ---- host ---- */

/* The length of the name or address without the port; 0: not valid. */
static size_t host_name_len(const char *host)
{
	const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
	size_t len = end ? (size_t)(end + 1 - host) : strcspn(host, ":");
	int64_t port;

	if (host[0] == '[' && !end)
		return 0;
	if (host[len] && (host[len] != ':' || !text_parse_int(host + len + 1, 1, 65535, &port)))
		return 0;
	return len;
}

static bool is_address(const char *name)
{
	unsigned char room[sizeof(struct in6_addr)];
	size_t len = strlen(name);
	AUTO_TEXT bare = name[0] == '[' && len > 2 ? xstrndup(name + 1, len - 2) : NULL;

	return bare ? inet_pton(AF_INET6, bare, room) == 1 : inet_pton(AF_INET, name, room) == 1;
}

bool http_guard_host(const char *host, const struct strv *names, struct err *e)
{
	size_t len = host ? host_name_len(host) : 0;
	AUTO_TEXT name = len ? xstrndup(host, len) : NULL;

	if (!name)
		return err_set(e, ERR_INVALID, "the request has no valid Host header");
	if (is_address(name) || strcasecmp(name, "localhost") == 0)
		return true;
	for (size_t i = 0; i < names->n; i++)
		if (strcasecmp(names->v[i], name) == 0)
			return true;
	return err_set(e, ERR_DENIED,
		"'%.100s' is not a name of this server; add it to 'hosts' in jobschedd.conf(5)", name);
}

/* ---- origin ---- */

static bool is_own_origin(const struct http_guard_origin *o)
{
	AUTO_TEXT own = xprintf("%s://%s", o->tls ? "https" : "http", o->host ? o->host : "");

	return strcasecmp(o->origin, own) == 0;
}

bool http_guard_origin(const struct http_guard_origin *o, struct err *e)
{
	bool site_known = o->fetch_site != NULL;
	bool same_site = site_known && (strcmp(o->fetch_site, "same-origin") == 0 ||
					       strcmp(o->fetch_site, "none") == 0);

	if (site_known && !same_site)
		return err_set(e, ERR_DENIED, "requests from other sites are refused");
	if (o->origin && !is_own_origin(o))
		return err_set(e, ERR_DENIED, "requests from the origin '%.100s' are refused",
			o->origin);
	if (o->cookie && !site_known && !o->origin)
		return err_set(e, ERR_DENIED,
			"a change with a session cookie needs an Origin or Sec-Fetch-Site header");
	return true;
}
