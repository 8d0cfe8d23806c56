/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that serve the page for browsers. They need no login and contain no data of users. */
#include "base/text.h"
#include "daemon/api/request.h"
#include "daemon/api/routes/routes.h"
#include "base/err.h"
#include "web/assets.h"
#include <string.h>

/* The page loads nothing from elsewhere, has no inline code, and is not shown in a frame. */
#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct asset *find_asset(const char *name)
{
	for (size_t i = 0; i < assets_count; i++)
		if (strcmp(assets[i].name, name) == 0)
			return &assets[i];
	return NULL;
}

/* Whether a comma-separated header has the word, as 'gzip' in 'gzip, deflate;q=0.5'. */
static bool header_has(const char *header, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = header; at && (at = strstr(at, word)); at += len) {
		const char *after = at + len + strspn(at + len, " ");

		if ((at == header || at[-1] == ' ' || at[-1] == ',') &&
			(*after == '\0' || *after == ',' || *after == ';'))
			return strncmp(after, ";q=0", 4) != 0 || (after[4] == '.' && after[5] > '0');
	}
	return false;
}

/* The name of a file does not change with its content, so browsers ask again each time. */
static void answer_asset(struct request *r, const struct asset *a)
{
	bool packed = header_has(request_header(r, "Accept-Encoding"), "gzip");
	const struct stream_header headers[] = {
		{"ETag", a->etag},
		{"Cache-Control", "no-cache"},
		{"Vary", "Accept-Encoding"},
		{"Content-Security-Policy", POLICY},
		{"Content-Encoding", "gzip"},
	};
	size_t n = ELEMENTS(headers);

	if (header_has(request_header(r, "If-None-Match"), a->etag))
		request_answer_bytes(r, 304, a->type, "", 0, headers, n - 1);
	else if (packed)
		request_answer_bytes(r, 200, a->type, a->packed, a->packed_len, headers, n);
	else
		request_answer_bytes(r, 200, a->type, a->plain, a->plain_len, headers, n - 1);
}

void route_page(struct request *r)
{
	const struct asset *a = find_asset(r->params[0] ? r->params[0] : "index.html");
	struct err e = {};

	if (a) {
		answer_asset(r, a);
		return;
	}
	err_set(&e, ERR_NOT_FOUND, "the page has no file '%.60s'; it begins at '/'", r->params[0]);
	request_answer_err(r, &e);
}
