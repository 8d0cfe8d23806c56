/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on tokens: add, remove. */
#pragma once
#include "base/clock.h"
#include "core/job/token.h"
#include "store/ops/op.h"
#include <stdint.h>

struct token_row;

/* OP_TOKEN_ADD */
struct op_token_add {
	struct op op;
	const struct token_row *row; /* borrowed */
	const char *spend;           /* borrowed: id of the one-time token that is used up; NULL: none */
};
OP_DEFINE(token_add, token_add, OP_TOKEN_ADD, OP_TOKEN_ADD)

/* OP_TOKEN_REMOVE: a token with the sessions that it opened */
struct op_token_remove {
	struct op op;
	const char *ref;  /* borrowed: id or name */
	int64_t owner;    /* owner of the token, or a scope: core/job/owner.h */
	usec_t now;
	bool removed;     /* result */
	char id[TOKEN_ID_LEN + 1]; /* result */
	char name[80];    /* result: name of the token; empty: a session */
};
OP_DEFINE(token_remove, token_remove, OP_TOKEN_REMOVE, OP_TOKEN_REMOVE)
