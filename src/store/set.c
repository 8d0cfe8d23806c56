/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the JSON array parameter of a set-wise statement. */
#include "store/set.h"
#include "base/text.h"
#include "store/store_private.h"
#include <string.h>

void set_done(struct set *s)
{
	buf_done(&s->b);
	*s = (struct set){};
}

void set_item(struct set *s)
{
	buf_str(&s->b, s->n++ ? "},{" : "[{");
	s->first = true;
}

static void member_start(struct set *s, const char *name)
{
	size_t len = strlen(name);
	char *to = buf_room(&s->b, len + 4);

	if (!s->first)
		*to++ = ',';
	s->first = false;
	*to++ = '"';
	memcpy(to, name, len);
	memcpy(to + len, "\":", 3);
	s->b.len = (size_t)(to + len + 2 - s->b.data);
}

void set_int(struct set *s, const char *name, int64_t v)
{
	member_start(s, name);
	buf_json_int(&s->b, v);
}

void set_text(struct set *s, const char *name, const char *v)
{
	member_start(s, name);
	if (v && !text_utf8_valid(v, strlen(v))) {
		AUTO_DONE(buf) shown = {};

		text_escape(&shown, v, strlen(v));
		buf_json_str(&s->b, shown.data);
	} else {
		buf_json_str(&s->b, v);
	}
}

void set_id(struct set *s, int64_t id)
{
	buf_char(&s->b, s->n++ ? ',' : '[');
	buf_json_int(&s->b, id);
}

const char *set_json(struct set *s)
{
	if (s->n == 0)
		return "[]";
	if (!s->closed) {
		bool object = s->b.data[1] == '{';

		s->closed = true;
		buf_str(&s->b, object ? "}]" : "]");
	}
	return s->b.data;
}

bool set_execute(struct store *s, int query, struct set *set, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, query, e);
	query_text(&q, set_json(set));
	return query_finish(&q);
}
