/* SPDX-License-Identifier: Apache-2.0 */
/* Converts single values to JSON, JSON to text. */
#include "wire/json_value.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include <string.h>

json_t *json_value_text(const char *s)
{
	AUTO_DONE(buf) b = {};

	if (!s)
		return json_null();
	if (text_utf8_valid(s, strlen(s)))
		return json_string(s);
	text_escape(&b, s, strlen(s));
	return json_string(b.data);
}

json_t *json_value_time(int64_t t)
{
	char text[RFC3339_MAX];

	return t == 0 ? json_null() : json_string(rfc3339_format(t, text));
}

json_t *json_value_seconds(int64_t d)
{
	return d % USEC_SEC == 0 ? json_integer(d / USEC_SEC) : json_real((double)d / USEC_SEC);
}

static int write_piece(const char *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
	return 0;
}

void json_value_write(const json_t *j, struct buf *out)
{
	/* 15 digits are exact for durations in microseconds, and write 0.1 as 0.1 */
	json_dump_callback(j, write_piece, out,
		JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}
