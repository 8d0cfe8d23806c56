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

/* How a cell is formatted. */
struct cell_style {
	bool relative; /* times as "in 5m" */
	bool utc;      /* other times in UTC, for programs; false: local time */
	usec_t now;    /* for relative times */
};
/* Appends the text of a cell; an empty text is shown as "-" in tables. */
typedef void cell_fn(const json_t *row, const struct cell_style *style, struct buf *out);

struct column {
	struct table_column layout;
	const char *key;  /* header in CSV */
	bool wide;        /* shown with -o wide and in CSV only */
	cell_fn *cell;
};

/* The columns of one kind of object. */
struct row_kind {
	const struct column *columns;
	size_t n;
	void (*name)(const json_t *row, struct buf *out); /* for -o name */
};

struct rows {
	const struct ctl *c;
	const struct row_kind *kind;
	struct table_column shown[TABLE_COLUMNS_MAX];
	struct table table;
	struct cell_style style;
	struct buf out;
	size_t count;
};
void rows_begin(struct rows *r, const struct ctl *c, const struct row_kind *kind);
void rows_add(struct rows *r, const json_t *row);
/* Writes the rows added so far; columns keep at least their widths. */
void rows_page(struct rows *r);
void rows_end(struct rows *r);  /* writes the remaining rows and frees */
/* All rows of an array. 'none' is said on a terminal if there are none. */
void rows_print_all(const struct ctl *c, const struct row_kind *kind, const json_t *array, const char *none);
