/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokens from the store. */
#include "store/read/list/list_tokens.h"
#include "base/err.h"
#include "base/text.h"
#include "store/store_private.h"
#include "store/token_row.h"
#include "store/tx.h"

void token_row_done(struct token_row *t)
{
	free(t->id);
	free(t->name);
	free(t->owner_name);
	free(t->scope);
	free(t->hash);
	free(t->parent);
	free(t->created_by);
	*t = (struct token_row){};
}

void token_row_list_done(struct token_row_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		token_row_done(&l->v[i]);
	free(l->v);
	*l = (struct token_row_list){};
}

static bool version_read(struct store *s, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_META_GET, e);

	*ret = 0;
	query_text(&q, "tokens");
	if (query_row(&q))
		text_parse_int(query_get_text(&q), 0, INT64_MAX, ret);
	return !q.failed;
}

bool list_tokens_version(struct store *s, int64_t *ret, struct err *e)
{
	AUTO_TX tx = {};

	return tx_begin(&tx, s, false, e) && version_read(s, ret, e) && tx_commit(&tx, e);
}

static bool tokens_read(struct store *s, int64_t owner, struct token_row_list *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_TOKENS_OF, e);

	query_int(&q, owner);
	while (query_row(&q)) {
		struct token_row *t;

		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		t = &ret->v[ret->n++];
		*t = (struct token_row){.id = query_get_copy(&q)};
		t->kind = (enum token_kind)query_get_int(&q);
		t->name = query_get_copy(&q);
		t->owner = query_get_int(&q);
		t->owner_name = query_get_copy(&q);
		t->role = (enum token_role)query_get_int(&q);
		t->everyone = query_get_int(&q) != 0;
		t->scope = query_get_copy(&q);
		t->hash = query_get_copy(&q);
		t->parent = query_get_copy(&q);
		t->created_by = query_get_copy(&q);
		t->created_at = query_get_int(&q);
		t->expires_at = query_get_int(&q);
	}
	return !q.failed;
}

bool list_tokens_read(struct store *s, int64_t owner, struct token_row_list *ret, struct err *e)
{
	AUTO_DONE(token_row_list) found = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !tokens_read(s, owner, &found, e) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct token_row_list){};
	return true;
}
