/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs for tokens of the API over TCP. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/token.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

/* ---- list ---- */

#define TOKEN_CELL(fn, key)                                                                        \
	static void fn(const json_t *row, const struct cell_style *style, struct buf *out)         \
	{                                                                                          \
		const char *text = member_text(row, key);                                          \
												   \
		(void)style;                                                                       \
		buf_str(out, text ? text : "");                                                    \
	}
#define TIME_CELL(fn, key)                                                                         \
	static void fn(const json_t *row, const struct cell_style *style, struct buf *out)         \
	{                                                                                          \
		if (json_is_string(json_object_get(row, key)))                                     \
			cell_put_time(row, key, style, out);                                       \
		else                                                                               \
			buf_str(out, "never");                                                     \
	}

TOKEN_CELL(cell_token_id, "id")
TOKEN_CELL(cell_token_kind, "kind")
TOKEN_CELL(cell_token_role, "role")
TOKEN_CELL(cell_token_owner, "owner")
TOKEN_CELL(cell_token_scope, "scope")
TOKEN_CELL(cell_token_by, "created_by")
TIME_CELL(cell_token_created, "created_at")
TIME_CELL(cell_token_expires, "expires_at")

static void cell_token_name(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const char *name = member_text(row, "name");

	(void)style;
	buf_str(out, name ? name : member_text(row, "id"));
}

/* Whose jobs the token sees. */
static void cell_token_jobs(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	buf_str(out, json_is_true(json_object_get(row, "all")) ? "all" : "own");
}

static void put_token_name(const json_t *row, struct buf *out)
{
	cell_token_name(row, NULL, out);
}

static const struct column columns[] = {
	{{"TOKEN", false, false}, "name", false, cell_token_name},
	{{"KIND", false, false}, "kind", false, cell_token_kind},
	{{"ROLE", false, false}, "role", false, cell_token_role},
	{{"OWNER", false, false}, "owner", false, cell_token_owner},
	{{"JOBS", false, false}, "all", false, cell_token_jobs},
	{{"EXPIRES", false, false}, "expires_at", false, cell_token_expires},
	{{"SCOPE", false, false}, "scope", false, cell_token_scope},
	{{"CREATED", false, false}, "created_at", true, cell_token_created},
	{{"BY", false, false}, "created_by", true, cell_token_by},
	{{"ID", false, false}, "id", true, cell_token_id},
};
static const struct row_kind tokens = {columns, ELEMENTS(columns), put_token_name};

int verb_token_list(struct ctl *c, const struct args *a)
{
	json_auto_t *answer = NULL;
	struct err e = {};

	(void)a;
	if (!api_call(c, "GET", "/v1/tokens", NULL, &answer, &e))
		return ctl_fail(&e);
	rows_print_all(c, &tokens, json_object_get(answer, "tokens"), "there are no tokens (jobctl token add NAME)");
	return EXIT_SUCCESS;
}

/* ---- add ---- */

static bool read_token_options(const struct args *a, json_t *body, struct err *e)
{
	const char *role = args_last(a, "role"), *expires = args_last(a, "expires");
	AUTO_DONE(buf) scope = {};
	enum token_role known;
	usec_t life;

	if (role && !token_role_parse(role, &known))
		return err_set(e, ERR_INVALID, "--role: '%s' is not viewer, operator or admin", role);
	if (role)
		json_object_set_new(body, "role", json_string(role));
	if (expires && !duration_parse(expires, &life, e))
		return err_wrap(e, "--expires");
	if (expires)
		json_object_set_new(body, "expires_in",
			json_integer((life + USEC_SEC - 1) / USEC_SEC));
	for (size_t i = 0; i < args_count(a, "scope"); i++)
		buf_printf(&scope, "%s%s", i ? "," : "", args_nth(a, "scope", i));
	if (scope.len)
		json_object_set_new(body, "scope", json_string(scope.data));
	if (args_has(a, "all"))
		json_object_set_new(body, "all", json_true());
	return true;
}

int verb_token_add(struct ctl *c, const struct args *a)
{
	json_auto_t *body = json_object(), *answer = NULL;
	const char *owner = args_last(a, "owner");
	AUTO_DONE(buf) path = {};
	struct err e = {};
	char *const *words;

	args_operands(a, &words);
	json_object_set_new(body, "name", json_string(words[0]));
	buf_str(&path, "/v1/tokens");
	if (owner)
		api_query_add(&path, "as", owner);
	if (!read_token_options(a, body, &e) ||
		!api_call(c, "POST", path.data, body, &answer, &e))
		return ctl_fail(&e);
	if (render_wants_json(c))
		return render_object(c, answer);
	printf("%s\n", member_text(answer, "token"));
	ctl_say("token '%s' (role %s, owner '%s') is shown only once; keep it in a file that only you can read",
		words[0], member_text(answer, "role"), member_text(answer, "owner"));
	return EXIT_SUCCESS;
}

/* ---- revoke ---- */

int verb_token_revoke(struct ctl *c, const struct args *a)
{
	char *const *words;
	size_t n = args_operands(a, &words);
	int worst = EXIT_SUCCESS;

	for (size_t i = 0; i < n; i++) {
		json_auto_t *answer = NULL;
		AUTO_TEXT path = NULL;
		struct err e = {};

		if (!*words[i] || strspn(words[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
						   "0123456789._-") != strlen(words[i]))
			err_set(&e, ERR_INVALID, "'%.128s' is not a token; see 'jobctl token list'",
				words[i]);
		path = xprintf("/v1/tokens/%s", words[i]);
		if (e.kind != ERR_NONE || !api_call(c, "DELETE", path, NULL, &answer, &e)) {
			worst = ctl_fail(&e);
			continue;
		}
		ctl_say("revoked '%s'", words[i]);
	}
	return worst;
}
