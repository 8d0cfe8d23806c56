/* SPDX-License-Identifier: Apache-2.0 */
/* A text in the user's editor. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;

struct editor {
	char *path; /* owned: of a file that only the user can read; NULL: none yet */
};
/* The file goes with it, unless it was kept. */
void editor_done(struct editor *ed);
void editor_keep(struct editor *ed);

/* Opens $VISUAL, $EDITOR or vi on the text, and gives back what it has become. */
bool editor_run(struct editor *ed, struct buf *text, struct err *e);
