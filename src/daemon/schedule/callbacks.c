/* SPDX-License-Identifier: Apache-2.0 */
/* Signs run and fence with a key of this node. */
#include "daemon/schedule/callbacks.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define KEY_LEN 32

struct callbacks {
	char *url; /* owned, without a slash at the end */
	unsigned char key[KEY_LEN];
};

static bool key_read(struct callbacks *c, const char *path, struct err *e)
{
	AUTO_DONE(buf) text = {};
	int r = io_read_file(path, &text, KEY_LEN);

	if (r == -ENOENT) {
		io_random(c->key, sizeof(c->key));
		r = io_write_file(path, c->key, sizeof(c->key), 0600);
		return r >= 0 || err_errno(e, -r, "could not write '%s'", path);
	}
	if (r < 0)
		return err_errno(e, -r, "could not read '%s'", path);
	if (text.len != KEY_LEN)
		return err_set(e, ERR_INVALID, "'%s' is not a key of %d bytes; remove it to get a new one", path, KEY_LEN);
	memcpy(c->key, text.data, KEY_LEN);
	explicit_bzero(text.data, text.len);
	return true;
}

bool callbacks_new(const char *url, const char *state_dir, struct callbacks **ret, struct err *e)
{
	AUTO(callbacks) *c = xcalloc(1, sizeof(*c));
	AUTO_TEXT path = xprintf("%s/callback.key", state_dir);
	size_t len = strlen(url);

	while (len > 0 && url[len - 1] == '/')
		len--;
	c->url = xstrndup(url, len);
	if (!key_read(c, path, e))
		return false;
	*ret = STEAL(c);
	return true;
}

void callbacks_free(struct callbacks *c)
{
	if (!c)
		return;
	explicit_bzero(c->key, sizeof(c->key));
	free(c->url);
	free(c);
}

static char *token_of(const struct callbacks *c, int64_t run, int64_t fence)
{
	AUTO_TEXT subject = xprintf("%" PRId64 "-%" PRId64, run, fence);
	unsigned char mac[SHA256_LEN];
	char hex[SHA256_HEX];

	sha256_hmac(c->key, sizeof(c->key), &(struct sha256_part){subject, strlen(subject)}, 1, mac);
	return xprintf("%s-%s", subject, sha256_hex(mac, hex));
}

char *callbacks_url(const struct callbacks *c, int64_t run, int64_t fence)
{
	AUTO_TEXT token = token_of(c, run, fence);

	return xprintf("%s/v1/callbacks/%s", c->url, token);
}

/* Takes the same time wherever the texts differ. */
static bool token_equal(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned char differ = 0;

	if (strlen(b) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return differ == 0;
}

bool callbacks_parse(const struct callbacks *c, const char *text, int64_t *ret_run, int64_t *ret_fence)
{
	size_t run = strcspn(text, "-"), fence = text[run] ? strcspn(text + run + 1, "-") : 0;
	AUTO_TEXT first = xstrndup(text, run);
	AUTO_TEXT second = text[run] ? xstrndup(text + run + 1, fence) : NULL;
	AUTO_TEXT token = NULL;

	if (!second || !text_parse_int(first, 1, INT64_MAX, ret_run) || !text_parse_int(second, 0, INT64_MAX, ret_fence))
		return false;
	token = token_of(c, *ret_run, *ret_fence);
	return token_equal(token, text);
}
