/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the URL of a daemon. */
#include "wire/http_url.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_MAX 255

void http_url_done(struct http_url *u)
{
	free(u->host);
	free(u->shown);
	*u = (struct http_url){};
}

static bool bad_url(const char *text, const char *why, struct err *e)
{
	return err_set(e, ERR_INVALID, "'%.200s' is not the URL of a daemon: %s", text, why);
}

static bool is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || text_starts(host, "127.");
}

static bool host_valid(const char *host, bool brackets)
{
	size_t len = strlen(host);

	return len > 0 && len <= HOST_MAX && host[0] != '-' &&
	       strspn(host, brackets ? "0123456789abcdefABCDEF:."
				     : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_") ==
		       len;
}

bool http_url_parse(const char *text, struct http_url *ret, struct err *e)
{
	bool tls = text_starts(text, "https://"), brackets;
	const char *at = text + (tls ? 8 : 7), *end;
	AUTO_TEXT host = NULL;
	int64_t port = tls ? 443 : 80;

	if (!tls && !text_starts(text, "http://"))
		return bad_url(text, "it must begin with https://", e);
	brackets = *at == '[';
	end = brackets ? strchr(at, ']') : at + strcspn(at, ":/");
	if (!end)
		return bad_url(text, "a ']' is missing", e);
	host = brackets ? xstrndup(at + 1, (size_t)(end - at - 1)) : xstrndup(at, (size_t)(end - at));
	end += brackets;
	if (!host_valid(host, brackets))
		return bad_url(text, "the host is not valid", e);
	if (*end == ':') {
		size_t len = strcspn(++end, "/");
		AUTO_TEXT digits = xstrndup(end, len);

		if (!text_parse_int(digits, 1, 65535, &port))
			return bad_url(text, "the port is not valid", e);
		end += len;
	}
	if (*end && strcmp(end, "/") != 0)
		return bad_url(text, "it has a path; give only https://HOST:PORT", e);
	if (!tls && !is_loopback(host))
		return bad_url(text, "without TLS the token could be read on the way; use https://", e);
	*ret = (struct http_url){.tls = tls, .host = STEAL(host)};
	snprintf(ret->port, sizeof(ret->port), "%u", (unsigned)port);
	ret->shown = xprintf(brackets ? "[%s]:%s" : "%s:%s", ret->host, ret->port);
	return true;
}
