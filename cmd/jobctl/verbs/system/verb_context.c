/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs for contexts. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/args.h"
#include "jobctl/contexts.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include "wire/http_url.h"
#include <stdlib.h>
#include <string.h>

#define CONTEXT_CELL(fn, key)                                                                      \
	static void fn(const json_t *row, const struct cell_style *style, struct buf *out)         \
	{                                                                                          \
		const char *text = member_text(row, key);                                          \
												   \
		(void)style;                                                                       \
		buf_str(out, text ? text : "");                                                    \
	}
CONTEXT_CELL(cell_context_name, "name")
CONTEXT_CELL(cell_context_url, "url")
CONTEXT_CELL(cell_context_token, "token_file")
CONTEXT_CELL(cell_context_ca, "ca_file")

static void cell_context_current(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	buf_str(out, json_is_true(json_object_get(row, "current")) ? "current" : "");
}

static void put_context_name(const json_t *row, struct buf *out)
{
	cell_context_name(row, NULL, out);
}

static const struct column columns[] = {
	{{"CONTEXT", false, false}, "name", false, cell_context_name},
	{{"URL", false, false}, "url", false, cell_context_url},
	{{"USED", false, false}, "current", false, cell_context_current},
	{{"TOKEN-FILE", false, false}, "token_file", false, cell_context_token},
	{{"CA-FILE", false, false}, "ca_file", true, cell_context_ca},
};
static const struct row_kind context_rows = {columns, ELEMENTS(columns), put_context_name};

int verb_context_list(struct ctl *c, const struct args *a)
{
	json_auto_t *all = NULL;
	struct rows rows = {};
	struct err e = {};
	const char *name;
	json_t *one;

	(void)a;
	if (!contexts_read(&all, &e))
		return ctl_fail(&e);
	rows_begin(&rows, c, &context_rows);
	json_object_foreach(json_object_get(all, "contexts"), name, one) {
		json_auto_t *row = json_copy(one);

		json_object_set_new(row, "name", json_string(name));
		json_object_set_new(row, "current",
			json_boolean(text_equal(name, member_text(all, "current"))));
		rows_add(&rows, row);
	}
	rows_end(&rows);
	return EXIT_SUCCESS;
}

/* A relative path would mean another file in another directory. */
static bool set_file(const struct args *a, const char *option, const char *member, json_t *one,
	struct err *e)
{
	const char *given = args_last(a, option);
	AUTO_TEXT path = given ? realpath(given, NULL) : NULL;

	if (given && !path)
		return err_set(e, ERR_INVALID, "--%s: there is no file '%s'", option, given);
	if (path)
		json_object_set_new(one, member, json_string(path));
	return true;
}

static bool make_context(const struct args *a, json_t *one, struct err *e)
{
	AUTO_DONE(http_url) url = {};
	AUTO_TEXT token = NULL;

	if (!args_last(a, "url"))
		return err_set(e, ERR_INVALID, "--url is required: https://HOST:PORT");
	if (!http_url_parse(args_last(a, "url"), &url, e) ||
		(args_last(a, "token-file") &&
			!contexts_read_token(args_last(a, "token-file"), &token, e)))
		return false;
	json_object_set_new(one, "url", json_string(args_last(a, "url")));
	return set_file(a, "token-file", "token_file", one, e) &&
	       set_file(a, "ca-file", "ca_file", one, e);
}

int verb_context_add(struct ctl *c, const struct args *a)
{
	json_auto_t *all = NULL, *one = json_object();
	struct err e = {};
	char *const *words;

	(void)c;
	args_operands(a, &words);
	if (!make_context(a, one, &e) || !contexts_read(&all, &e))
		return ctl_fail(&e);
	json_object_set(json_object_get(all, "contexts"), words[0], one);
	if (!contexts_write(all, &e))
		return ctl_fail(&e);
	ctl_say("added context '%s' (jobctl context use %s)", words[0], words[0]);
	return EXIT_SUCCESS;
}

int verb_context_use(struct ctl *c, const struct args *a)
{
	json_auto_t *all = NULL;
	const json_t *found;
	struct err e = {};
	char *const *words;
	bool none;

	(void)c;
	args_operands(a, &words);
	none = strcmp(words[0], "none") == 0;
	if (!contexts_read(&all, &e) || (!none && !contexts_find(all, words[0], &found, &e)))
		return ctl_fail(&e);
	json_object_set_new(all, "current", none ? json_null() : json_string(words[0]));
	if (!contexts_write(all, &e))
		return ctl_fail(&e);
	if (none)
		ctl_say("the daemon of this machine is used");
	else
		ctl_say("'%s' is used from now on (jobctl context use none)", words[0]);
	return EXIT_SUCCESS;
}

int verb_context_rm(struct ctl *c, const struct args *a)
{
	json_auto_t *all = NULL;
	const json_t *found;
	struct err e = {};
	char *const *words;

	(void)c;
	args_operands(a, &words);
	if (!contexts_read(&all, &e) || !contexts_find(all, words[0], &found, &e))
		return ctl_fail(&e);
	json_object_del(json_object_get(all, "contexts"), words[0]);
	if (text_equal(member_text(all, "current"), words[0]))
		json_object_set_new(all, "current", json_null());
	if (!contexts_write(all, &e))
		return ctl_fail(&e);
	ctl_say("removed context '%s'; its token file is kept", words[0]);
	return EXIT_SUCCESS;
}
