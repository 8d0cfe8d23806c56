/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the parameter of a set-wise statement. */
#include "store/set.h"
#include "base/text.h"
#include "store/store_private.h"
#include <stdlib.h>
#include <string.h>

void set_done(struct set *s)
{
	free(s->rows.cells);
	buf_done(&s->rows.texts);
	buf_done(&s->b);
	*s = (struct set){};
}

static struct db_cell *cell_add(struct db_set *rows, enum db_cell_type type, const char *name)
{
	struct db_cell *c;

	if (rows->n == rows->room) {
		rows->room = rows->room ? rows->room * 2 : 32;
		rows->cells = xrealloc(rows->cells, rows->room * sizeof(*rows->cells));
	}
	c = &rows->cells[rows->n++];
	c->type = type;
	c->name = name;
	return c;
}

void set_item(struct set *s)
{
	s->n++;
	cell_add(&s->rows, DB_CELL_ROW, NULL);
}

void set_int(struct set *s, const char *name, int64_t v)
{
	cell_add(&s->rows, DB_CELL_INT, name)->value = v;
}

static void cell_add_text(struct db_set *rows, const char *name, const char *v, size_t len)
{
	struct db_cell *c = cell_add(rows, DB_CELL_TEXT, name);

	c->value = (int64_t)rows->texts.len;
	c->len = (uint32_t)len;
	buf_add(&rows->texts, v, len + 1);
}

void set_text(struct set *s, const char *name, const char *v)
{
	size_t len = v ? strlen(v) : 0;

	if (!v) {
		cell_add(&s->rows, DB_CELL_NULL, name);
	} else if (!text_utf8_valid(v, len)) {
		AUTO_DONE(buf) shown = {};

		text_escape(&shown, v, len);
		cell_add_text(&s->rows, name, shown.data, shown.len);
	} else {
		cell_add_text(&s->rows, name, v, len);
	}
}

void set_id(struct set *s, int64_t id)
{
	buf_char(&s->b, s->n++ ? ',' : '[');
	buf_json_int(&s->b, id);
}

/* ---- the text ---- */

static void name_write(struct buf *b, const char *name, bool first)
{
	size_t len = strlen(name);
	char *to = buf_room(b, len + 4);

	if (!first)
		*to++ = ',';
	*to++ = '"';
	memcpy(to, name, len);
	memcpy(to + len, "\":", 3);
	b->len = (size_t)(to + len + 2 - b->data);
}

static void rows_write(const struct db_set *rows, struct buf *b)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct db_cell *c = &rows->cells[i];

		if (c->type == DB_CELL_ROW) {
			buf_str(b, i ? "},{" : "[{");
			continue;
		}
		name_write(b, c->name, rows->cells[i - 1].type == DB_CELL_ROW);
		if (c->type == DB_CELL_INT)
			buf_json_int(b, c->value);
		else
			buf_json_str(b, c->type == DB_CELL_TEXT ? rows->texts.data + c->value : NULL);
	}
}

const char *set_json(struct set *s)
{
	if (s->n == 0)
		return "[]";
	if (!s->closed) {
		rows_write(&s->rows, &s->b);
		buf_str(&s->b, s->rows.n ? "}]" : "]");
		s->closed = true;
	}
	return s->b.data;
}

void set_bind(struct query *q, struct set *s)
{
	if (s->rows.n == 0 || !query_rows(q, &s->rows))
		query_text(q, set_json(s));
}

bool set_execute(struct store *s, int query, struct set *set, struct err *e)
{
	AUTO_QUERY q = {};

	if (set->n == 0)
		return true;
	q = query_start(s->db, query, e);
	set_bind(&q, set);
	return query_finish(&q);
}
