/* SPDX-License-Identifier: Apache-2.0 */
/* Output of rows in the selected format. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "jobctl/render/table.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ctl;

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
