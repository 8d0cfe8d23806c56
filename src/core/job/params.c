/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, merges and substitutes parameters; values never reach a shell parser. */
#include "core/job/params.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include <string.h>

bool param_name_valid(const char *s, size_t len)
{
	return len <= PARAM_NAME_MAX && text_is_name(s, len);
}

static const char *param_find(const struct strv *params, const char *name, size_t len)
{
	for (size_t i = 0; params && i < params->n; i++) {
		const char *p = params->v[i];

		if (strncmp(p, name, len) == 0 && (p[len] == '=' || !p[len]))
			return p;
	}
	return NULL;
}

const char *param_value(const struct strv *params, const char *name, size_t len)
{
	const char *p = param_find(params, name, len);

	return p && p[len] ? p + len + 1 : NULL;
}

/* The meaning of an opening brace in a command. */
enum piece { PIECE_BRACE /* {{ */, PIECE_NAME /* {NAME} */, PIECE_PLAIN };

static enum piece brace_kind(const char *at /* "{…" */, size_t *ret_name_len)
{
	size_t len = strcspn(at + 1, "}");

	if (at[1] == '{')
		return PIECE_BRACE;
	*ret_name_len = len;
	return at[1 + len] == '}' && param_name_valid(at + 1, len) ? PIECE_NAME : PIECE_PLAIN;
}

/* The next {NAME} of a word; NULL: none. */
static const char *next_name(const char *at, size_t *ret_len)
{
	while ((at = strchr(at, '{'))) {
		enum piece p = brace_kind(at, ret_len);

		if (p == PIECE_NAME)
			return at + 1;
		at += p == PIECE_BRACE ? 2 : 1;
	}
	return NULL;
}

/* ---- checks ---- */

static void list_names(const struct strv *declared, struct buf *out)
{
	for (size_t i = 0; i < declared->n; i++)
		buf_printf(out, "%s%.*s", i ? ", " : "", (int)strcspn(declared->v[i], "="), declared->v[i]);
	if (declared->n == 0)
		buf_str(out, "none");
}

static bool refuse_shell(const char *field, const char *name, size_t len, struct err *e)
{
	return err_field(e, field, "'{%.*s}' would be read by a shell, where a value could become a command; write "
		"\"$JOBSCHED_PARAM_%.*s\" there instead", (int)len, name, (int)len, name);
}

/* Whether the path of a program names a shell. */
static bool is_shell(const char *word)
{
	static const char *const shells[] = {"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "rbash"};
	const char *slash = strrchr(word, '/');

	for (size_t i = 0; i < ELEMENTS(shells); i++)
		if (strcmp(slash ? slash + 1 : word, shells[i]) == 0)
			return true;
	return false;
}

/* "-c", "-ec": the next word is parsed by the shell. */
static bool is_command_option(const char *word)
{
	return word[0] == '-' && word[1] != '-' && strchr(word, 'c');
}

/* Shell options that take a value. */
static bool takes_value(const char *word)
{
	static const char *const those[] = {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"};

	for (size_t i = 0; i < ELEMENTS(those); i++)
		if (strcmp(word, those[i]) == 0)
			return true;
	return false;
}

/* Whether word i is parsed by a shell named before it, also after env, sudo, nice and the like. */
static bool read_by_shell(const struct strv *command, size_t i)
{
	bool shell = false, option = false;

	for (size_t k = 0; k < i; k++) {
		if (shell && (command->v[k][0] == '-' || command->v[k][0] == '+')) {
			option = option || is_command_option(command->v[k]);
			k += takes_value(command->v[k]);
			continue;
		}
		if (option)
			return false; /* the parsed text came before; this word is an argument */
		shell = is_shell(command->v[k]);
	}
	return option;
}

static bool check_word(const struct strv *command, size_t i, const struct strv *declared, struct err *e)
{
	const char *at = command->v[i];
	size_t len;

	while ((at = next_name(at, &len))) {
		AUTO_DONE(buf) names = {};

		if (param_find(declared, at, len)) {
			if (read_by_shell(command, i))
				return refuse_shell("command", at, len, e);
			at += len;
			continue;
		}
		list_names(declared, &names);
		return err_field(e, "command", "there is no parameter '%.*s'; declared: %.300s (write '{{%.*s}' for the "
			"braces themselves)", (int)len, at, names.data, (int)len, at);
	}
	return true;
}

/* Shell scripts contain ${NAME} and other braces; only names of declared parameters are refused. */
static bool check_script(const char *script, const struct strv *declared, struct err *e)
{
	const char *at = script;
	size_t len;

	while ((at = next_name(at, &len))) {
		if (param_find(declared, at, len) && (at - script < 2 || at[-2] != '$'))
			return refuse_shell("script", at, len, e);
		at += len;
	}
	return true;
}

bool params_check(const struct job_spec *s, const struct strv *declared, struct err *e)
{
	if (declared->n == 0)
		return true;
	if (s->script)
		return check_script(s->script, declared, e);
	for (size_t i = 0; i < s->command.n; i++)
		if (!check_word(&s->command, i, declared, e))
			return false;
	return true;
}

/* ---- merging ---- */

static bool refuse_name(const char *name, size_t len, const char *what, const struct strv *declared, struct err *e)
{
	AUTO_DONE(buf) names = {};

	list_names(declared, &names);
	return err_field(e, "params", "%s '%.*s'; declared: %.300s", what, (int)(len > PARAM_NAME_MAX ? PARAM_NAME_MAX : len),
		name, names.data);
}

void params_merge(const struct strv *declared, const struct strv *given, struct strv *ret)
{
	for (size_t i = 0; i < declared->n; i++) {
		const char *p = declared->v[i];
		const char *over = param_find(given, p, strcspn(p, "="));

		strv_add(ret, over ? over : p);
	}
}

bool params_overlay(const struct strv *declared, const struct strv *given, struct strv *ret, struct err *e)
{
	for (size_t i = 0; given && i < given->n; i++) {
		size_t len = strcspn(given->v[i], "=");

		if (!param_find(declared, given->v[i], len))
			return refuse_name(given->v[i], len, "there is no parameter", declared, e);
	}
	for (size_t i = 0; i < declared->n; i++) {
		size_t len = strcspn(declared->v[i], "=");

		if (!declared->v[i][len] && !param_value(given, declared->v[i], len))
			return refuse_name(declared->v[i], len, "a value is missing for the parameter", declared, e);
	}
	params_merge(declared, given, ret);
	return true;
}

bool params_of_run(const struct job_spec *s, const struct strv *given, struct strv *ret, struct err *e)
{
	AUTO_DONE(strv) values = {};
	AUTO_DONE(strv) argv = {};

	if (!params_overlay(&s->params, given, &values, e))
		return false;
	params_expand(&s->command, &values, &argv);
	if (!job_command_fits(&argv, e))
		return err_wrap(e, "with these parameters");
	*ret = values;
	values = (struct strv){};
	return true;
}

/* ---- substitution ---- */

static char *expand_word(const char *word, const struct strv *params)
{
	AUTO_DONE(buf) out = {};
	const char *brace, *value;
	size_t len;

	while ((brace = strchr(word, '{'))) {
		enum piece p = brace_kind(brace, &len);

		buf_add(&out, word, (size_t)(brace - word));
		value = p == PIECE_NAME ? param_value(params, brace + 1, len) : NULL;
		if (value)
			buf_str(&out, value);
		else
			buf_char(&out, '{');
		word = brace + (value ? len + 2 : p == PIECE_BRACE ? 2 : 1);
	}
	buf_str(&out, word);
	return buf_steal(&out);
}

void params_expand(const struct strv *words, const struct strv *params, struct strv *ret)
{
	for (size_t i = 0; i < words->n; i++) {
		if (params->n)
			strv_take(ret, expand_word(words->v[i], params));
		else
			strv_add(ret, words->v[i]);
	}
}
