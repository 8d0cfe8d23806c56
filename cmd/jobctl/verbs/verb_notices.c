/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs of 'jobctl notices'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/ref.h"
#include "jobctl/render/cells.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NOTICES_DEFAULT 50
#define TEST_WAIT (75 * USEC_SEC) /* more than the minute that the command of a notice may take */
#define TEST_LOOK (200 * USEC_MSEC) /* between polls */

CELL(id)
CELL(kind)
CELL(channel)
CELL(state)
CELL(tries)
CELL(owner)
CELL(error)

static void cell_created_at(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(row, "created_at", style, out);
}

static void cell_due_at(const json_t *row, const struct cell_style *style, struct buf *out)
{
	cell_put_time(row, "due_at", style, out);
}

/* backup#17, or only the job */
static void cell_about(const json_t *row, const struct cell_style *style, struct buf *out)
{
	(void)style;
	cell_put(row, member_text(row, "job_name") ? "job_name" : "job", out);
	if (member_int(row, "run"))
		buf_printf(out, "#%" PRId64, member_int(row, "run"));
}

static void notice_name(const json_t *row, struct buf *out)
{
	cell_put(row, "id", out);
}

static const struct column columns[] = {
	{{"ID", true, false}, "id", false, cell_id},
	{{"WHEN", false, false}, "created_at", false, cell_created_at},
	{{"ABOUT", false, false}, "about", false, cell_about},
	{{"KIND", false, false}, "kind", false, cell_kind},
	{{"STATE", false, true}, "state", false, cell_state},
	{{"TRIES", true, false}, "tries", false, cell_tries},
	{{"AGAIN", false, false}, "due_at", true, cell_due_at},
	{{"OWNER", false, false}, "owner", true, cell_owner},
	{{"CHANNEL", false, false}, "channel", false, cell_channel},
	{{"ERROR", false, false}, "error", false, cell_error},
};
static const struct row_kind notice_rows = {columns, ELEMENTS(columns), notice_name};

/* ---- list ---- */

static bool on_notice_row(const json_t *row, void *arg)
{
	rows_add(arg, row);
	return true;
}

static bool notices_path(const struct args *a, struct buf *path, struct err *e)
{
	char *const *words;
	struct ref ref;

	buf_str(path, "/v1/notices");
	if (args_operands(a, &words) > 0) {
		if (!ref_parse(words[0], &ref, e))
			return false;
		if (ref.run)
			return err_set(e, ERR_INVALID, "'%s' is a run; give a job", words[0]);
		api_query_add(path, "job", words[0]);
	}
	if (args_has(a, "failed"))
		api_query_add(path, "state", "failed");
	return true;
}

int verb_notices_list(struct ctl *c, const struct args *a)
{
	const char *text = args_last(a, "limit");
	AUTO_DONE(buf) path = {};
	struct rows rows = {};
	struct err e = {};
	int64_t limit = NOTICES_DEFAULT;
	struct pages pages = {.member = "notices", .row = on_notice_row, .arg = &rows};
	bool ok;

	if (text && !text_parse_int(text, 0, INT32_MAX, &limit)) {
		err_set(&e, ERR_INVALID, "--limit: '%s' is not a number", text);
		return ctl_fail(&e);
	}
	if (!notices_path(a, &path, &e))
		return ctl_fail(&e);
	pages.path = path.data;
	pages.limit = (size_t)limit;
	rows_begin(&rows, c, &notice_rows);
	ok = api_pages(c, &pages, &e);
	free(pages.next_cursor);
	if (ok && rows.count == 0 && c->terminal && render_is_text(c))
		ctl_say("no notices%s", args_has(a, "failed") ? " have failed" : "");
	rows_end(&rows);
	return ok ? EXIT_SUCCESS : ctl_fail(&e);
}

/* ---- test ---- */

/*
 * Reads the newest notices of the job; counts test notices from number 'first' that are still
 * waiting.
 */
static bool poll_test_notices(struct ctl *c, const char *path, int64_t first, json_t **ret,
	size_t *ret_waiting, struct err *e)
{
	const json_t *row;
	size_t i;

	json_decref(*ret);
	*ret = NULL;
	if (!api_call(c, "GET", path, NULL, ret, e))
		return false;
	*ret_waiting = 0;
	json_array_foreach(json_object_get(*ret, "notices"), i, row)
		if (member_int(row, "id") >= first && strcmp(member_text(row, "kind"), "test") == 0)
			*ret_waiting += strcmp(member_text(row, "state"), "waiting") == 0;
	return true;
}

static int64_t first_of(const json_t *answer)
{
	const json_t *row;
	int64_t first = INT64_MAX;
	size_t i;

	json_array_foreach(json_object_get(answer, "notices"), i, row)
		first = member_int(row, "id") < first ? member_int(row, "id") : first;
	return first;
}

static int show_result(const struct ctl *c, const json_t *answer, int64_t first, size_t waiting)
{
	struct rows rows = {};
	const json_t *row;
	size_t i, failed = 0;

	rows_begin(&rows, c, &notice_rows);
	json_array_foreach(json_object_get(answer, "notices"), i, row) {
		if (member_int(row, "id") < first || strcmp(member_text(row, "kind"), "test") != 0)
			continue;
		rows_add(&rows, row);
		failed += strcmp(member_text(row, "state"), "failed") == 0;
	}
	rows_end(&rows);
	if (waiting)
		ctl_say("some notices are not yet delivered (jobctl notices)");
	return waiting ? EXIT_WAIT_TIMEOUT : failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int verb_notices_test(struct ctl *c, const struct args *a)
{
	json_auto_t *job = NULL, *answer = NULL;
	AUTO_TEXT path = NULL;
	AUTO_TEXT list = NULL;
	struct err e = {};
	struct ref ref;
	char *const *words;
	int64_t first;
	size_t waiting = 1;
	usec_t waited = 0;

	args_operands(a, &words);
	if (!ref_parse(words[0], &ref, &e) || !api_job(c, &ref, &job, &e))
		return ctl_fail(&e);
	path = xprintf("/v1/jobs/%" PRId64 "/notify-test", member_int(job, "id"));
	list = xprintf("/v1/notices?job=%" PRId64 "&limit=100", member_int(job, "id"));
	if (!api_call(c, "POST", path, NULL, &answer, &e))
		return ctl_fail(&e);
	first = first_of(answer);
	for (; waiting && waited < TEST_WAIT; waited += TEST_LOOK) {
		nanosleep(&(struct timespec){.tv_nsec = TEST_LOOK * 1000}, NULL);
		if (!poll_test_notices(c, list, first, &answer, &waiting, &e))
			return ctl_fail(&e);
	}
	return show_result(c, answer, first, waiting);
}
