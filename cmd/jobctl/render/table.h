/* SPDX-License-Identifier: Apache-2.0 */
/* Columns without borders: cells in, aligned lines out, cut to a width if asked. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

struct buf;

#define TABLE_COLUMNS_MAX 24

struct table_column {
	const char *header;
	bool right;   /* numbers */
	unsigned look; /* TABLE_... */
};
#define TABLE_STATE 1u  /* a state word, which may be coloured */
#define TABLE_SHRINK 2u /* is cut when the table is wider than the terminal */

struct table {
	const struct table_column *columns; /* borrowed */
	size_t n;
	int width;       /* of the terminal; 0: lines are never cut */
	bool colour;
	struct strv cells; /* of the rows not yet printed, escaped */
	size_t widths[TABLE_COLUMNS_MAX];
	bool used[TABLE_COLUMNS_MAX]; /* some cell of the column is not "-" */
	bool hidden[TABLE_COLUMNS_MAX]; /* empty columns of a table that is too wide */
	bool header_done;
};
void table_init(struct table *t, const struct table_column *columns, size_t n);
void table_done(struct table *t);

void table_cell(struct table *t, const char *text); /* the next one, row by row; escaped here */
size_t table_rows(const struct table *t);
/* Appends the rows that wait, after the header the first time. Widths only grow from call to call. */
void table_flush(struct table *t, struct buf *out);

const char *table_state_colour(const char *state); /* escape sequence, "" for none */
#define COLOUR_END "\033[0m"

size_t table_text_width(const char *s, size_t len);              /* cells of a terminal it takes */
size_t table_text_cut(const char *s, size_t columns, bool *ret_all); /* bytes that fit */
