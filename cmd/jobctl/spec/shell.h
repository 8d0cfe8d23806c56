/* SPDX-License-Identifier: Apache-2.0 */
/* Words as a shell reads them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;

bool shell_syntax(const char *word); /* whether a shell would see more in it than one plain word */
void shell_quote(struct buf *out, const char *word); /* so that a shell gives back these very bytes */
