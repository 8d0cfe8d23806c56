/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes rows of tokens, for the routes of tokens and sessions. */
#pragma once
#include <stdint.h>

struct request;
struct token_row;
struct token_text;

/* Sets the id and the hash of a row to those of a new random token. */
void token_make_secret(struct token_row *row, struct token_text *ret);
/* Removes a token by its id or name and answers. 'scope' is one of core/job/owner.h. */
void token_make_removal(struct request *r, const char *ref, int64_t scope);
