/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tokens: names, one-time tokens, sessions, owners, limits. */
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "store/ops/op.h"
#include "store/ops/tokens.h"
#include "store/read/list/list_tokens.h"
#include "store/token_row.h"
#include "unit/store/store_suite.h"
#include <string.h>

/* Adds a token; returns the kind of the error. */
static enum err_kind add_token(struct store *s, const char *id, struct token_row row, const char *spend)
{
	AUTO(op) *op = op_new(OP_TOKEN_ADD, NULL, NULL);

	row.id = (char *)id;
	row.owner_name = row.created_by = (char *)"ann";
	row.hash = (char *)"hash";
	if (!row.owner)
		row.owner = 4001;
	if (!row.created_at)
		row.created_at = 100;
	op_fill(token_add_op(op), .row = &row, .spend = spend);
	return apply_one(s, op) ? ERR_NONE : op->err.kind;
}

static enum err_kind remove_token(struct store *s, const char *ref, int64_t owner)
{
	AUTO(op) *op = op_new(OP_TOKEN_REMOVE, NULL, NULL);

	op_fill(token_remove_op(op), .ref = ref, .owner = owner, .now = 200);
	return apply_one(s, op) ? ERR_NONE : op->err.kind;
}

static size_t count_tokens(struct store *s, int64_t owner)
{
	AUTO_DONE(token_row_list) l = {};
	struct err e = {};

	assert_true(list_tokens_read(s, owner, &l, &e));
	return l.n;
}

static void a_name_is_used_once_per_owner(void **state)
{
	struct store *s = store_of(state);
	struct token_row ci = {.name = (char *)"ci", .role = TOKEN_OPERATOR, .scope = (char *)"see", .expires_at = 500};
	AUTO_DONE(token_row_list) l = {};
	int64_t before, after;
	struct err e = {};

	assert_true(list_tokens_version(s, &before, &e));
	assert_int_equal(add_token(s, "a1", ci, NULL), ERR_NONE);
	assert_int_equal(add_token(s, "a2", ci, NULL), ERR_CONFLICT);
	ci.owner = 4002;
	assert_int_equal(add_token(s, "a3", ci, NULL), ERR_NONE);
	assert_true(list_tokens_version(s, &after, &e));
	assert_int_equal(after, before + 2); /* other nodes read the tokens again */
	assert_true(list_tokens_read(s, 4001, &l, &e));
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].id, "a1");
	assert_string_equal(l.v[0].scope, "see");
	assert_int_equal(l.v[0].role, TOKEN_OPERATOR);
	assert_int_equal(l.v[0].expires_at, 500);
	assert_null(l.v[0].parent);
	assert_int_equal(count_tokens(s, OWNER_ALL), 2);
}

static void a_token_is_removed_by_its_owner_or_an_administrator_with_its_sessions(void **state)
{
	struct store *s = store_of(state);
	struct token_row session = {.kind = TOKEN_SESSION, .parent = (char *)"a1", .expires_at = 900};

	assert_int_equal(add_token(s, "a1", (struct token_row){.name = (char *)"ci"}, NULL), ERR_NONE);
	assert_int_equal(add_token(s, "b1", session, NULL), ERR_NONE);
	assert_int_equal(add_token(s, "b2", session, NULL), ERR_NONE);
	assert_int_equal(remove_token(s, "ci", 4002), ERR_NOT_FOUND);
	assert_int_equal(remove_token(s, "b1", 4001), ERR_NONE);
	assert_int_equal(count_tokens(s, 4001), 2);
	assert_int_equal(remove_token(s, "ci", OWNER_NOT_ROOT), ERR_NONE);
	assert_int_equal(count_tokens(s, 4001), 0);
	assert_int_equal(remove_token(s, "ci", OWNER_ALL), ERR_NOT_FOUND);
}

static void a_one_time_token_is_spent_once_and_in_time(void **state)
{
	struct store *s = store_of(state);
	struct token_row once = {.kind = TOKEN_ONCE, .expires_at = 150};
	struct token_row session = {.kind = TOKEN_SESSION, .expires_at = 900};

	assert_int_equal(add_token(s, "a1", once, NULL), ERR_NONE);
	assert_int_equal(add_token(s, "b1", session, "a1"), ERR_NONE);
	assert_int_equal(add_token(s, "b2", session, "a1"), ERR_UNAUTHENTICATED);
	assert_int_equal(add_token(s, "a2", once, NULL), ERR_NONE);
	session.created_at = 150;
	assert_int_equal(add_token(s, "b3", session, "a2"), ERR_UNAUTHENTICATED);
	assert_int_equal(count_tokens(s, 4001), 1); /* expired tokens are deleted */
}

static void the_number_of_tokens_is_limited_and_old_sessions_make_room(void **state)
{
	struct store *s = store_of(state);

	for (int i = 0; i <= TOKENS_MAX; i++) {
		AUTO_TEXT id = xprintf("a%d", i);
		AUTO_TEXT other = xprintf("b%d", i);
		AUTO_TEXT name = xprintf("n%d", i);

		assert_int_equal(add_token(s, id, (struct token_row){.name = name}, NULL),
			i < TOKENS_MAX ? ERR_NONE : ERR_LIMIT);
		assert_int_equal(add_token(s, other,
					 (struct token_row){.kind = TOKEN_SESSION, .expires_at = 900, .created_at = 100 + i},
					 NULL),
			ERR_NONE);
	}
	assert_int_equal(count_tokens(s, 4001), 2 * TOKENS_MAX);
	assert_int_equal(remove_token(s, "b0", OWNER_ALL), ERR_NOT_FOUND); /* the oldest */
}

static const struct CMUnitTest tests[] = {
	STORE_TEST(a_name_is_used_once_per_owner),
	STORE_TEST(a_token_is_removed_by_its_owner_or_an_administrator_with_its_sessions),
	STORE_TEST(a_one_time_token_is_spent_once_and_in_time),
	STORE_TEST(the_number_of_tokens_is_limited_and_old_sessions_make_room),
};
const struct suite_part store_tokens_part = {tests, ELEMENTS(tests)};
