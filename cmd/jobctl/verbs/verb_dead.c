/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs of 'jobctl dead'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/filters.h"
#include "jobctl/member.h"
#include "jobctl/ref.h"
#include "jobctl/render/columns.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIST_DEFAULT 100

/* ---- list ---- */

static bool on_dead_run(const json_t *run, void *arg)
{
	rows_add(arg, run);
	return true;
}

static void on_dead_page(void *arg)
{
	rows_page(arg);
}

static bool job_id(struct ctl *c, const char *text, int64_t *ret, struct err *e)
{
	json_auto_t *job = NULL;
	struct ref ref;

	if (!ref_parse(text, &ref, e))
		return false;
	if (ref.run)
		return err_set(e, ERR_INVALID, "'%s' is a run; 'jobctl dead show %s' shows it",
			text, text);
	if (!api_job(c, &ref, &job, e))
		return false;
	*ret = member_int(job, "id");
	return true;
}

/*
 * Lists dead letters of the jobs in 'jobs', a comma-separated list of numbers; NULL: of all jobs.
 */
static bool list_dead_runs(struct ctl *c, const struct args *a, const char *jobs, struct rows *rows,
	size_t limit, struct err *e)
{
	AUTO_DONE(buf) path = {};
	AUTO_TEXT cursor = NULL;
	struct pages pages = {.member = "runs",
		.row = on_dead_run,
		.page = on_dead_page,
		.arg = rows,
		.limit = limit};
	bool ok;

	buf_str(&path, "/v1/dead");
	if (jobs)
		api_query_add(&path, "job", jobs);
	if (!filter_time(&path, a, "since", c->now, e) ||
		!filter_time(&path, a, "until", c->now, e))
		return false;
	if (args_last(a, "cursor"))
		api_query_add(&path, "cursor", args_last(a, "cursor"));
	pages.path = path.data;
	ok = api_pages(c, &pages, e);
	cursor = pages.next_cursor;
	if (ok && cursor)
		ctl_say("there are more: add --cursor %s, or --limit 0 for all", cursor);
	return ok;
}

int verb_dead_list(struct ctl *c, const struct args *a)
{
	struct rows rows = {};
	struct err e = {};
	char *const *words;
	size_t n = args_operands(a, &words), named = args_count(a, "job"), limit, count;
	AUTO_DONE(buf) jobs = {};
	bool ok;

	if (!filter_limit(a, LIST_DEFAULT, &limit, &e))
		return ctl_fail(&e);
	for (size_t i = 0; i < n + named; i++) {
		int64_t id;

		if (!job_id(c, i < n ? words[i] : args_nth(a, "job", i - n), &id, &e))
			return ctl_fail(&e);
		buf_printf(&jobs, "%s%" PRId64, i ? "," : "", id);
	}
	rows_begin(&rows, c, &dead_rows);
	ok = list_dead_runs(c, a, jobs.data, &rows, limit, &e);
	count = rows.count;
	rows_end(&rows);
	if (!ok)
		return ctl_fail(&e);
	if (count == 0 && c->terminal && render_is_text(c))
		ctl_say("no dead letters");
	return EXIT_SUCCESS;
}

/* ---- show ---- */

int verb_dead_show(struct ctl *c, const struct args *a)
{
	json_auto_t *run = NULL;
	struct err e = {};
	struct ref ref;
	char *const *words;

	args_operands(a, &words);
	if (!ref_parse(words[0], &ref, &e))
		return ctl_fail(&e);
	if (!ref.run) {
		err_set(&e, ERR_INVALID,
			"'%s' is a job; 'jobctl dead list %s' shows its dead letters", words[0],
			words[0]);
		return ctl_fail(&e);
	}
	if (!api_run(c, &ref, &run, &e))
		return ctl_fail(&e);
	if (!member_time(run, "dead_at")) {
		err_set(&e, ERR_NOT_FOUND,
			"run '%s' is not a dead letter, it is %s; 'jobctl show %s' shows it",
			words[0], member_text(run, "state"), words[0]);
		return ctl_fail(&e);
	}
	return verb_show(c, a);
}

/* ---- retry and purge ---- */

struct dead_change {
	struct ctl *c;
	const struct args *a;
	const char *verb;     /* in the API path: "retry" or "purge" */
	int64_t count, refused;
	json_t *results;      /* array: runs, or one object per job */
};

static void say_one(const struct dead_change *ch, const json_t *run)
{
	AUTO_DONE(buf) name = {};

	ref_of_run(run, &name);
	if (strcmp(ch->verb, "retry") == 0)
		ctl_say("run %s is queued again (jobctl wait %s)", name.data, name.data);
	else
		ctl_say("run %s is no longer a dead letter; it stays in the history (jobctl show %s)",
			name.data, name.data);
}

static bool change_run(struct dead_change *ch, const struct ref *ref, struct err *e)
{
	json_auto_t *run = NULL, *answer = NULL;
	AUTO_TEXT path = xprintf("/v1/runs/%" PRId64 "/%s", ref->run, ch->verb);

	if (!api_run(ch->c, ref, &run, e) || !api_call(ch->c, "POST", path, NULL, &answer, e))
		return false;
	ch->count++;
	json_array_append(ch->results, answer);
	if (render_is_text(ch->c))
		say_one(ch, answer);
	return true;
}

/*
 * Changes all dead letters of a job (0: of all jobs) that the filters select, page by page. 'until'
 * is fixed at the first page, so that a run that is retried and fails again is not selected a
 * second time.
 */
static bool change_many(struct dead_change *ch, int64_t job, struct err *e)
{
	AUTO_TEXT cursor = NULL;
	AUTO_TEXT because = NULL;
	int64_t count = 0, refused = 0;
	char now[RFC3339_MAX];

	do {
		AUTO_DONE(buf) path = {};
		json_auto_t *answer = NULL;

		buf_printf(&path, "/v1/dead/%s", ch->verb);
		if (job)
			buf_printf(&path, "?job=%" PRId64, job);
		if (!filter_time(&path, ch->a, "since", ch->c->now, e) ||
			!filter_time(&path, ch->a, "until", ch->c->now, e))
			return false;
		if (!args_has(ch->a, "until"))
			api_query_add(&path, "until", rfc3339_format(ch->c->now, now));
		if (cursor)
			api_query_add(&path, "cursor", cursor);
		if (!api_call(ch->c, "POST", path.data, NULL, &answer, e))
			return false;
		count += member_int(answer, "count");
		refused += member_int(answer, "refused");
		if (!because)
			because = xstrdup(member_text(answer, "refused_because"));
		free(cursor);
		cursor = xstrdup(member_text(answer, "next_cursor"));
	} while (cursor);
	ch->count += count;
	ch->refused += refused;
	json_array_append_new(ch->results,
		json_pack("{s:s?, s:I, s:I, s:s?}", "job", NULL, "count", (json_int_t)count,
			"refused", (json_int_t)refused, "refused_because", because));
	if (job)
		json_object_set_new(json_array_get(ch->results, json_array_size(ch->results) - 1),
			"job", json_integer(job));
	if (render_is_text(ch->c))
		ctl_say("%" PRId64 " dead letter%s %s", count, count == 1 ? "" : "s",
			strcmp(ch->verb, "retry") == 0 ? "queued again" : "purged");
	if (refused)
		ctl_say("%" PRId64 " refused: %s", refused, because ? because : "no reason given");
	return true;
}

static bool change_operand(struct dead_change *ch, const char *text, struct err *e)
{
	struct ref ref;
	int64_t job;

	if (!ref_parse(text, &ref, e))
		return false;
	if (ref.run)
		return change_run(ch, &ref, e);
	return job_id(ch->c, text, &job, e) && change_many(ch, job, e);
}

static int dead_change(struct ctl *c, const struct args *a, const char *verb)
{
	json_auto_t *results = json_array();
	struct dead_change ch = {.c = c, .a = a, .verb = verb, .results = results};
	char *const *words;
	size_t n = args_operands(a, &words), jobs = args_count(a, "job");
	int code = 0;

	for (size_t i = 0; i < n + jobs || (i == 0 && n + jobs == 0); i++) {
		struct err e = {};
		bool ok = n + jobs == 0 ? change_many(&ch, 0, &e)
					: change_operand(&ch,
						  i < n ? words[i] : args_nth(a, "job", i - n), &e);
		int failed = ok ? 0 : ctl_fail(&e);

		code = code ? code : failed;
		if (e.kind == ERR_UNREACHABLE)
			break;
	}
	if (c->format == FORMAT_JSON)
		render_object(c, results);
	for (size_t i = 0; c->format == FORMAT_JSONL && i < json_array_size(results); i++)
		render_object(c, json_array_get(results, i));
	return code ? code : ch.refused && !ch.count ? EXIT_CONFLICT : 0;
}

/* Without operands --all is required, so that not everything is changed by mistake. */
static bool check_selection(const struct args *a, const char *verb, struct err *e)
{
	char *const *words;
	bool some = args_operands(a, &words) + args_count(a, "job") > 0;

	if (some && args_has(a, "all"))
		return err_set(e, ERR_INVALID, "give either runs and jobs or --all, not both");
	if (some || args_has(a, "all"))
		return true;
	return err_set(e, ERR_INVALID,
		"name runs or jobs; 'jobctl dead %s --all' selects every dead letter", verb);
}

int verb_dead_retry(struct ctl *c, const struct args *a)
{
	struct err e = {};

	return check_selection(a, "retry", &e) ? dead_change(c, a, "retry") : ctl_fail(&e);
}

static bool confirm_purge(const struct args *a)
{
	AUTO_DONE(buf) question = {};
	char *const *words;
	size_t n = args_operands(a, &words), jobs = args_count(a, "job");

	buf_str(&question, n + jobs ? "purge the dead letters" : "purge all dead letters");
	for (size_t i = 0; i < n + jobs; i++) {
		const char *word = i < n ? words[i] : args_nth(a, "job", i - n);

		buf_printf(&question, "%s '", i ? "," : "");
		text_escape(&question, word, strlen(word));
		buf_char(&question, '\'');
	}
	buf_char(&question, '?');
	return ctl_ask(question.data);
}

int verb_dead_purge(struct ctl *c, const struct args *a)
{
	struct err e = {};

	if (!check_selection(a, "purge", &e))
		return ctl_fail(&e);
	if (!args_has(a, "yes")) {
		if (!ctl_can_ask()) {
			ctl_say("jobctl: nothing was purged: without a terminal 'jobctl dead purge' needs --yes");
			return EXIT_USAGE;
		}
		if (!confirm_purge(a)) {
			ctl_say("nothing was purged");
			return EXIT_FAILURE;
		}
	}
	return dead_change(c, a, "purge");
}
