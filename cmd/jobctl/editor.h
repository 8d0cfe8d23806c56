/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a text in the user's editor. */
#pragma once
#include <stdbool.h>

struct buf;
struct err;

struct editor {
	char *path; /* owned: a temporary file with mode 0600; NULL: none yet */
};
void editor_done(struct editor *ed); /* removes the file */
void editor_keep(struct editor *ed); /* leaves the file to the user */

/* Runs $VISUAL, $EDITOR or vi on the text and replaces the text by the edited one. */
bool editor_run(struct editor *ed, struct buf *text, struct err *e);
