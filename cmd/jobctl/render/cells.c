/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON members into table cells. */
#include "jobctl/render/cells.h"

#include "base/buf.h"
#include "base/text.h"
#include "jobctl/member.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"

void cell_put(const json_t *row, const char *key, struct buf *out)
{
	const json_t *v = json_object_get(row, key);

	if (json_is_string(v))
		buf_str(out, json_string_value(v));
	else if (json_is_integer(v))
		buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
}

void cell_put_time(const json_t *row, const char *key, const struct cell_style *style,
	struct buf *out)
{
	usec_t t = member_time(row, key);
	char text[WORDS_MAX];

	if (!t)
		return;
	if (style->relative)
		buf_str(out, words_relative(t, style->now, text));
	else
		buf_str(out, style->utc ? member_text(row, key) : words_instant(t, text));
}
