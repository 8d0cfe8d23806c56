/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl add'. */
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "core/crontab/crontab.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/follow.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "jobctl/render/columns.h"
#include "jobctl/render/dry_run.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/spec_args.h"
#include "jobctl/verbs/next_run.h"
#include "jobctl/verbs/verbs.h"
#include "wire/json_value.h"
#include "wire/spec_json.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Reads the script from standard input. */
static bool read_script(struct job_spec *s, const struct args *a, struct err *e)
{
	const struct job_field *f = job_field_find("script");
	const char *from = args_last(a, "stdin");
	AUTO_DONE(buf) text = {};
	int r;

	if (isatty(STDIN_FILENO) || (from && strcmp(from, "-") == 0))
		return err_set(e, ERR_INVALID,
			"no command; write it after '--': jobctl add -- COMMAND");
	r = io_read_all(STDIN_FILENO, &text, (size_t)f->max);
	if (r == -EFBIG)
		return err_set(e, ERR_TOO_LARGE, "the script has more than %" PRId64 " bytes",
			f->max);
	if (r < 0)
		return err_errno(e, -r, "cannot read the script from standard input");
	if (text.len == 0)
		return err_set(e, ERR_INVALID,
			"no command, and standard input is empty; write it after '--': jobctl add -- COMMAND");
	if (strlen(text.data) != text.len)
		return err_set(e, ERR_INVALID, "the script on standard input contains NUL bytes");
	/* its lines would be run as a shell script now */
	if (crontab_recognise(text.data))
		return err_set(e, ERR_INVALID,
			"standard input is a crontab, not a script; nothing was added: 'jobctl import crontab -' adds "
			"its entries");
	s->script = buf_steal(&text);
	return true;
}

/* Directory and time zone get their usual defaults unless the template sets them. */
static bool read_template_options(struct ctl *c, const struct args *a, struct job_spec *s,
	struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/templates/%s", args_last(a, "template"));
	json_auto_t *t = NULL;
	const json_t *definition;

	if (!job_name_check(args_last(a, "template"), NULL))
		return err_set(e, ERR_NOT_FOUND,
			"no template '%s'; 'jobctl template list' shows all templates",
			args_last(a, "template"));
	if (!spec_args_read_options(s, a, NULL, e) || !api_call(c, "GET", path, NULL, &t, e))
		return false;
	definition = json_object_get(t, "definition");
	if (!s->tz && !json_object_get(definition, "tz"))
		s->tz = local_zone();
	if (s->cwd || args_has(a, "as") || json_object_get(definition, "cwd") ||
		json_object_get(definition, "cwd_b64"))
		return true;
	return spec_args_set_field(s, job_field_find("cwd"), ".", e);
}

/* Adds options whose value is the default: they override the template too. */
static void keep_defaults(const struct job_spec *s, const struct args *a, json_t *o)
{
	json_auto_t *whole = spec_json_write_all(s);

	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		json_t *value = json_object_get(whole, f->name);

		if (f->flag && args_has(a, f->flag) && value && !json_is_null(value))
			json_object_set(o, f->name, value);
	}
}

static bool read_submission(struct ctl *c, const struct args *a, json_t **ret, struct err *e)
{
	const char *if_exists = args_last(a, "if-exists");
	AUTO_DONE(job_spec) spec;
	char *const *words;
	size_t n = args_operands(a, &words);
	const char *key = args_last(a, "key");
	json_t *o;

	job_spec_init(&spec);
	if (args_has(a, "template") ? !read_template_options(c, a, &spec, e)
				    : !spec_args_read(&spec, a, e))
		return false;
	if (n > 0 && strcmp(words[0], "-") == 0)
		return err_set(e, ERR_INVALID,
			"'-' is not a command; nothing was added: 'jobctl add <FILE' adds a script, 'jobctl import "
			"crontab -' the entries of a crontab on standard input");
	if (n > 0)
		spec_args_set_command(&spec, words, n);
	else if (!spec.template && call_kind_of(&spec) == CALL_NONE && !read_script(&spec, a, e))
		return false;
	if (!spec.tz && !spec.template)
		spec.tz = local_zone();
	if (!spec.template && !job_spec_check(&spec, e))
		return false;
	o = spec_json_write(&spec);
	if (spec.template)
		keep_defaults(&spec, a, o);
	if (if_exists)
		json_object_set_new(o, "if_exists", json_value_text(if_exists));
	if (key && json_object_set_new(o, "key", json_string(key)) < 0) {
		json_decref(o);
		return err_set(e, ERR_INVALID, "--key: the text must be UTF-8");
	}
	*ret = o;
	return true;
}

/*
 * A job with this key or name exists. The daemon keeps a key for some time after the end or removal
 * of its job.
 */
static void put_existing(const json_t *job, bool keyed, struct buf *line)
{
	const char *state = member_text(job, "state");
	int64_t id = member_int(job, "id");

	buf_str(line,
		keyed ? " was added with this key before" : " already exists; nothing was added");
	if (!keyed)
		return;
	if (text_equal(state, "removed"))
		buf_str(line,
			" and has been removed since; nothing was added (use another --key to add it again)");
	else if (text_equal(state, "cancelled"))
		buf_printf(line,
			" and has been cancelled since; nothing was added (jobctl resume %" PRId64
			")",
			id);
}

static void say_added(struct ctl *c, const json_t *job, bool keyed)
{
	AUTO_DONE(buf) line = {};
	bool existed = json_is_true(json_object_get(job, "existed"));
	bool replaced = json_is_true(json_object_get(job, "replaced"));

	buf_str(&line, replaced ? "replaced job " : existed ? "job " : "added job ");
	ref_job_words(job, &line);
	if (replaced)
		buf_printf(&line, " (revision %" PRId64 ")", member_int(job, "revision"));
	if (existed && !replaced)
		put_existing(job, keyed, &line);
	else
		next_run_words(c, job, &line);
	ctl_say("%s", line.data);
}

static int show_added(struct ctl *c, const json_t *job, bool follow, bool keyed)
{
	AUTO_DONE(buf) out = {};
	struct rows rows;

	switch (c->format) {
	case FORMAT_JSON:
	case FORMAT_JSONL:
		return render_object(c, job);
	case FORMAT_CSV:
		dry_run_say_findings(json_object_get(job, "findings"));
		rows_begin(&rows, c, &job_rows);
		rows_add(&rows, job);
		rows_end(&rows);
		return EXIT_SUCCESS;
	case FORMAT_NAME:
		dry_run_say_findings(json_object_get(job, "findings"));
		ref_of_job(job, &out);
		break;
	default:
		/*
		 * On a terminal the message is enough. A script reads the number, unless it follows
		 * the output.
		 */
		say_added(c, job, keyed);
		dry_run_say_findings(json_object_get(job, "findings"));
		if (c->terminal || follow)
			return EXIT_SUCCESS;
		buf_printf(&out, "%" PRId64, member_int(job, "id"));
	}
	buf_char(&out, '\n');
	return render_text(&out);
}

/* --wait and --follow: waits for the end of the first run. */
static int wait_first_run(struct ctl *c, const json_t *job, bool follow)
{
	json_auto_t *run = NULL, *final = NULL;
	struct follow_from from = {.attempt = 1, .raw = !c->terminal};
	struct err e = {};

	if (!follow_find(c, member_int(job, "id"), -1, &run, &e))
		return ctl_fail(&e);
	if (!run) {
		ctl_say("jobctl: job %" PRId64 " never ran", member_int(job, "id"));
		return EXIT_RUN_SKIPPED;
	}
	from.run = member_int(run, "id");
	if (follow && !follow_output(c, &from, &final, &e))
		return ctl_fail(&e);
	if (!follow && !follow_wait(c, from.run, -1, &final, &e))
		return ctl_fail(&e);
	follow_say(final, !follow);
	return follow_exit(final, false);
}

/* Options that cannot be combined with --dry-run. */
static bool check_dry_run(const struct ctl *c, const struct args *a, struct err *e)
{
	if (args_has(a, "wait") || args_has(a, "follow"))
		return err_set(e, ERR_INVALID, "give either --dry-run or --%s, not both",
			args_has(a, "wait") ? "wait" : "follow");
	if (c->format == FORMAT_CSV || c->format == FORMAT_NAME)
		return err_set(e, ERR_INVALID, "--dry-run is shown as text or JSON, not as %s",
			render_format_name(c->format));
	return true;
}

/* The API path, with the options that are not part of the definition. */
static void put_target(const struct args *a, struct buf *path)
{
	buf_str(path, "/v1/jobs");
	if (args_has(a, "as"))
		api_query_add(path, "as", args_last(a, "as"));
	if (args_has(a, "dry-run"))
		api_query_add(path, "dry_run", "true");
	else if (args_has(a, "paused"))
		api_query_add(path, "paused", "true");
}

static int dry_run(struct ctl *c, const struct args *a, const char *path, const json_t *submission)
{
	json_auto_t *job = NULL;
	struct err e = {};

	if (!check_dry_run(c, a, &e) || !api_call(c, "POST", path, submission, &job, &e))
		return ctl_fail(&e);
	return dry_run_show(c, job);
}

int verb_add(struct ctl *c, const struct args *a)
{
	json_auto_t *submission = NULL, *job = NULL;
	AUTO_DONE(buf) path = {};
	struct err e = {};
	int code;

	c->yes = args_has(a, "yes");
	if (!read_submission(c, a, &submission, &e))
		return ctl_fail(&e);
	put_target(a, &path);
	api_add_trace(submission);
	if (args_has(a, "dry-run"))
		return dry_run(c, a, path.data, submission);
	if (!api_call(c, "POST", path.data, submission, &job, &e)) {
		if (e.kind == ERR_UNCERTAIN)
			err_set(&e, e.kind,
				"%s; the job may or may not have been added: check with 'jobctl list'. With --key the "
				"command can be repeated safely",
				e.msg);
		return ctl_fail(&e);
	}
	code = show_added(c, job, args_has(a, "follow"), args_has(a, "key"));
	if (code == 0 && (args_has(a, "follow") || args_has(a, "wait")))
		return wait_first_run(c, job, args_has(a, "follow"));
	return code;
}
