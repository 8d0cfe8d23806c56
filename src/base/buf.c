/* SPDX-License-Identifier: Apache-2.0 */
/* Growing buffers; writes JSON strings and base64. */
#include "base/buf.h"
#include "base/text.h"
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){};
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

char *buf_steal(struct buf *b)
{
	char *s = b->data ? b->data : xstrdup("");

	*b = (struct buf){};
	return s;
}

char *buf_room(struct buf *b, size_t len)
{
	if (b->cap - b->len < len + 1) {
		size_t cap = b->cap ? b->cap : 64;

		while (cap - b->len < len + 1)
			cap *= 2;
		b->data = xrealloc(b->data, cap);
		b->cap = cap;
	}
	return b->data + b->len;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	char *to = buf_room(b, len);

	if (len)
		memcpy(to, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		abort();
	va_start(ap, fmt);
	vsnprintf(buf_room(b, (size_t)len), (size_t)len + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)len;
}

/* Lists and statements consist mostly of numbers, for which printf() would take most of the time. */
void buf_json_int(struct buf *b, int64_t n)
{
	char digits[TEXT_INT];

	buf_str(b, text_from_int(digits, n));
}

void buf_json_str(struct buf *b, const char *s)
{
	static const char hex[] = "0123456789abcdef";

	if (!s) {
		buf_str(b, "null");
		return;
	}
	buf_char(b, '"');
	for (;; s++) {
		size_t plain = 0;

		/* a loop is faster than strcspn(), which builds a table for each call */
		while ((unsigned char)s[plain] >= ' ' && s[plain] != '"' && s[plain] != '\\')
			plain++;
		buf_add(b, s, plain);
		s += plain;
		if (!*s)
			break;
		if ((unsigned char)*s >= ' ')
			buf_add(b, (const char[]){'\\', *s}, 2);
		else
			buf_add(b, (const char[]){'\\', 'u', '0', '0', hex[*s >> 4], hex[*s & 15]}, 6);
	}
	buf_char(b, '"');
}

static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void buf_base64(struct buf *b, const void *data, size_t len)
{
	const unsigned char *in = data;
	char *out = buf_room(b, (len + 2) / 3 * 4);

	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t n = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
			     (left > 2 ? in[i + 2] : 0);

		*out++ = base64_digits[n >> 18 & 63];
		*out++ = base64_digits[n >> 12 & 63];
		*out++ = left > 1 ? base64_digits[n >> 6 & 63] : '=';
		*out++ = left > 2 ? base64_digits[n & 63] : '=';
	}
	*out = '\0';
	b->len = (size_t)(out - b->data);
}

static int base64_value(char c)
{
	const char *p = c ? strchr(base64_digits, c) : NULL;

	return p ? (int)(p - base64_digits) : -1;
}

bool buf_base64_decode(const char *text, size_t len, struct buf *out)
{
	if (len % 4 != 0)
		return false;
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		int pad = last ? (text[i + 3] == '=') + (text[i + 3] == '=' && text[i + 2] == '=') : 0;
		uint32_t n = 0;
		char bytes[3];

		for (int k = 0; k < 4; k++) {
			int v = k >= 4 - pad ? 0 : base64_value(text[i + (size_t)k]);

			if (v < 0)
				return false;
			n = n << 6 | (uint32_t)v;
		}
		if ((pad == 1 && (n & 0xff)) || (pad == 2 && (n & 0xffff)))
			return false; /* bits that no encoder sets */
		bytes[0] = (char)(n >> 16);
		bytes[1] = (char)(n >> 8);
		bytes[2] = (char)n;
		buf_add(out, bytes, (size_t)(3 - pad));
	}
	return true;
}
