/* SPDX-License-Identifier: Apache-2.0 */
/* Data on standard output, in whatever format was asked for. */
#pragma once
#include "base/buf.h"
#include "jobctl/ctl.h"
#include "jobctl/render/table.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

bool render_format_parse(const char *name, enum format *ret);
const char *render_format_name(enum format f);
bool render_wants_json(const struct ctl *c); /* an object rather than words; a line of it, or several */

/* Writes and empties. Ends the program when nobody reads any more (quietly) or the disk is full (not quietly). */
void render_flush(struct buf *b);
int render_text(struct buf *b); /* flushes; 0 */

/* Control characters, C1 and bidi controls as \uXXXX; 'flags' of jansson. */
void render_json(const json_t *j, size_t flags, struct buf *out);
/* One object, as FORMAT_JSON (indented) or FORMAT_JSONL. */
int render_object(const struct ctl *c, const json_t *j);

/* What a cell may depend on besides its row. */
struct look {
	bool relative; /* times as "in 5m" */
	bool utc;      /* absolute times as the daemon writes them, for programs; else local ones, for people */
	usec_t now;
};
typedef void cell_fn(const json_t *row, const struct look *l, struct buf *out);

struct column {
	struct table_column look;
	const char *key;  /* header in CSV */
	bool wide;        /* not in plain tables */
	cell_fn *cell;
};

/* How rows of one kind are shown. */
struct row_kind {
	const struct column *columns;
	size_t n;
	void (*name)(const json_t *row, struct buf *out);
};

struct rows {
	const struct ctl *c;
	const struct row_kind *kind;
	struct table_column shown[TABLE_COLUMNS_MAX];
	struct table table;
	struct look look;
	struct buf out;
	size_t count;
};
void rows_begin(struct rows *r, const struct ctl *c, const struct row_kind *kind);
void rows_add(struct rows *r, const json_t *row);
void rows_page(struct rows *r); /* writes what there is; columns keep their widths */
void rows_end(struct rows *r);  /* writes the rest; frees */
