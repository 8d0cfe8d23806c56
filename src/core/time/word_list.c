/* SPDX-License-Identifier: Apache-2.0 */
/* Joins items into English lists. */
#include "core/time/word_list.h"

#include <stdarg.h>
#include <stdio.h>

void word_list_done(struct word_list *l)
{
	strv_done(&l->items);
}

void word_list_add(struct word_list *l, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	strv_add(&l->items, text);
}

void word_list_join(const struct word_list *l, const char *last, struct buf *out)
{
	for (size_t i = 0; i < l->items.n; i++) {
		if (i && i + 1 == l->items.n)
			buf_printf(out, " %s ", last);
		else if (i)
			buf_str(out, ", ");
		buf_str(out, l->items.v[i]);
	}
}

void word_list_bits(struct word_list *l, uint64_t bits, word_name_fn *name)
{
	for (int v = 0; v < 64; v++) {
		struct buf b = {};
		int end = v;

		if (!(bits >> v & 1))
			continue;
		while (end < 63 && (bits >> (end + 1) & 1))
			end++;
		name(v, &b);
		if (end - v >= 2) {
			buf_str(&b, " to ");
			name(end, &b);
			v = end;
		}
		strv_take(&l->items, buf_steal(&b));
	}
}

void word_list_number(int n, struct buf *out)
{
	buf_printf(out, "%d", n);
}

void word_list_ordinal(int n, struct buf *out)
{
	static const char *const ends[] = { "th", "st", "nd", "rd" };
	int last = n % 10, tens = n / 10 % 10;

	buf_printf(out, "%d%s", n, tens != 1 && last <= 3 ? ends[last] : ends[0]);
}
