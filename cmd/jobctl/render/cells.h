/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of a table that are members of its rows as they are. */
#pragma once
#include <jansson.h>

struct buf;
struct look;

void cell_put(const json_t *row, const char *key, struct buf *out); /* a text or a number; nothing for anything else */
void cell_put_time(const json_t *row, const char *key, const struct look *l, struct buf *out);

/* A cell_fn for the member of that name. */
#define CELL(key)                                                                                  \
	static void cell_##key(const json_t *row, const struct look *l, struct buf *out)           \
	{                                                                                          \
		(void)l;                                                                           \
		cell_put(row, #key, out);                                                          \
	}
