/* SPDX-License-Identifier: Apache-2.0 */
/* Signs webhooks with HMAC-SHA256. The key is read for each webhook, so that it can be replaced at any time. */
#include "daemon/notify/webhook_sign.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/sha256.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define KEY_MIN 16
#define KEY_MAX 4096

static bool read_webhook_key(const char *path, struct buf *ret, struct err *e)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, errno, "could not open the webhook key '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_mode & 077 || (st.st_uid != geteuid() && st.st_uid != 0))
		return err_set(e, ERR_DENIED, "the webhook key '%s' must be a regular file that only its owner can read; "
			"run 'chmod 600' on it", path);
	r = io_read_all(fd, ret, KEY_MAX);
	if (r < 0)
		return err_errno(e, -r, "could not read the webhook key '%s'", path);
	while (ret->len > 0 && ret->data[ret->len - 1] == '\n')
		ret->len--;
	if (ret->len < KEY_MIN)
		return err_set(e, ERR_INVALID, "the webhook key '%s' has fewer than %d bytes", path, KEY_MIN);
	return true;
}

bool webhook_sign(const char *key_file, int64_t timestamp, const struct buf *body, struct strv *headers, struct err *e)
{
	AUTO_DONE(buf) key = {};
	AUTO_TEXT before = xprintf("%" PRId64 ".", timestamp);
	unsigned char mac[SHA256_LEN];
	char hex[SHA256_HEX];
	bool ok = read_webhook_key(key_file, &key, e);

	if (ok) {
		sha256_hmac(key.data, key.len, (struct sha256_part[]){{before, strlen(before)}, {body->data, body->len}}, 2, mac);
		strv_take(headers, xprintf("Jobsched-Timestamp: %" PRId64, timestamp));
		strv_take(headers, xprintf("Jobsched-Signature: sha256=%s", sha256_hex(mac, hex)));
	}
	if (key.data)
		explicit_bzero(key.data, key.cap);
	return ok;
}
