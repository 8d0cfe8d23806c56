/* SPDX-License-Identifier: Apache-2.0 */
/* Table cells taken directly from JSON members. */
#pragma once
#include <jansson.h>

struct buf;
struct cell_style;

/* A text or an integer; other types give nothing. */
void cell_put(const json_t *row, const char *key, struct buf *out);
void cell_put_time(const json_t *row, const char *key, const struct cell_style *style,
	struct buf *out);

/* Defines cell_KEY(), a cell_fn for the member KEY. */
#define CELL(key)                                                                                  \
	static void cell_##key(const json_t *row, const struct cell_style *style, struct buf *out) \
	{                                                                                          \
		(void)style;                                                                       \
		cell_put(row, #key, out);                                                          \
	}
