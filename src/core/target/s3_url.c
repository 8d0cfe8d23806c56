/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the names of buckets and objects; builds the URLs of requests. */
#include "core/target/s3_url.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include <ctype.h>
#include <string.h>

#define PREFIX_MAX 200 /* of an archive; the rest of a key has its own limits */

static bool bucket_valid(const char *s, size_t len)
{
	if (len < 3 || len > S3_BUCKET_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) &&
			!((s[i] == '-' || s[i] == '.') && i > 0 && i < len - 1 && s[i - 1] != '.'))
			return false;
	return true;
}

bool s3_url_parse(const char *url, struct s3_name *ret, struct err *e)
{
	const char *bucket = url + strlen("s3://");
	size_t len;

	if (!text_starts(url, "s3://"))
		return err_set(e, ERR_INVALID, "'%.200s' is not s3://BUCKET/…", url);
	len = strcspn(bucket, "/");
	if (!bucket_valid(bucket, len))
		return err_set(e, ERR_INVALID,
			"'%.*s' is not the name of a bucket: 3 to 63 small letters, digits, '-' and '.'", len > 80 ? 80 : (int)len,
			bucket);
	if (strlen(bucket + len) > S3_KEY_MAX)
		return err_set(e, ERR_INVALID, "the name of an object has at most %d bytes", S3_KEY_MAX);
	memset(ret->bucket, 0, sizeof(ret->bucket));
	memcpy(ret->bucket, bucket, len);
	ret->key = bucket + len + (bucket[len] == '/');
	return true;
}

bool s3_url_endpoint_check(const char *endpoint, struct err *e)
{
	const char *host = text_starts(endpoint, "https://") ? endpoint + 8
		: text_starts(endpoint, "http://")	     ? endpoint + 7
							     : NULL;

	if (!host || !*host || strpbrk(host, "/?#@ \t"))
		return err_set(e, ERR_INVALID, "'%.200s' is not https://HOST[:PORT] or http://HOST[:PORT]", endpoint);
	return true;
}

bool s3_url_archive_check(const char *url, struct err *e)
{
	struct s3_name name;

	if (!s3_url_parse(url, &name, e))
		return false;
	for (const char *s = name.key; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("._-/", *s))
			return err_set(e, ERR_INVALID, "the prefix of the archive '%.200s' may have letters, digits and ._-/ only", url);
	if (strlen(name.key) > PREFIX_MAX || strstr(name.key, "//") || name.key[0] == '/' || name.key[0] == '.' ||
		strstr(name.key, "/."))
		return err_set(e, ERR_INVALID,
			"the prefix of the archive '%.200s' has an empty part, a part with '.' first, or more than %d bytes", url, PREFIX_MAX);
	return true;
}

bool s3_url_bucket_listed(const char *list, const char *bucket)
{
	for (size_t len; list && *list; list += len) {
		list += strspn(list, ", \t");
		len = strcspn(list, ", \t");
		if (len > 0 && len == strlen(bucket) && strncmp(list, bucket, len) == 0)
			return true;
	}
	return false;
}

bool s3_url_artifact_check(const char *url, const char *buckets, struct err *e)
{
	struct s3_name name;

	if (!url || !text_starts(url, "s3://"))
		return true;
	if (!s3_url_parse(url, &name, e))
		return err_field(e, "artifact", "%s", e->msg);
	return s3_url_bucket_listed(buckets, name.bucket) ||
		err_field(e, "artifact",
			"the bucket '%s' is not listed in s3-artifacts in jobschedd.conf(5); artifacts are fetched with the "
			"credentials of jobsched-net, so an administrator decides which buckets are allowed",
			name.bucket);
}

void s3_url_encode(struct buf *out, const char *text, bool keep_slashes)
{
	for (; *text; text++)
		if (isalnum((unsigned char)*text) || strchr("-._~", *text) || (*text == '/' && keep_slashes))
			buf_char(out, *text);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
}

static bool by_host_name(const struct s3_place *p, const char *bucket)
{
	if (p->addressing == S3_ADDRESSING_AUTO) /* a dot does not match the certificate for *.HOST */
		return !p->endpoint && !strchr(bucket, '.');
	return p->addressing == S3_ADDRESSING_VIRTUAL;
}

char *s3_url_request(const struct s3_place *p, const char *bucket, const char *key, const char *query)
{
	AUTO_TEXT aws = p->endpoint ? NULL : xprintf("https://s3.%s.amazonaws.com", p->region);
	const char *base = p->endpoint ? p->endpoint : aws;
	size_t scheme = (size_t)(strstr(base, "://") + 3 - base);
	AUTO_DONE(buf) url = {};

	buf_add(&url, base, scheme);
	if (by_host_name(p, bucket))
		buf_printf(&url, "%s.%s/", bucket, base + scheme);
	else
		buf_printf(&url, "%s/%s%s", base + scheme, bucket, *key ? "/" : "");
	s3_url_encode(&url, key, true);
	if (query)
		buf_printf(&url, "?%s", query);
	return buf_steal(&url);
}
