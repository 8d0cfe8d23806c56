/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the requests and replies of jobsched-crontab. */
#include "spool/request.h"

#include "base/auto.h"
#include "base/text.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "crontab/1"

static const char *const operations[SPOOL_OPERATION_MAX] = {
	[SPOOL_ACCESS] = "access",
	[SPOOL_LIST] = "list",
	[SPOOL_REPLACE] = "replace",
	[SPOOL_REMOVE] = "remove",
	[SPOOL_AT_ACCESS] = "at-access",
};
static const char *const statuses[SPOOL_STATUS_MAX] = {
	[SPOOL_OK] = "ok",
	[SPOOL_NO_TABLE] = "no-table",
	[SPOOL_NOT_ALLOWED] = "not-allowed",
	[SPOOL_NOT_PRIVILEGED] = "not-privileged",
	[SPOOL_UNKNOWN_USER] = "unknown-user",
	[SPOOL_NO_ACCOUNT] = "no-account",
	[SPOOL_INVALID] = "invalid",
	[SPOOL_BUSY] = "busy",
	[SPOOL_FAILED] = "failed",
};

/* Copies up to the character and moves behind it. False: the character is missing or the text too long. */
static bool take_until(const char **data, size_t *len, char end, char *out, size_t max)
{
	const char *at = memchr(*data, end, *len);
	size_t n = at ? (size_t)(at - *data) : 0;

	if (!at || n > max || memchr(*data, '\0', n))
		return false;
	memcpy(out, *data, n);
	out[n] = '\0';
	*data += n + 1;
	*len -= n + 1;
	return true;
}

/* "crontab/1 WORD LENGTH\n" */
static bool read_head(const char **data, size_t *len, const char *const *words, size_t n_words,
	size_t *ret_word, int64_t *ret_len)
{
	char magic[16], word[32], length[16];

	if (!take_until(data, len, ' ', magic, sizeof(magic) - 1) || strcmp(magic, MAGIC) != 0 ||
		!take_until(data, len, ' ', word, sizeof(word) - 1) ||
		!take_until(data, len, '\n', length, sizeof(length) - 1) ||
		!text_parse_int(length, 0, SPOOL_TABLE_MAX, ret_len))
		return false;
	for (*ret_word = 0; *ret_word < n_words; ++*ret_word)
		if (strcmp(word, words[*ret_word]) == 0)
			return true;
	return false;
}

void spool_request_write(const struct spool_request *r, struct buf *out)
{
	buf_printf(out, MAGIC " %s %zu\n%s\n%s\n", operations[r->operation], r->len, r->user,
		r->label);
	buf_add(out, r->body, r->len);
}

bool spool_request_read(const char *data, size_t len, struct spool_request *ret)
{
	size_t word;
	int64_t body;

	if (!read_head(&data, &len, operations, SPOOL_OPERATION_MAX, &word, &body) ||
		!take_until(&data, &len, '\n', ret->user, SPOOL_USER_MAX) ||
		!take_until(&data, &len, '\n', ret->label, SPOOL_LABEL_MAX) || len != (size_t)body)
		return false;
	ret->operation = (enum spool_operation)word;
	ret->body = data;
	ret->len = len;
	return true;
}

void spool_reply_done(struct spool_reply *r)
{
	buf_done(&r->body);
}

void spool_reply_write(const struct spool_reply *r, struct buf *out)
{
	buf_printf(out, MAGIC " %s %zu\n", statuses[r->status], r->body.len);
	buf_add(out, r->body.data, r->body.len);
}

bool spool_reply_read(const char *data, size_t len, struct spool_reply *ret)
{
	size_t word;
	int64_t body;

	if (!read_head(&data, &len, statuses, SPOOL_STATUS_MAX, &word, &body) ||
		len != (size_t)body)
		return false;
	ret->status = (enum spool_status)word;
	buf_clear(&ret->body);
	buf_add(&ret->body, data, len);
	return true;
}

void spool_reply_fail(struct spool_reply *r, const char *fmt, ...)
{
	AUTO_TEXT text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvprintf(fmt, ap);
	va_end(ap);
	r->status = SPOOL_FAILED;
	buf_clear(&r->body);
	buf_str(&r->body, text);
}
