/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs of 'jobctl template'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/spec/spec_args.h"
#include "jobctl/spec/spec_form.h"
#include "jobctl/verbs/verbs.h"
#include "wire/spec_json.h"
#include <inttypes.h>
#include <string.h>

static bool template_path(const char *name, struct buf *out, struct err *e)
{
	if (!job_name_check(name, NULL))
		return err_set(e, ERR_INVALID,
			"'%s' is not a template name; a name has letters, digits, '.', '_' and '-'",
			name);
	buf_printf(out, "/v1/templates/%s", name);
	return true;
}

/* ---- add ---- */

/* Declares the parameters: --param host is required for each job, --param days=7 has a default. */
static void set_param_defaults(json_t *body, const struct args *a)
{
	json_t *params = json_object();

	for (size_t i = 0; i < args_count(a, "param"); i++) {
		const char *text = args_nth(a, "param", i);
		AUTO_TEXT name = xstrndup(text, strcspn(text, "="));

		json_object_set_new(params, name,
			text[strlen(name)] ? json_string(text + strlen(name) + 1) : json_null());
	}
	json_object_set_new(body, "params", params);
}

static bool read_template_args(const struct args *a, json_t **ret, struct err *e)
{
	AUTO_DONE(job_spec) spec;
	char *const *words;
	size_t n = args_operands(a, &words);

	job_spec_init(&spec);
	if (args_has(a, "name") || args_has(a, "template"))
		return err_set(e, ERR_INVALID, "--%s belongs to the jobs that use the template",
			args_has(a, "name") ? "name" : "template");
	if (n < 2)
		return err_set(e, ERR_INVALID,
			"no command; write it after '--': jobctl template add NAME -- COMMAND");
	if (!spec_args_read_options(&spec, a, "param", e))
		return false;
	spec_args_set_command(&spec, words + 1, n - 1);
	*ret = spec_json_write(&spec);
	set_param_defaults(*ret, a);
	return true;
}

int verb_template_add(struct ctl *c, const struct args *a)
{
	json_auto_t *body = NULL, *answer = NULL;
	AUTO_DONE(buf) path = {};
	struct err e = {};
	char *const *words;

	args_operands(a, &words);
	if (!template_path(words[0], &path, &e) || !read_template_args(a, &body, &e) ||
	    !api_call(c, "PUT", path.data, body, &answer, &e))
		return ctl_fail(&e);
	if (render_wants_json(c))
		return render_object(c, answer);
	if (member_int(answer, "revision") == 1)
		ctl_say("added template '%s'; use it with 'jobctl add --template %s'", words[0],
			words[0]);
	else
		ctl_say("replaced template '%s' (revision %" PRId64
			"); existing jobs are not changed",
			words[0], member_int(answer, "revision"));
	return EXIT_SUCCESS;
}

/* ---- list ---- */

static void cell_template_name(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	buf_str(out, member_text(row, "name"));
}

static void cell_owner(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	buf_str(out, member_text(row, "owner"));
}

static void cell_params(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const char *name, *gap = "";
	json_t *v;

	(void)style;
	json_object_foreach(json_object_get(row, "params"), name, v) {
		buf_printf(out, "%s%s", gap, name);
		if (json_is_string(v))
			buf_printf(out, "=%s", json_string_value(v));
		gap = " ";
	}
}

static void cell_updated(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(row, "updated_at", style, out);
}

static const struct column columns[] = {
	{{"NAME", false, false}, "name", false, cell_template_name},
	{{"OWNER", false, false}, "owner", false, cell_owner},
	{{"UPDATED", false, false}, "updated_at", false, cell_updated},
	{{"PARAMS", false, false}, "params", false, cell_params},
};

static void template_name(const json_t *row, struct buf *out)
{
	buf_str(out, member_text(row, "name"));
}

static const struct row_kind template_rows = {columns, ELEMENTS(columns), template_name};

static bool show_row(const json_t *row, void *arg)
{
	rows_add(arg, row);
	return true;
}

static void show_page(void *arg)
{
	rows_page(arg);
}

int verb_template_list(struct ctl *c, const struct args *a)
{
	struct rows rows;
	struct pages pages = {.path = "/v1/templates",
		.member = "templates",
		.row = show_row,
		.page = show_page,
		.arg = &rows};
	struct err e = {};
	bool ok;

	(void)a;
	rows_begin(&rows, c, &template_rows);
	ok = api_pages(c, &pages, &e);
	rows_end(&rows);
	return ok ? EXIT_SUCCESS : ctl_fail(&e);
}

/* ---- show ---- */

static int show_text(const json_t *t, bool reveal)
{
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(buf) form = {};
	AUTO_DONE(buf) out = {};
	struct err e = {};
	const char *name;
	json_t *v;

	job_spec_init(&spec);
	if (!job_object_read_spec(json_object_get(t, "definition"), &spec, &e)) {
		e.kind = ERR_INTERNAL;
		return ctl_fail(&e);
	}
	buf_printf(&out, "# template %s of %s%s, revision %" PRId64 "\n", member_text(t, "name"),
		member_text(t, "owner"),
		json_is_true(json_object_get(t, "shared")) ? " (shared)" : "",
		member_int(t, "revision"));
	json_object_foreach(json_object_get(t, "params"), name, v) {
		buf_printf(&out, "params.%s%s", name, json_is_string(v) ? " = " : "  # required");
		if (json_is_string(v))
			text_escape(&out, json_string_value(v), json_string_length(v));
		buf_char(&out, '\n');
	}
	spec_form_write(&spec, reveal ? NULL : job_env_secret, &form);
	buf_add(&out, form.data, form.len);
	return render_text(&out);
}

int verb_template_show(struct ctl *c, const struct args *a)
{
	json_auto_t *t = NULL;
	AUTO_DONE(buf) path = {};
	struct err e = {};
	char *const *words;

	args_operands(a, &words);
	if (!template_path(words[0], &path, &e) || !api_call(c, "GET", path.data, NULL, &t, &e))
		return ctl_fail(&e);
	if (render_wants_json(c))
		return render_object(c, t);
	return show_text(t, args_has(a, "reveal"));
}

/* ---- rm ---- */

int verb_template_rm(struct ctl *c, const struct args *a)
{
	char *const *words;
	size_t n = args_operands(a, &words);
	int code = EXIT_SUCCESS;

	for (size_t i = 0; i < n; i++) {
		json_auto_t *answer = NULL;
		AUTO_DONE(buf) path = {};
		struct err e = {};

		if (!template_path(words[i], &path, &e) ||
			!api_call(c, "DELETE", path.data, NULL, &answer, &e)) {
			int failed = ctl_fail(&e);

			code = code ? code : failed;
		} else if (render_wants_json(c)) {
			render_object(c, answer);
		} else {
			ctl_say("removed template '%s'; existing jobs are kept", words[i]);
		}
	}
	return code;
}
