/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokens. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;
struct token_row_list;

/* Grows with each change of the tokens; 0: there was none. */
bool list_tokens_version(struct store *s, int64_t *ret, struct err *e);
/* Tokens of an owner or a scope (core/job/owner.h), by creation. */
bool list_tokens_read(struct store *s, int64_t owner, struct token_row_list *ret, struct err *e);
