/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl runs'. */
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/run.h"
#include "jobctl/api.h"
#include "jobctl/archived.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/filters.h"
#include "jobctl/member.h"
#include "jobctl/render/columns.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

#define RUNS_DEFAULT 100

static bool run_state_known(const char *name)
{
	return run_state_parse(name, &(enum run_state){0});
}

static bool runs_filters(const struct ctl *c, const struct args *a, struct buf *path, struct err *e)
{
	if (!filter_states(path, a, run_state_known, e) ||
		!filter_time(path, a, "since", c->now, e) ||
		!filter_time(path, a, "until", c->now, e))
		return false;
	if (args_count(a, "tag") > 1)
		return err_set(e, ERR_INVALID, "--tag can be given only once");
	if (!filter_tags_check(a, e))
		return false;
	if (args_has(a, "tag"))
		api_query_add(path, "tag", args_last(a, "tag"));
	if (args_has(a, "result") && !strchr(args_last(a, "result"), '='))
		return err_set(e, ERR_INVALID, "--result needs KEY=VALUE, not '%s'", args_last(a, "result"));
	if (args_has(a, "result"))
		api_query_add(path, "result", args_last(a, "result"));
	if (args_has(a, "owner"))
		api_query_add(path, "owner", args_last(a, "owner"));
	if (!args_has(a, "planned") && !args_has(a, "archived"))
		api_query_add(path, "planned", "false");
	if (args_has(a, "failed"))
		api_query_add(path, "state", "failed,timed_out,lost");
	if (args_last(a, "cursor"))
		api_query_add(path, "cursor", args_last(a, "cursor"));
	return true;
}

static bool on_run(const json_t *run, void *arg)
{
	rows_add(arg, run);
	return true;
}

static void on_run_page(void *arg)
{
	rows_page(arg);
}

/* Reads the pages of a list of runs, whose path has no filters yet except jobs. */
static bool list_pages(struct ctl *c, const struct args *a, struct buf *path, struct rows *rows, size_t limit, struct err *e)
{
	AUTO_TEXT cursor = NULL;
	struct pages pages = {.member = "runs",
		.row = on_run,
		.page = on_run_page,
		.arg = rows,
		.limit = limit};
	bool ok;

	if (!runs_filters(c, a, path, e))
		return false;
	pages.path = path->data;
	ok = api_pages(c, &pages, e);
	cursor = pages.next_cursor;
	if (ok && cursor)
		ctl_say("there are more: add --cursor %s, or --limit 0 for all", cursor);
	return ok;
}

/* Lists runs of the jobs in 'jobs', a comma-separated list of numbers; NULL: of all jobs. */
static bool list_runs_of_jobs(struct ctl *c, const struct args *a, const char *jobs,
	struct rows *rows, size_t limit, struct err *e)
{
	AUTO_DONE(buf) path = {};

	buf_str(&path, "/v1/runs");
	if (jobs)
		api_query_add(&path, "job", jobs);
	return list_pages(c, a, &path, rows, limit, e);
}

static bool list_archived(struct ctl *c, const struct args *a, struct rows *rows, size_t limit, struct err *e)
{
	AUTO_DONE(buf) path = {};
	struct ref ref;
	char *const *words;
	size_t n = args_operands(a, &words);

	if (n > 1)
		return err_set(e, ERR_INVALID, "--archived searches for one job or run at a time");
	if (args_has(a, "tag") || args_has(a, "planned"))
		return err_set(e, ERR_INVALID, "--tag and --planned cannot be used with --archived");
	if (n == 1 && !ref_parse(words[0], &ref, e))
		return false;
	buf_str(&path, "/v1/archive/runs");
	if (n == 1)
		archived_filter(&path, &ref);
	return list_pages(c, a, &path, rows, limit, e);
}

/* Shows a run on the first page; adds the number of a job to 'jobs'. */
static bool runs_operand(struct ctl *c, const struct args *a, const char *text, struct rows *rows,
	struct buf *jobs, struct err *e)
{
	json_auto_t *o = NULL;
	struct ref ref;

	if (!ref_parse(text, &ref, e) || !(ref.run ? api_run : api_job)(c, &ref, &o, e))
		return false;
	if (ref.run && !args_has(a, "cursor"))
		rows_add(rows, o);
	if (!ref.run)
		buf_printf(jobs, "%s%" PRId64, jobs->len ? "," : "", member_int(o, "id"));
	return true;
}

int verb_runs(struct ctl *c, const struct args *a)
{
	struct rows rows = {};
	AUTO_DONE(buf) jobs = {};
	struct err e = {};
	char *const *words;
	size_t n = args_operands(a, &words), limit, count;
	bool ok = true;

	if (!filter_limit(a, RUNS_DEFAULT, &limit, &e))
		return ctl_fail(&e);
	rows_begin(&rows, c, &run_rows);
	if (args_has(a, "archived"))
		ok = list_archived(c, a, &rows, limit, &e);
	for (size_t i = 0; ok && i < n && !args_has(a, "archived"); i++)
		ok = runs_operand(c, a, words[i], &rows, &jobs, &e);
	if (ok && (n == 0 || jobs.len) && !args_has(a, "archived"))
		ok = list_runs_of_jobs(c, a, jobs.data, &rows, limit, &e);
	count = rows.count;
	rows_end(&rows);
	if (!ok)
		return ctl_fail(&e);
	if (count == 0 && c->terminal && render_is_text(c))
		ctl_say("no runs");
	return EXIT_SUCCESS;
}
