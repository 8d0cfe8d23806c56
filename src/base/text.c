/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, lists of strings, numbers; escapes text for the terminal. */
#include "base/text.h"
#include "base/buf.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

void *xrealloc(void *p, size_t size)
{
	void *q = realloc(p, size ? size : 1);

	if (!q)
		abort();
	return q;
}

void *xgrow(void *list, size_t n, size_t size)
{
	return (n & (n - 1)) == 0 ? xrealloc(list, (n ? n * 2 : 1) * size) : list;
}

char *xstrdup(const char *s)
{
	return s ? xstrndup(s, strlen(s)) : NULL;
}

char *xstrndup(const char *s, size_t len)
{
	char *copy = xcalloc(len + 1, 1);

	memcpy(copy, s, len);
	return copy;
}

char *xvprintf(const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) < 0)
		abort();
	return s;
}

char *xprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvprintf(fmt, ap);
	va_end(ap);
	return s;
}

bool text_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool text_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Length of the well-formed character at s, its code point in *ret; 0: not UTF-8. */
static size_t utf8_take(const char *text, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *s = (const unsigned char *)text;
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
	uint32_t c;

	if (n == 0 || n > len || s[0] > 0xf4)
		return 0;
	c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return n;
}

bool text_is_name(const char *s, size_t len)
{
	if (len == 0 || (s[0] >= '0' && s[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
			return false;
	}
	return true;
}

/* The length of the part at the start that has no byte above 0x7f. */
static size_t ascii_span(const char *s, size_t len)
{
	size_t n = 0;
	uint64_t word;

	for (; len - n >= sizeof(word); n += sizeof(word)) {
		memcpy(&word, s + n, sizeof(word));
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	while (n < len && (unsigned char)s[n] < 0x80)
		n++;
	return n;
}

bool text_utf8_valid(const char *s, size_t len)
{
	while (len) {
		uint32_t c;
		size_t n = ascii_span(s, len);

		if (n == 0)
			n = utf8_take(s, len, &c);

		if (n == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

/* Characters that move the cursor, hide or reorder text. */
static bool shown_escaped(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

void text_escape(struct buf *out, const char *s, size_t len)
{
	while (len) {
		uint32_t c = 0;
		size_t n = utf8_take(s, len, &c);

		if (n == 0) {
			n = 1;
			buf_printf(out, "\\x%02x", (unsigned char)*s);
		} else if (!shown_escaped(c)) {
			buf_add(out, s, n);
		} else if (c == '\n' || c == '\t' || c == '\r') {
			buf_str(out, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
		} else {
			buf_printf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
		}
		s += n;
		len -= n;
	}
}

void strv_done(struct strv *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->v[i]);
	free(v->v);
	*v = (struct strv){};
}

void strv_take(struct strv *v, char *s)
{
	/* the capacity is a power of two, so that n additions copy O(n) bytes */
	if ((v->n & (v->n + 1)) == 0)
		v->v = xrealloc(v->v, (2 * v->n + 2) * sizeof(*v->v));
	v->v[v->n++] = s;
	v->v[v->n] = NULL;
}

void strv_add(struct strv *v, const char *s)
{
	strv_take(v, xstrdup(s));
}

void strv_copy(struct strv *to, const struct strv *from)
{
	for (size_t i = 0; i < from->n; i++)
		strv_add(to, from->v[i]);
}

void blob_done(struct blob *b)
{
	free(b->data);
	*b = (struct blob){};
}

const char *text_from_int(char digits[TEXT_INT], int64_t n)
{
	char *p = digits + TEXT_INT - 1;
	uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;

	*p = '\0';
	do
		*--p = (char)('0' + rest % 10);
	while (rest /= 10);
	if (n < 0)
		*--p = '-';
	return p;
}

bool text_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = *s == '-';
	int64_t n = 0;

	s += negative;
	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || __builtin_mul_overflow(n, 10, &n) ||
			(negative ? __builtin_sub_overflow(n, *s - '0', &n)
				  : __builtin_add_overflow(n, *s - '0', &n)))
			return false;
	}
	if (n < min || n > max)
		return false;
	*ret = n;
	return true;
}

bool text_parse_size(const char *s, int64_t *ret)
{
	static const char units[] = "KMGT";
	char digits[24];
	size_t len = strspn(s, "0123456789");
	const char *unit;
	int64_t n;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, s, len);
	digits[len] = '\0';
	if (!text_parse_int(digits, 0, INT64_MAX, &n))
		return false;
	if (s[len]) {
		unit = strchr(units, s[len] & ~0x20);
		if (!unit || s[len + 1])
			return false;
		for (const char *u = units; u <= unit; u++)
			if (__builtin_mul_overflow(n, 1024, &n))
				return false;
	}
	*ret = n;
	return true;
}
