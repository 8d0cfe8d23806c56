/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what a request over TCP is checked by before a token is known: target, Host, Origin, Sec-Fetch-Site, and the text
 * of the token itself. The parts of the input are separated by newlines.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/token.h"
#include "daemon/api/access.h"
#include "daemon/api/auth/http_guard.h"
#include "daemon/api/auth/tcp_address.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(bool ok, const struct err *e)
{
	if (ok != (e->kind == ERR_NONE) || (!ok && !e->msg[0]))
		abort();
}

/* An accepted path has no component that another parser reads differently. */
static void fuzz_target(const char *text)
{
	struct err e = {};
	bool ok = http_guard_target(text, &e);
	AUTO_TEXT path = xstrndup(text, strcspn(text, "?#"));

	check_error(ok, &e);
	if (ok && (path[0] != '/' || strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../") ||
			  strpbrk(path, ";\\") || strcasestr(path, "%2f") || strcasestr(path, "%00") || strstr(text, "jst_") || strchr(text, '#')))
		abort();
}

static void fuzz_host(const char *text)
{
	static char *known[] = {(char *)"jobs.example"};
	const struct strv names = {.v = known, .n = 1};
	struct err e = {};
	bool ok = http_guard_host(text, &names, &e);

	check_error(ok, &e);
	if (ok && strcspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") < strlen(text) && text[0] != '[' &&
		strncasecmp(text, "localhost", 9) != 0 && strncasecmp(text, known[0], strlen(known[0])) != 0)
		abort();
}

/* A change with a cookie is accepted only from the own origin. */
static void fuzz_origin(const char *origin, const char *site, const char *host)
{
	struct err e = {};
	bool ok = http_guard_origin(&(struct http_guard_origin){.origin = origin, .fetch_site = site, .host = host, .cookie = true}, &e);
	AUTO_TEXT own = xprintf("http://%s", host ? host : "");

	check_error(ok, &e);
	if (ok && !origin && !site)
		abort();
	if (ok && origin && strcasecmp(origin, own) != 0)
		abort();
	if (ok && site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
		abort();
}

static void fuzz_token(const char *text, size_t len)
{
	struct token_text t = {};
	char again[TOKEN_TEXT_LEN + 1], hash[TOKEN_HASH_LEN + 1];
	struct err e = {};
	uint64_t verbs = 0;

	if (token_text_parse(text, len, &t)) {
		token_text_write(&t, again);
		token_text_hash(&t, hash);
		if (len != TOKEN_TEXT_LEN || memcmp(again, text, len) != 0 || strlen(hash) != TOKEN_HASH_LEN ||
			!token_hash_equal(hash, hash))
			abort();
	} else if (t.id[0] || t.secret[0]) {
		abort();
	}
	check_error(access_scope_parse(text, &verbs, &e), &e);
}

static void fuzz_address(const char *text)
{
	struct sockaddr_storage a;
	socklen_t len = 0;
	char shown[TCP_ADDRESS_TEXT];
	struct err e = {};

	if (!tcp_address_parse(text, &a, &len, &e)) {
		check_error(false, &e);
		return;
	}
	tcp_address_text(&a, shown);
	if (len == 0 || len > sizeof(a) || !shown[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_TEXT text = xstrndup((const char *)data, size);
	char *part[4] = {}, *rest = text;

	for (size_t i = 0; i < ELEMENTS(part) && rest; i++)
		part[i] = strsep(&rest, "\n");
	for (size_t i = 0; i < ELEMENTS(part) && part[i]; i++) {
		fuzz_target(part[i]);
		fuzz_host(part[i]);
		fuzz_token(part[i], strlen(part[i]));
		fuzz_address(part[i]);
	}
	fuzz_origin(part[0], part[1], part[2]);
	fuzz_origin(part[0], NULL, part[2]);
	fuzz_origin(NULL, part[1], part[2]);
	return 0;
}
