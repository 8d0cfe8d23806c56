/* SPDX-License-Identifier: Apache-2.0 */
/* Shell quoting of words. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;

bool shell_syntax(const char *word); /* the word contains characters that are special to a shell */
/* Appends the word so that a shell reads exactly these bytes. */
void shell_quote(struct buf *out, const char *word);
