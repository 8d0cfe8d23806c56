/* SPDX-License-Identifier: Apache-2.0 */
/* Adds and removes tokens. */
#include "store/ops/tokens.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/events.h"
#include "store/ops/op_private.h"
#include "store/store_private.h"
#include "store/token_row.h"
#include "store/tx.h"
#include <stdio.h>

#define EXPIRED_PER_STEP 100 /* expired rows that an addition deletes */

static bool tokens_changed(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKENS_CHANGED, e);

	return query_finish(&q);
}

static bool tokens_expire(struct store *s, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKENS_EXPIRE, e);

	query_int(&q, now);
	query_int(&q, EXPIRED_PER_STEP);
	return query_finish(&q);
}

/* The oldest sessions and one-time tokens of the owner make room for a new one. */
static bool sessions_trim(struct store *s, const struct token_row *t, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKENS_TRIM, e);

	query_int(&q, t->owner);
	query_int(&q, t->kind);
	query_int(&q, TOKENS_MAX - 1);
	return query_finish(&q);
}

static bool tokens_count(struct store *s, const struct token_row *t, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKENS_COUNT, e);

	query_int(&q, t->owner);
	query_int(&q, t->kind);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

static bool token_spend(struct store *s, const char *id, usec_t now, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKEN_SPEND, e);

	query_text(&q, id);
	query_int(&q, now);
	*ret = query_row(&q);
	return !q.failed;
}

static bool token_insert(struct store *s, const struct token_row *t, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKEN_ADD, e);

	query_text(&q, t->id);
	query_int(&q, t->kind);
	query_text(&q, t->name);
	query_int(&q, t->owner);
	query_text(&q, t->owner_name);
	query_int(&q, t->role);
	query_int(&q, t->everyone);
	query_text(&q, t->scope);
	query_text(&q, t->hash);
	query_text(&q, t->parent);
	query_text(&q, t->created_by);
	query_int(&q, t->created_at);
	query_int(&q, t->expires_at);
	*ret = query_row(&q);
	return !q.failed;
}

static bool token_add_one(struct store *s, struct op *op, struct err *e)
{
	const struct op_token_add *a = token_add_op(op);
	const struct token_row *t = a->row;
	bool done = true;
	int64_t n = 0;

	if (!tokens_expire(s, t->created_at, e))
		return false;
	if (a->spend && !token_spend(s, a->spend, t->created_at, &done, e))
		return false;
	if (!done)
		return op_refuse(op, ERR_UNAUTHENTICATED,
			"the one-time token was used already or has expired; 'jobctl web' makes another");
	if (t->kind != TOKEN_API ? !sessions_trim(s, t, e) : !tokens_count(s, t, &n, e))
		return false;
	if (n >= TOKENS_MAX)
		return op_refuse(op, ERR_LIMIT,
			"'%s' has %lld tokens, more are not allowed; remove some with 'jobctl token revoke'",
			t->owner_name, (long long)n);
	if (!token_insert(s, t, &done, e))
		return false;
	if (!done)
		return op_refuse(op, ERR_CONFLICT,
			"'%s' has a token '%s' already; remove it with 'jobctl token revoke %s', or choose another name",
			t->owner_name, t->name ? t->name : "", t->name ? t->name : "");
	return tokens_changed(s, e);
}

bool token_add_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct token_row *t = token_add_op(ops[i])->row;

		if (!token_add_one(s, ops[i], e))
			return false;
		if (ops[i]->ok && t->kind != TOKEN_ONCE)
			event_add(s, &(struct event_new){.at = t->created_at,
				.by = &ops[i]->act.by,
				.object = t->name ? t->name : t->id,
				.what = t->kind == TOKEN_API ? EVENT_TOKEN_ADD : EVENT_SESSION_OPEN});
	}
	return true;
}

/* Deletes the sessions of tokens that no longer exist. */
static bool sessions_delete(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKEN_SESSIONS_DROP, e);

	return query_finish(&q);
}

static bool token_delete(struct store *s, struct op_token_remove *t, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKEN_DROP, e);
	const char *name;

	query_text(&q, t->ref);
	query_int(&q, t->owner);
	if (query_row(&q)) {
		t->removed = true;
		snprintf(t->id, sizeof(t->id), "%s", query_get_text(&q));
		name = query_get_text(&q);
		snprintf(t->name, sizeof(t->name), "%s", name ? name : "");
	}
	return !q.failed;
}

bool token_remove_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_token_remove *t = token_remove_op(ops[i]);

		if (!token_delete(s, t, e))
			return false;
		if (!t->removed) {
			op_refuse(ops[i], ERR_NOT_FOUND,
				"no token '%.80s'; 'jobctl token list' shows all tokens", t->ref);
			continue;
		}
		if (!sessions_delete(s, e) || !tokens_changed(s, e))
			return false;
		event_add(s, &(struct event_new){.at = t->now,
			.by = &ops[i]->act.by,
			.object = t->name[0] ? t->name : t->ref,
			.what = t->name[0] ? EVENT_TOKEN_REMOVE : EVENT_SESSION_CLOSE});
	}
	return true;
}

void token_remove_reset(struct op *op)
{
	token_remove_op(op)->removed = false;
	token_remove_op(op)->id[0] = '\0';
	token_remove_op(op)->name[0] = '\0';
}
