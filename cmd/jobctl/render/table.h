/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned text tables without borders. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

struct buf;

#define TABLE_COLUMNS_MAX 24

struct table_column {
	const char *header;
	bool right;     /* aligned to the right, for numbers */
	unsigned flags; /* TABLE_... */
};
#define TABLE_STATE 1u  /* the cell is the name of a state and gets its colour */
#define TABLE_SHRINK 2u /* the column is cut when the table is wider than the terminal */

struct table {
	const struct table_column *columns; /* borrowed */
	size_t n;
	int width;       /* of the terminal in columns; 0: lines are not cut */
	bool colour;
	struct strv cells; /* of the rows that are not yet printed, escaped */
	size_t widths[TABLE_COLUMNS_MAX];
	bool used[TABLE_COLUMNS_MAX]; /* a cell of the column is not "-" */
	bool hidden[TABLE_COLUMNS_MAX]; /* empty columns are left out of a table that is too wide */
	bool header_done;
};
void table_init(struct table *t, const struct table_column *columns, size_t n);
void table_done(struct table *t);

/* Adds the next cell, row by row; the text is escaped. */
void table_cell(struct table *t, const char *text);
size_t table_rows(const struct table *t);
/*
 * Appends the rows added since the last call, the first time after the header. Widths never shrink
 * between calls.
 */
void table_flush(struct table *t, struct buf *out);

const char *table_state_colour(const char *state); /* escape sequence of the terminal; "": none */
#define COLOUR_END "\033[0m"

size_t table_text_width(const char *s, size_t len); /* in columns of a terminal */
/* The number of bytes that fit into so many columns. *ret_all: the whole text fits. */
size_t table_text_cut(const char *s, size_t columns, bool *ret_all);
