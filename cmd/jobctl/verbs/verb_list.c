/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl list'. */
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/filters.h"
#include "jobctl/member.h"
#include "jobctl/render/columns.h"
#include "jobctl/render/pauses.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define WATCH_SECONDS 2
#define SCREEN_ROWS 20 /* if the terminal has no known size */

/* The state of a listing. */
struct listing {
	struct rows rows;
	const struct args *tags; /* with --tag */
	char *const *patterns;
	size_t patterns_n;
	size_t limit;           /* 0: none */
	bool paged;             /* the limit is applied by the pages */
	bool screenful;         /* the limit is the size of the terminal */
	int64_t last;           /* number of the last job shown */
};

static bool job_matches_pattern(const struct listing *l, const json_t *job)
{
	const char *name = member_text(job, "name");

	for (size_t i = 0; i < l->patterns_n; i++) {
		int64_t id;

		if (text_parse_int(l->patterns[i], 1, INT64_MAX, &id) ? id == member_int(job, "id")
			: name && fnmatch(l->patterns[i], name, 0) == 0)
			return true;
	}
	return l->patterns_n == 0;
}

/* The daemon filters by one tag; further tags are checked here. */
static bool job_has_tags(const struct listing *l, const json_t *job)
{
	for (size_t i = 0; l->tags && i < args_count(l->tags, "tag"); i++) {
		const char *pair = args_nth(l->tags, "tag", i);
		AUTO_TEXT key = xstrndup(pair, strcspn(pair, "="));
		const char *value = member_text(json_object_get(job, "tags"), key);

		if (!value || strcmp(value, pair + strlen(key) + (pair[strlen(key)] == '=')) != 0)
			return false;
	}
	return true;
}

static bool on_job_row(const json_t *row, void *arg)
{
	struct listing *l = arg;

	if (!job_matches_pattern(l, row) || !job_has_tags(l, row))
		return true;
	rows_add(&l->rows, row);
	l->last = member_int(row, "id");
	return l->paged || l->limit == 0 || l->rows.count < l->limit;
}

static void on_job_page(void *arg)
{
	rows_page(&((struct listing *)arg)->rows);
}

static bool job_state_known(const char *name)
{
	return job_state_parse(name, &(enum job_state){0});
}

/* The daemon sorts; a name with a minus sign reverses the order. */
static bool sort_option(const struct args *a, struct buf *path, struct err *e)
{
	static const char *const names[] = {"next", "name", "last", "created"};
	const char *sort = args_last(a, "sort");
	bool reverse = sort && *sort == '-';

	for (size_t i = 0; sort && i < ELEMENTS(names); i++)
		if (strcmp(names[i], sort + reverse) == 0) {
			api_query_add(path, "sort", names[i]);
			/* the daemon shows the newest last run first */
			if (reverse)
				api_query_add(path, "order", strcmp(names[i], "last") == 0 ? "asc" : "desc");
			return true;
		}
	if (sort)
		return err_set(e, ERR_INVALID, "--sort: '%s' is not next, name, last or created; -%s reverses an order",
			sort, "next");
	return true;
}

/* Finished and cancelled jobs are shown only with --all, --state or a pattern. */
static bool live_only(const struct args *a)
{
	char *const *patterns;

	return !args_has(a, "all") && !args_has(a, "state") && args_operands(a, &patterns) == 0;
}

/* The API path with all filters. */
static bool jobs_path(const struct ctl *c, const struct args *a, const struct listing *l,
	struct buf *path, struct err *e)
{
	buf_str(path, "/v1/jobs");
	if (!filter_states(path, a, job_state_known, e) ||
		!filter_time(path, a, "since", c->now, e) ||
		!filter_time(path, a, "until", c->now, e))
		return false;
	if (!filter_tags_check(a, e) || !sort_option(a, path, e))
		return false;
	if (args_last(a, "queue"))
		api_query_add(path, "queue", args_last(a, "queue"));
	if (args_last(a, "cursor"))
		api_query_add(path, "cursor", args_last(a, "cursor"));
	if (args_last(a, "tag"))
		api_query_add(path, "tag", args_nth(a, "tag", 0));
	if (args_last(a, "owner"))
		api_query_add(path, "owner", args_last(a, "owner"));
	if (args_has(a, "all"))
		api_query_add(path, "all", "true");
	if (live_only(a))
		api_query_add(path, "state", "active,paused,suspended");
	/* The daemon filters by one pattern; several are matched in job_matches_pattern(). */
	if (l->patterns_n == 1 && !text_parse_int(l->patterns[0], 0, INT64_MAX, &(int64_t){0}))
		api_query_add(path, "name", l->patterns[0]);
	return true;
}

static bool has_filter(const struct args *a)
{
	static const char *const filters[] = {"state", "tag", "owner", "since", "until", "queue", "cursor"};

	for (size_t i = 0; i < ELEMENTS(filters); i++)
		if (args_has(a, filters[i]))
			return true;
	return false;
}

/* The only operand is a number and there are no filters: the job can be read directly. */
static bool only_number(const struct args *a, const struct listing *l)
{
	return !has_filter(a) && l->patterns_n == 1 && text_parse_int(l->patterns[0], 1, INT64_MAX, &(int64_t){0});
}

static bool list_number(struct ctl *c, struct listing *l, struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/jobs/%s", l->patterns[0]);
	json_auto_t *job = NULL;

	if (!api_call(c, "GET", path, NULL, &job, e))
		return e->kind == ERR_NOT_FOUND;
	on_job_row(job, l);
	return true;
}

/*
 * If jobs are filtered here, more may follow or not. The cursor is then the number of the last job,
 * which only a list by number can use.
 */
static void say_more(const struct args *a, const struct listing *l, const struct pages *p)
{
	if (p->next_cursor && l->screenful)
		ctl_say("there are more: add --cursor %s, or --limit 0 for all", p->next_cursor);
	else if (p->next_cursor)
		ctl_say("there are more: add --cursor %s", p->next_cursor);
	else if (l->limit && !p->limit && l->rows.count >= l->limit && !args_has(a, "sort"))
		ctl_say("there may be more: add --cursor %" PRId64, l->last);
	else if (l->limit && !p->limit && l->rows.count >= l->limit)
		ctl_say("there may be more: add --limit 0");
}

/* The rows that fit on the terminal beside the header, the messages and the next prompt. */
static size_t screenful(void)
{
	struct winsize size = {};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
		return SCREEN_ROWS;
	return size.ws_row > 10 ? size.ws_row - 5u : 5;
}

static bool list_once(struct ctl *c, const struct args *a, size_t *ret_count, struct err *e)
{
	AUTO_DONE(buf) path = {};
	struct listing l = {.tags = a};
	struct pages pages = {.member = "jobs", .row = on_job_row, .page = on_job_page, .arg = &l};
	bool ok;

	l.patterns_n = args_operands(a, &l.patterns);
	l.screenful = c->terminal && render_is_text(c) && !args_has(a, "limit");
	if (!filter_limit(a, l.screenful ? screenful() : 0, &l.limit, e) || !jobs_path(c, a, &l, &path, e))
		return false;
	pages.path = path.data;
	rows_begin(&l.rows, c, &job_rows);
	/* Without filtering here the pages end at the limit. */
	if (l.patterns_n <= 1 && args_count(a, "tag") <= 1)
		pages.limit = l.limit;
	l.paged = pages.limit > 0;
	ok = only_number(a, &l) ? list_number(c, &l, e) : api_pages(c, &pages, e);
	*ret_count = l.rows.count;
	rows_end(&l.rows);
	if (ok && !args_has(a, "watch"))
		say_more(a, &l, &pages);
	free(pages.next_cursor);
	return ok;
}

static void clear_screen(const struct ctl *c)
{
	AUTO_DONE(buf) out = {};

	buf_str(&out, c->terminal ? "\033[H\033[2J" : "\n");
	render_flush(&out);
}

static void say_not_listed(const struct args *a, size_t count)
{
	char *const *patterns;
	bool selective = has_filter(a) || args_operands(a, &patterns) > 0;

	if (live_only(a))
		ctl_say("%sfinished and cancelled jobs are not shown (jobctl list --all)",
			count ? "" : selective ? "no active job matches; " : "no active jobs; ");
	else if (count == 0)
		ctl_say(selective ? "no job matches (jobctl list --all)" : "no jobs (jobctl add -- COMMAND)");
}

int verb_list(struct ctl *c, const struct args *a)
{
	struct err e = {};
	size_t count = 0;

	for (;;) {
		if (render_is_text(c) && !pauses_say(c, &e))
			return ctl_fail(&e);
		if (!list_once(c, a, &count, &e))
			return ctl_fail(&e);
		if (!args_has(a, "watch"))
			break;
		sleep(WATCH_SECONDS);
		c->now = clock_now(&clock_system);
		clear_screen(c);
	}
	if (c->terminal && render_is_text(c))
		say_not_listed(a, count);
	return EXIT_SUCCESS;
}
