/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes requests to S3-compatible storage and their results as texts. */
#include "net/s3_payload.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_VERB, TEXT_URL, TEXT_REGION, TEXT_SHA256, TEXT_FROM, TEXT_LENGTH, TEXT_PARTS, TEXT_MAX };
enum { RESULT_STATUS, RESULT_MESSAGE, RESULT_TOTAL, RESULT_MORE, RESULT_MAX };

int s3_payload_memfd(const struct s3_payload *p, const void *body, size_t len, struct err *e)
{
	AUTO_TEXT verb = xprintf("%d", (int)p->verb);
	AUTO_TEXT from = xprintf("%" PRId64, p->from);
	AUTO_TEXT length = xprintf("%" PRId64, p->length);
	AUTO_DONE(buf) parts = {};
	const char *texts[TEXT_MAX];

	buf_str(&parts, "");
	for (size_t i = 0; i < p->parts_n; i++)
		buf_printf(&parts, "%s%" PRId64 ":%" PRId64, i ? "," : "", p->parts[i].offset, p->parts[i].length);
	texts[TEXT_VERB] = verb;
	texts[TEXT_URL] = p->url;
	texts[TEXT_REGION] = p->region;
	texts[TEXT_SHA256] = p->sha256 ? p->sha256 : "";
	texts[TEXT_FROM] = from;
	texts[TEXT_LENGTH] = length;
	texts[TEXT_PARTS] = parts.len ? parts.data : "";
	return net_payload_memfd(texts, TEXT_MAX, body, len, e);
}

static bool parts_parse(const char *text, struct s3_payload *p)
{
	int64_t sum = 0;

	while (*text) {
		struct s3_part *part = &p->parts[p->parts_n];
		int n = 0;

		if (p->parts_n == S3_PARTS_MAX ||
			sscanf(text, "%19" SCNd64 ":%19" SCNd64 "%n", &part->offset, &part->length, &n) != 2 ||
			part->offset < 0 || part->length <= 0 || part->offset > INT64_MAX - part->length ||
			part->length > S3_OBJECT_MAX - sum)
			return false;
		sum += part->length;
		p->parts_n++;
		text += n;
		if (*text && *text++ != ',')
			return false;
	}
	return true;
}

bool s3_payload_parse(const struct net_payload *from, struct s3_payload *ret, struct err *e)
{
	struct s3_payload p = {};
	int64_t verb;

	if (from->n != TEXT_MAX || !text_parse_int(from->texts[TEXT_VERB], 0, S3_VERB_MAX - 1, &verb) ||
		!text_parse_int(from->texts[TEXT_FROM], 0, INT64_MAX / 2, &p.from) ||
		!text_parse_int(from->texts[TEXT_LENGTH], 0, S3_BODY_MAX, &p.length) ||
		!parts_parse(from->texts[TEXT_PARTS], &p))
		return err_set(e, ERR_INVALID, "the payload of a storage request is not valid");
	p.verb = (enum s3_verb)verb;
	p.url = from->texts[TEXT_URL];
	p.region = from->texts[TEXT_REGION];
	p.sha256 = from->texts[TEXT_SHA256];
	*ret = p;
	return true;
}

int s3_result_memfd(const struct s3_result *r, struct err *e)
{
	AUTO_TEXT status = xprintf("%" PRId64, r->status);
	AUTO_TEXT total = xprintf("%" PRId64, r->total);
	const char *texts[RESULT_MAX] = {[RESULT_STATUS] = status, [RESULT_MESSAGE] = r->message, [RESULT_TOTAL] = total,
		[RESULT_MORE] = r->more ? "1" : "0"};

	return net_payload_memfd(texts, RESULT_MAX, r->body, r->body_len, e);
}

bool s3_result_parse(const struct net_payload *from, struct s3_result *ret, struct err *e)
{
	struct s3_result r = {.body = from->body, .body_len = from->body_len};

	if (from->n != RESULT_MAX || !text_parse_int(from->texts[RESULT_STATUS], 0, 999, &r.status) ||
		!text_parse_int(from->texts[RESULT_TOTAL], -1, INT64_MAX, &r.total))
		return err_set(e, ERR_INVALID, "the result of a storage request is not valid");
	r.message = from->texts[RESULT_MESSAGE];
	r.more = strcmp(from->texts[RESULT_MORE], "1") == 0;
	*ret = r;
	return true;
}
