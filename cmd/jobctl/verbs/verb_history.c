/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl history'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/defs/definition.h"
#include "jobctl/member.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/spec/spec_form.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

/* ---- list ---- */

static void cell_revision(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	buf_printf(out, "%" PRId64, member_int(row, "revision"));
}

static void cell_revision_time(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(row, "at", style, out);
}

static void cell_by(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const char *by = member_text(row, "by");

	(void)style;
	if (by)
		buf_str(out, by);
	else
		buf_printf(out, "uid %" PRId64, member_int(row, "uid"));
}

static void cell_what(const json_t *row, const struct cell_style *style, struct buf *out)
{
	const char *what = member_text(row, "what");

	(void)style;
	if (member_int(row, "undo_to"))
		buf_printf(out, "undone to revision %" PRId64 ": ", member_int(row, "undo_to"));
	buf_str(out, what ? what : "");
}

static const struct column columns[] = {
	{{"REVISION", true, false}, "revision", false, cell_revision},
	{{"AT", false, false}, "at", false, cell_revision_time},
	{{"BY", false, false}, "by", false, cell_by},
	{{"WHAT", false, false}, "what", false, cell_what},
};

static void revision_name(const json_t *row, struct buf *out)
{
	buf_printf(out, "%" PRId64, member_int(row, "revision"));
}

static const struct row_kind revision_rows = {columns, ELEMENTS(columns), revision_name};

/* ---- differences ---- */

static bool form_of(const json_t *revision, bool reveal, struct buf *out, struct err *e)
{
	AUTO_DONE(job_spec) spec;

	job_spec_init(&spec);
	if (!job_object_read_spec(json_object_get(revision, "definition"), &spec, e))
		return err_wrap(e, "cannot read revision %" PRId64,
			member_int(revision, "revision"));
	spec_form_write(&spec, reveal ? NULL : job_env_secret, out);
	return true;
}

static const json_t *find_revision(const json_t *list, int64_t number)
{
	const json_t *r;
	size_t i;

	json_array_foreach(list, i, r)
		if (member_int(r, "revision") == number)
			return r;
	return NULL;
}

static int show_diff(const json_t *list, int64_t number, bool reveal)
{
	const json_t *now = find_revision(list, number), *before = find_revision(list, number - 1);
	AUTO_DONE(buf) a = {};
	AUTO_DONE(buf) b = {};
	AUTO_DONE(buf) out = {};
	struct err e = {};

	if (!now)
		err_set(&e, ERR_NOT_FOUND,
			"there is no revision %" PRId64
			"; 'jobctl history JOB' lists the revisions",
			number);
	if (e.kind || !form_of(now, reveal, &b, &e) || (before && !form_of(before, reveal, &a, &e)))
		return ctl_fail(&e);
	definition_diff(&a, &b, &out);
	return render_text(&out);
}

/* ---- verb ---- */

static bool keep_row(const json_t *row, void *arg)
{
	json_array_append(arg, (json_t *)row);
	return true;
}

/* The daemon keeps at most 100 revisions, which fit in one page. */
static bool read_history(struct ctl *c, const char *word, json_t *list, struct err *e)
{
	struct pages pages = {.member = "revisions", .row = keep_row, .arg = list, .limit = 100};
	json_auto_t *job = NULL;
	AUTO_TEXT path = NULL;
	struct ref ref;
	bool ok;

	if (!ref_parse(word, &ref, e) || !api_job(c, &ref, &job, e))
		return false;
	path = xprintf("/v1/jobs/%" PRId64 "/revisions", member_int(job, "id"));
	pages.path = path;
	ok = api_pages(c, &pages, e);
	free(pages.next_cursor);
	return ok;
}

int verb_history(struct ctl *c, const struct args *a)
{
	json_auto_t *list = json_array();
	struct err e = {};
	struct rows rows;
	char *const *words;
	int64_t number = 0;
	const json_t *row;
	size_t i;

	args_operands(a, &words);
	if (args_has(a, "diff") && !text_parse_int(args_last(a, "diff"), 1, INT64_MAX, &number))
		err_set(&e, ERR_INVALID, "--diff: '%s' is not the number of a revision",
			args_last(a, "diff"));
	else if (number && !render_is_text(c))
		err_set(&e, ERR_INVALID, "--diff is text, not %s", render_format_name(c->format));
	if (e.kind || !read_history(c, words[0], list, &e))
		return ctl_fail(&e);
	if (number)
		return show_diff(list, number, args_has(a, "reveal"));
	rows_begin(&rows, c, &revision_rows);
	json_array_foreach(list, i, row)
		rows_add(&rows, row);
	rows_end(&rows);
	return EXIT_SUCCESS;
}
