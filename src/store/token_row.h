/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as they are stored. */
#pragma once
#include "base/clock.h"
#include "core/job/token.h"
#include <stdint.h>

#define TOKENS_MAX 100   /* of one kind of one owner */

struct token_row {
	char *id, *name;     /* NULL name: a session */
	enum token_kind kind;
	enum token_role role;
	bool everyone;       /* a viewer of the jobs of all owners */
	int64_t owner;       /* owner number: core/job/owner.h */
	char *owner_name;
	char *scope;         /* verbs, separated by commas; NULL: all of the role */
	char *hash;          /* of the secret */
	char *parent;        /* id of the token that opened the session; NULL: none */
	char *created_by;    /* user name */
	usec_t created_at;
	usec_t expires_at;   /* 0: never */
};
struct token_row_list {
	struct token_row *v; /* owned */
	size_t n;
};
void token_row_done(struct token_row *t);
void token_row_list_done(struct token_row_list *l);
