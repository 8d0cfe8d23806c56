/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows as a table, JSON, JSON lines, CSV or names. */
#include "jobctl/render/rows.h"

#include "base/auto.h"
#include "base/text.h"
#include "jobctl/ctl.h"
#include "jobctl/render/render.h"
#include <string.h>

#define FLUSH_AT (64 * 1024) /* bytes */

static bool column_is_shown(const struct rows *r, const struct column *column)
{
	return r->c->format != FORMAT_TABLE || !column->wide;
}

/* A field as in RFC 4180. Control characters are escaped if standard output is a terminal. */
static void csv_field(struct rows *r, const char *text)
{
	AUTO_DONE(buf) safe = {};

	if (r->c->terminal) {
		text_escape(&safe, text, strlen(text));
		text = safe.data ? safe.data : "";
	}
	if (!text[strcspn(text, ",\"\r\n")]) {
		buf_str(&r->out, text);
		return;
	}
	buf_char(&r->out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_char(&r->out, '"');
		buf_char(&r->out, *text);
	}
	buf_char(&r->out, '"');
}

static void csv_header(struct rows *r)
{
	for (size_t i = 0; i < r->kind->n; i++)
		buf_printf(&r->out, "%s%s", i ? "," : "", r->kind->columns[i].key);
	buf_char(&r->out, '\n');
}

void rows_begin(struct rows *r, const struct ctl *c, const struct row_kind *kind)
{
	size_t n = 0;

	*r = (struct rows){.c = c, .kind = kind};
	r->style = (struct cell_style){.relative = c->terminal && render_is_text(c),
		.utc = !render_is_text(c),
		.now = c->now};
	for (size_t i = 0; i < kind->n; i++)
		if (column_is_shown(r, &kind->columns[i]))
			r->shown[n++] = kind->columns[i].layout;
	table_init(&r->table, r->shown, n);
	r->table.width = c->width;
	r->table.colour = c->colour;
	if (c->format == FORMAT_CSV)
		csv_header(r);
	else if (c->format == FORMAT_JSON)
		buf_char(&r->out, '[');
}

static void add_cells(struct rows *r, const json_t *row)
{
	for (size_t i = 0; i < r->kind->n; i++) {
		const struct column *column = &r->kind->columns[i];
		AUTO_DONE(buf) cell = {};

		if (!column_is_shown(r, column))
			continue;
		column->cell(row, &r->style, &cell);
		if (r->c->format == FORMAT_CSV) {
			if (i)
				buf_char(&r->out, ',');
			csv_field(r, cell.data ? cell.data : "");
		} else {
			table_cell(&r->table, cell.len ? cell.data : "-");
		}
	}
	if (r->c->format == FORMAT_CSV)
		buf_char(&r->out, '\n');
}

void rows_add(struct rows *r, const json_t *row)
{
	switch (r->c->format) {
	case FORMAT_JSON:
		buf_str(&r->out, r->count ? ",\n " : "");
		render_json(row, JSON_COMPACT, &r->out);
		break;
	case FORMAT_JSONL:
		render_json(row, JSON_COMPACT, &r->out);
		buf_char(&r->out, '\n');
		break;
	case FORMAT_NAME:
		r->kind->name(row, &r->out);
		buf_char(&r->out, '\n');
		break;
	default:
		add_cells(r, row);
	}
	r->count++;
	if (r->out.len >= FLUSH_AT)
		render_flush(&r->out);
}

void rows_page(struct rows *r)
{
	if (render_is_text(r->c) && table_rows(&r->table) > 0)
		table_flush(&r->table, &r->out);
	render_flush(&r->out);
}

void rows_end(struct rows *r)
{
	if (r->c->format == FORMAT_JSON)
		buf_str(&r->out, "]\n");
	rows_page(r);
	table_done(&r->table);
	buf_done(&r->out);
}

void rows_print_all(const struct ctl *c, const struct row_kind *kind, const json_t *array, const char *none)
{
	struct rows rows = {};
	const json_t *row;
	size_t i;

	rows_begin(&rows, c, kind);
	json_array_foreach(array, i, row)
		rows_add(&rows, row);
	rows_end(&rows);
	if (json_array_size(array) == 0 && c->terminal && c->format <= FORMAT_WIDE)
		ctl_say("%s", none);
}
