/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for the session of a browser: log in, show, log out. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/api/auth/token_cache.h"
#include "daemon/api/client_user.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/routes/token_make.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "daemon/api/web_listener.h"
#include "store/ops/op.h"
#include "store/ops/tokens.h"
#include "store/store.h"
#include "store/token_row.h"
#include "wire/json_read.h"
#include "wire/json_value.h"
#include <stdio.h>
#include <string.h>

static json_t *session_to_json(const char *user, uint32_t uid, enum token_role role, usec_t expires)
{
	return json_pack("{s:o, s:I, s:s, s:o}", "user", json_value_text(user), "uid",
		(json_int_t)uid, "role", token_role_name(role), "expires",
		json_value_time(expires));
}

void route_session_get(struct request *r)
{
	const char *name = client_user_name(r);
	AUTO_TEXT number = name ? NULL : xprintf("%u", r->who.uid);

	request_answer_json(r, 200,
		session_to_json(name ? name : number, r->who.uid, request_token_role(r),
			r->token_expires));
}

/* ---- log in ---- */

struct login {
	struct ticket *ticket;
	struct token_row row;
	struct token_text text;
	char *spend; /* owned: id of a one-time token; NULL: none */
};

static void login_free(struct login *l)
{
	token_row_done(&l->row);
	explicit_bzero(&l->text, sizeof(l->text));
	free(l->spend);
	free(l);
}

static void on_logged_in(struct op *op, void *arg)
{
	struct login *l = arg;
	struct request *r = request_ticket_redeem(l->ticket);
	char text[TOKEN_TEXT_LEN + 1];

	if (r && op->ok) {
		if (l->spend)
			token_cache_remove(request_tokens(r), l->spend);
		token_cache_put(request_tokens(r), &l->row);
		token_text_write(&l->text, text);
		request_set_cookie(r, text, l->row.expires_at - l->row.created_at);
		explicit_bzero(text, sizeof(text));
		request_answer_json(r, 200,
			session_to_json(l->row.owner_name, owner_uid(l->row.owner), l->row.role,
				l->row.expires_at));
	} else if (r) {
		request_answer_err(r, &op->err);
	}
	op_free(op);
	login_free(l);
}

/* A session has the rights of its token and does not outlive it. */
static struct login *login_new(const struct request *r, const struct token_row *from)
{
	struct login *l = xcalloc(1, sizeof(*l));
	struct token_row *t = &l->row;

	t->kind = TOKEN_SESSION;
	t->role = from->role;
	t->everyone = from->everyone;
	t->owner = from->owner;
	t->owner_name = xstrdup(from->owner_name);
	t->scope = xstrdup(from->scope);
	t->created_by = xstrdup(from->owner_name);
	t->created_at = request_now(r);
	t->expires_at = t->created_at + request_session_life(r);
	if (from->kind == TOKEN_ONCE)
		l->spend = xstrdup(from->id);
	else
		t->parent = xstrdup(from->id);
	if (from->kind == TOKEN_API && from->expires_at && from->expires_at < t->expires_at)
		t->expires_at = from->expires_at;
	token_make_secret(t, &l->text);
	return l;
}

static bool find_login_token(struct request *r, const struct token_row **ret, struct err *e)
{
	json_auto_t *body =
		json_read_bounded(r->body.data, r->body.len, r->body.len, JSON_MEMBERS_MAX, e);
	const char *text = NULL;
	json_error_t why;

	if (!body)
		return false;
	if (!request_is_tcp(r))
		return err_set(e, ERR_INVALID,
			"a session is for a browser over TCP; the Unix socket needs no login");
	if (json_unpack_ex(body, &why, JSON_STRICT, "{s:s}", "token", &text) < 0)
		return err_set(e, ERR_INVALID, "the body has no token: %s", why.text);
	*ret = request_token_find(r, text, strlen(text));
	if (*ret && (*ret)->kind != TOKEN_SESSION)
		return true;
	if (request_login_failed(r, e))
		return false;
	return err_set(e, ERR_UNAUTHENTICATED,
		"the token is not valid: it is unknown, was used or revoked, or has expired");
}

void route_session_open(struct request *r)
{
	const struct token_row *from = NULL;
	struct err e = {};
	struct login *l;
	struct op *op;

	if (!find_login_token(r, &from, &e)) {
		request_answer_err(r, &e);
		return;
	}
	snprintf(r->token_name, sizeof(r->token_name), "%s",
		from->name ? from->name : token_kind_name(from->kind));
	l = login_new(r, from);
	op = op_new(OP_TOKEN_ADD, on_logged_in, l);
	op_fill(token_add_op(op), .row = &l->row, .spend = l->spend);
	l->ticket = request_ticket(r, true);
	request_act(r, op);
	op->act.by.uid = owner_uid(l->row.owner);
	op->act.by.number = l->row.owner;
	snprintf(op->act.by.who, sizeof(op->act.by.who), "%s", l->row.owner_name);
	store_thread_submit(r->context->store, op);
}

/* ---- log out ---- */

void route_session_close(struct request *r)
{
	struct err e = {};

	if (r->by_cookie) {
		request_set_cookie(r, NULL, 0);
		token_make_removal(r, r->token_id, OWNER_ALL);
		return;
	}
	err_set(&e, ERR_INVALID, "this request has no session; a token ends with 'jobctl token revoke'");
	request_answer_err(r, &e);
}

void route_web_listener(struct request *r)
{
	web_listener_start(r);
}
