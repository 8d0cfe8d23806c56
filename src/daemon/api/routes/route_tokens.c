/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for tokens: add, list, revoke, one-time tokens. */
#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/job.h"
#include "core/job/owner.h"
#include "daemon/api/auth/token_cache.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/token_make.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/loop/user_lookup.h"
#include "store/ops/op.h"
#include "store/ops/tokens.h"
#include "store/read/list/list_tokens.h"
#include "store/store.h"
#include "store/token_row.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include <string.h>

#define EXPIRES_MAX (INT64_C(10) * 365 * 86400) /* seconds */
#define ONCE_LIFE (5 * USEC_MIN)

/* ---- list ---- */

static json_t *token_to_json(const struct token_row *t)
{
	return json_pack("{s:s, s:o, s:s, s:s, s:b, s:o, s:I, s:o, s:o, s:o, s:o}", "id", t->id,
		"name", json_value_text(t->name), "kind", token_kind_name(t->kind), "role",
		token_role_name(t->role), "all", t->everyone, "owner",
		json_value_text(t->owner_name), "uid", (json_int_t)owner_uid(t->owner), "scope",
		json_value_text(t->scope), "created_by", json_value_text(t->created_by),
		"created_at", json_value_time(t->created_at), "expires_at",
		json_value_time(t->expires_at));
}

static bool read_token_list(struct store *s, struct store_read *q, struct err *e)
{
	AUTO_DONE(token_row_list) l = {};
	json_t *a;

	if (!list_tokens_read(s, q->scope, &l, e))
		return false;
	a = json_array();
	for (size_t i = 0; i < l.n; i++)
		if (l.v[i].kind != TOKEN_ONCE)
			json_array_append_new(a, token_to_json(&l.v[i]));
	a = json_pack("{s:o}", "tokens", a);
	json_value_write(a, &q->out);
	json_decref(a);
	buf_char(&q->out, '\n');
	return true;
}

static void free_token_list(struct store_read *q)
{
	free(q);
}

void route_token_list(struct request *r)
{
	struct store_read *q = xcalloc(1, sizeof(*q));

	q->run = read_token_list;
	q->free = free_token_list;
	store_read_start(r, q);
}

/* ---- add ---- */

void token_make_secret(struct token_row *row, struct token_text *ret)
{
	char first[RANDOM_ID_LEN + 1], second[RANDOM_ID_LEN + 1];
	char hash[TOKEN_HASH_LEN + 1];

	*ret = (struct token_text){};
	io_random_id(first);
	memcpy(ret->id, first, TOKEN_ID_LEN);
	io_random_id(first);
	io_random_id(second);
	memcpy(ret->secret, first, RANDOM_ID_LEN);
	memcpy(ret->secret + RANDOM_ID_LEN, second, RANDOM_ID_LEN);
	token_text_hash(ret, hash);
	row->id = xstrdup(ret->id);
	row->hash = xstrdup(hash);
}

/* The token in the making. First the name of its owner is looked up, then it is stored. */
struct new_token {
	struct store_read q;
	struct token_row row;
	struct token_text text;
	bool user_mode;
	struct ticket *ticket;
};

static void new_token_free(struct new_token *n)
{
	token_row_done(&n->row);
	explicit_bzero(&n->text, sizeof(n->text));
	free(n);
}

static void free_new_token(struct store_read *q)
{
	new_token_free((struct new_token *)q);
}

/* The verbs of a new token are among those of the token that creates it. */
static bool check_scope(const struct request *r, const char *scope, struct err *e)
{
	uint64_t verbs = 0;

	if (scope && !access_scope_parse(scope, &verbs, e))
		return false;
	if (r->who.verbs && (verbs == 0 || verbs & ~r->who.verbs))
		return err_field(e, "scope", "the new token would permit more than yours");
	return true;
}

static bool check_role(const struct request *r, const struct token_row *t, struct err *e)
{
	enum token_role most = request_token_role(r);

	if (t->role > most)
		return err_set(e, ERR_DENIED, "only administrators may create a token of the role '%s'",
			token_role_name(t->role));
	if (t->everyone && t->role != TOKEN_VIEWER)
		return err_field(e, "all", "'all' is for the role 'viewer'; 'admin' includes it");
	if (t->everyone && most != TOKEN_ADMIN)
		return err_set(e, ERR_DENIED,
			"only administrators may create a token that sees the jobs of all users");
	return true;
}

static bool read_token_body(const struct request *r, struct token_row *t, struct err *e)
{
	const char *name = NULL, *role = "viewer", *scope = NULL;
	json_int_t expires = 0;
	int all = 0;
	json_error_t why;
	json_auto_t *body =
		json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);

	if (!body)
		return false;
	if (json_unpack_ex(body, &why, JSON_STRICT, "{s:s, s?s, s?s, s?I, s?b}", "name", &name,
		    "role", &role, "scope", &scope, "expires_in", &expires, "all", &all) < 0)
		return err_set(e, ERR_INVALID, "the body is not a token: %s", why.text);
	if (!job_name_check(name, e))
		return false;
	if (!token_role_parse(role, &t->role))
		return err_field(e, "role", "the role is '%.40s', not viewer, operator or admin", role);
	if (expires < 0 || expires > EXPIRES_MAX)
		return err_field(e, "expires_in", "a token can be valid for 1 second to 10 years");
	t->name = xstrdup(name);
	t->scope = scope && *scope ? xstrdup(scope) : NULL;
	t->everyone = all;
	t->expires_at = expires ? t->created_at + expires * USEC_SEC : 0;
	return check_scope(r, t->scope, e) && check_role(r, t, e);
}

static void on_token_added(struct op *op, void *arg)
{
	struct new_token *n = arg;
	struct request *r = request_ticket_redeem(n->ticket);
	char text[TOKEN_TEXT_LEN + 1];
	json_t *o;

	if (op->ok && r && request_tokens(r))
		token_cache_put(request_tokens(r), &n->row);
	if (r && op->ok) {
		token_text_write(&n->text, text);
		o = token_to_json(&n->row);
		json_object_set_new(o, "token", json_string(text));
		request_answer_json(r, 201, o);
		explicit_bzero(text, sizeof(text));
	} else if (r) {
		request_answer_err(r, &op->err);
	}
	op_free(op);
	new_token_free(n);
}

static void submit_token(struct request *r, struct store_read *q)
{
	struct new_token *from = (struct new_token *)q, *n = xcalloc(1, sizeof(*n));
	struct op *op = op_new(OP_TOKEN_ADD, on_token_added, n);

	n->row = from->row;
	n->text = from->text;
	from->row = (struct token_row){};
	op_fill(token_add_op(op), .row = &n->row);
	n->ticket = request_ticket(r, true);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

static bool run_token_owner(struct store *s, struct store_read *q, struct err *e)
{
	struct new_token *n = (struct new_token *)q;

	(void)s;
	return n->row.owner_name || user_lookup_name(owner_uid(n->row.owner), n->user_mode,
					    &n->row.owner_name, e);
}

static struct new_token *new_token_make(struct request *r)
{
	struct new_token *n = xcalloc(1, sizeof(*n));
	const char *by = client_user_name(r);

	n->user_mode = r->context->user_mode;
	n->row.owner = request_owner(r);
	n->row.owner_name = xstrdup(client_user_owner_name(r));
	n->row.created_by = by ? xstrdup(by) : xprintf("uid %u", r->who.uid);
	n->row.created_at = request_now(r);
	n->q.run = run_token_owner;
	n->q.then = submit_token;
	n->q.free = free_new_token;
	token_make_secret(&n->row, &n->text);
	return n;
}

void route_token_add(struct request *r)
{
	struct new_token *n = new_token_make(r);
	struct err e = {};

	if (read_token_body(r, &n->row, &e)) {
		store_read_start(r, &n->q);
		return;
	}
	request_answer_err(r, &e);
	new_token_free(n);
}

static bool read_once_body(const struct request *r, struct token_row *t, struct err *e)
{
	const char *role = "viewer";
	json_error_t why;
	json_auto_t *body = r->body.len ? json_read_bounded(r->body.data, r->body.len, r->body.len,
						  JSON_MEMBERS_MAX, e)
					: json_object();

	if (!body)
		return false;
	if (json_unpack_ex(body, &why, JSON_STRICT, "{s?s}", "role", &role) < 0)
		return err_set(e, ERR_INVALID, "the body is not a role: %s", why.text);
	if (!token_role_parse(role, &t->role))
		return err_field(e, "role", "the role is '%.40s', not viewer, operator or admin", role);
	if (request_is_tcp(r))
		return err_set(e, ERR_DENIED, "a one-time token is made on the Unix socket only");
	/* an administrator sees the jobs of all users, also as a viewer */
	t->everyone = t->role == TOKEN_VIEWER && request_sees_all(r);
	return check_role(r, t, e);
}

void route_token_once(struct request *r)
{
	struct new_token *n = new_token_make(r);
	struct err e = {};

	n->row.kind = TOKEN_ONCE;
	n->row.expires_at = n->row.created_at + ONCE_LIFE;
	if (read_once_body(r, &n->row, &e)) {
		store_read_start(r, &n->q);
		return;
	}
	request_answer_err(r, &e);
	new_token_free(n);
}

/* ---- revoke ---- */

struct token_removal {
	struct ticket *ticket;
	char *ref; /* owned */
};

static void on_token_removed(struct op *op, void *arg)
{
	struct token_removal *t = arg;
	struct request *r = request_ticket_redeem(t->ticket);
	const struct op_token_remove *o = token_remove_op(op);

	if (r && op->ok && request_tokens(r))
		token_cache_remove(request_tokens(r), o->id);
	if (r && !op->ok)
		request_answer_err(r, &op->err);
	else if (r)
		request_answer_json(r, 200,
			json_pack("{s:s, s:o}", "id", o->id, "name",
				json_value_text(o->name[0] ? o->name : NULL)));
	op_free(op);
	free(t->ref);
	free(t);
}

void token_make_removal(struct request *r, const char *ref, int64_t scope)
{
	struct token_removal *t = xcalloc(1, sizeof(*t));
	struct op *op = op_new(OP_TOKEN_REMOVE, on_token_removed, t);

	t->ref = xstrdup(ref);
	op_fill(token_remove_op(op), .ref = t->ref, .owner = scope, .now = request_now(r));
	t->ticket = request_ticket(r, true);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

void route_token_remove(struct request *r)
{
	token_make_removal(r, r->params[0], request_scope(r));
}
