/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a set-wise statement in memory, for backends that read them without parsing a text. */
#pragma once
#include "base/buf.h"
#include <stddef.h>
#include <stdint.h>

enum db_cell_type { DB_CELL_ROW, DB_CELL_NULL, DB_CELL_INT, DB_CELL_TEXT }; /* ROW begins a row */

struct db_cell {
	const char *name;  /* of the member; a string constant. NULL: DB_CELL_ROW */
	enum db_cell_type type;
	uint32_t len;      /* of the text */
	int64_t value;     /* the number, or the place of the text in 'texts' */
};

struct db_set {
	struct db_cell *cells; /* owned array */
	size_t n, room;
	struct buf texts;
};
