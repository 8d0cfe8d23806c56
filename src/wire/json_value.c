/* SPDX-License-Identifier: Apache-2.0 */
/* Converts single values to JSON, JSON to text. */
#include "wire/json_value.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include <stdlib.h>
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

/* ---- text ---- */

/*
 * Jansson would take 20 us for the answer to a submission: it calls a function for each piece and prints numbers with
 * printf(). The text is the same.
 */

void json_value_write_text(struct buf *out, const char *s, size_t len)
{
	static const char letters[' '] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
	static const char hex[] = "0123456789ABCDEF";
	const char *end = s + len;

	buf_char(out, '"');
	for (;;) {
		const char *from = s;
		unsigned char c;

		while (s < end && (unsigned char)*s >= ' ' && *s != '"' && *s != '\\')
			s++;
		buf_add(out, from, (size_t)(s - from));
		if (s == end)
			break;
		c = (unsigned char)*s++;
		if (c >= ' ' || letters[c])
			buf_add(out, (const char[]){'\\', c >= ' ' ? (char)c : letters[c]}, 2);
		else
			buf_add(out, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
	}
	buf_char(out, '"');
}

static int write_piece(const char *data, size_t len, void *arg)
{
	buf_add(arg, data, len);
	return 0;
}

struct member {
	const char *key;
	const json_t *value;
};

static int member_compare(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static void array_write(const json_t *j, struct buf *out)
{
	size_t n = json_array_size(j);

	buf_char(out, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_char(out, ',');
		json_value_write(json_array_get(j, i), out);
	}
	buf_char(out, ']');
}

static void object_write(const json_t *j, struct buf *out)
{
	size_t n = json_object_size(j), i = 0;
	struct member *v = n ? xcalloc(n, sizeof(*v)) : NULL;
	json_t *object = (json_t *)j; /* the iterators are not const */

	for (void *at = json_object_iter(object); at && i < n; at = json_object_iter_next(object, at))
		v[i++] = (struct member){json_object_iter_key(at), json_object_iter_value(at)};
	if (n > 1)
		qsort(v, n, sizeof(*v), member_compare);
	buf_char(out, '{');
	for (i = 0; i < n; i++) {
		if (i)
			buf_char(out, ',');
		json_value_write_text(out, v[i].key, strlen(v[i].key));
		buf_char(out, ':');
		json_value_write(v[i].value, out);
	}
	buf_char(out, '}');
	free(v);
}

void json_value_write(const json_t *j, struct buf *out)
{
	if (!j)
		return; /* json_pack() failed */
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		object_write(j, out);
		break;
	case JSON_ARRAY:
		array_write(j, out);
		break;
	case JSON_STRING:
		json_value_write_text(out, json_string_value(j), json_string_length(j));
		break;
	case JSON_INTEGER:
		buf_json_int(out, json_integer_value(j));
		break;
	case JSON_REAL:
		/* 15 digits are exact for durations in microseconds, and write 0.1 as 0.1 */
		json_dump_callback(j, write_piece, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		buf_str(out, json_is_true(j) ? "true" : json_is_false(j) ? "false" : "null");
		break;
	}
}
