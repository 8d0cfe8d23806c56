/* SPDX-License-Identifier: Apache-2.0 */
/* jobctl status, jobctl version, and jobctl alone. */
#include "api.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "ctl.h"
#include "out.h"
#include "run_verb.h"
#include "words.h"
#include <inttypes.h>
#include <string.h>

/* Counts by state in the order of the table, those that are not zero: "3 active, 1 finished". */
static void put_counts(const json_t *counts, struct buf *out)
{
	const char *state, *gap = "";
	const json_t *n;

	json_object_foreach((json_t *)counts, state, n) {
		if (json_integer_value(n) == 0)
			continue;
		buf_printf(out, "%s%" JSON_INTEGER_FORMAT " %s", gap, json_integer_value(n), state);
		gap = ", ";
	}
	if (!*gap)
		buf_str(out, "none");
}

/* A member and what is in it, whatever kind of value it has. */
static void put_value(const struct ctl *c, const char *key, const json_t *value, struct buf *out)
{
	char words[WORDS_MAX];
	const char *text = json_string_value(value);
	usec_t t;

	if (text && parse_rfc3339(text, &t, NULL) && *text != '@')
		buf_printf(out, "%s (%s)", words_relative(t, c->now, words), text);
	else if (text)
		text_escape(out, text, strlen(text));
	else if (json_is_object(value))
		put_counts(value, out);
	else if (strcmp(key, "uptime") == 0)
		buf_str(out, words_duration((usec_t)(json_number_value(value) * USEC_SEC), words));
	else if (json_is_boolean(value))
		buf_str(out, json_is_true(value) ? "yes" : "no");
	else if (json_is_integer(value))
		buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		buf_str(out, "-");
}

static void put_status(const struct ctl *c, const json_t *status, struct buf *out)
{
	const json_t *value;
	const char *key;

	json_object_foreach((json_t *)status, key, value) {
		AUTO_TEXT label = xstrdup(key);

		for (char *p = strchr(label, '_'); p; p = strchr(p, '_'))
			*p = ' ';
		buf_printf(out, "%-14s", label);
		put_value(c, key, value, out);
		buf_char(out, '\n');
	}
	buf_printf(out, "%-14s%s\n", "socket", c->socket);
}

int verb_status(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) out = {};
	json_auto_t *status = NULL;
	struct err e = {};

	(void)a;
	if (!api_call(c, "GET", "/v1/status", NULL, &status, &e))
		return ctl_fail(&e);
	if (c->format == FORMAT_JSON || c->format == FORMAT_JSONL)
		return out_object(c, status);
	put_status(c, status, &out);
	return out_text(&out);
}

int verb_version(struct ctl *c, const struct args *a)
{
	AUTO_DONE(buf) out = {};
	json_auto_t *status = NULL;
	const char *daemon = NULL;

	(void)a;
	if (api_call(c, "GET", "/v1/status", NULL, &status, NULL))
		daemon = member_text(status, "version");
	if (c->format == FORMAT_JSON || c->format == FORMAT_JSONL) {
		json_auto_t *o = json_pack("{s:s, s:s?}", "jobctl", PACKAGE_VERSION, "jobschedd", daemon);

		return out_object(c, o);
	}
	buf_printf(&out, "jobctl %s\n", PACKAGE_VERSION);
	if (daemon) {
		buf_str(&out, "jobschedd ");
		text_escape(&out, daemon, strlen(daemon));
		buf_printf(&out, " at %s\n", c->socket);
	}
	return out_text(&out);
}

static const char commands_to_try[] =
	"\nTry:\n"
	"  jobctl add -- echo hello              run a command now\n"
	"  jobctl add -n tidy --every 1h -- CMD  run one again and again\n"
	"  jobctl list                           see your jobs\n"
	"  jobctl log -f JOB                     watch the output of one\n"
	"  jobctl help                           all the verbs\n";

int verb_none(struct ctl *c)
{
	AUTO_DONE(buf) out = {};
	json_auto_t *status = NULL;
	struct err e = {};
	int code = EXIT_SUCCESS;

	if (api_call(c, "GET", "/v1/status", NULL, &status, &e))
		put_status(c, status, &out);
	else
		code = ctl_fail(&e);
	buf_str(&out, commands_to_try + (out.len == 0));
	out_flush(&out);
	return code;
}
