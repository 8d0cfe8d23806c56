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
#include <time.h>
#include <unistd.h>

#define WATCH_SECONDS 2

/* The state of a listing. */
struct listing {
	struct rows rows;
	const struct args *tags; /* with --tag */
	char *const *patterns;
	size_t patterns_n;
	size_t limit;           /* 0: none */
	bool paged;             /* the limit is applied by the pages */
	int64_t last;           /* number of the last job shown */
	json_t *kept;           /* array of jobs to be sorted; NULL: shown as they arrive */
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
	if (l->kept) {
		json_array_append(l->kept, (json_t *)row);
		return true;
	}
	rows_add(&l->rows, row);
	l->last = member_int(row, "id");
	return l->paged || l->limit == 0 || l->rows.count < l->limit;
}

static void on_job_page(void *arg)
{
	struct listing *l = arg;

	if (!l->kept)
		rows_page(&l->rows);
}

static bool job_state_known(const char *name)
{
	return job_state_parse(name, &(enum job_state){0});
}

static int compare_next(const void *a, const void *b)
{
	usec_t x = member_time(*(json_t *const *)a, "next_at"),
	       y = member_time(*(json_t *const *)b, "next_at");

	/* Jobs without a next slot come last. */
	if (!x || !y)
		return (x == 0) - (y == 0);
	return (x > y) - (x < y);
}

static int compare_name(const void *a, const void *b)
{
	const char *x = member_text(*(json_t *const *)a, "name"),
		   *y = member_text(*(json_t *const *)b, "name");

	if (!x || !y)
		return (x == NULL) - (y == NULL);
	return strcmp(x, y);
}

static int compare_last_run(const void *a, const void *b)
{
	const json_t *x = json_object_get(*(json_t *const *)a, "last_run");
	const json_t *y = json_object_get(*(json_t *const *)b, "last_run");
	usec_t s = member_time(x, "slot"), t = member_time(y, "slot");

	return (t > s) - (t < s);
}

typedef int order_fn(const void *a, const void *b);

static bool read_sort_option(const struct args *a, order_fn **ret, struct err *e)
{
	static const struct {
		const char *name;
		order_fn *fn;
	} orders[] = {{"next", compare_next}, {"name", compare_name}, {"last", compare_last_run}};
	const char *name = args_last(a, "sort");

	*ret = NULL;
	for (size_t i = 0; name && i < ELEMENTS(orders); i++)
		if (strcmp(orders[i].name, name) == 0)
			*ret = orders[i].fn;
	if (name && !*ret)
		return err_set(e, ERR_INVALID, "--sort: '%s' is not next, name or last", name);
	return true;
}

static void show_sorted(struct listing *l, order_fn *order)
{
	size_t n = json_array_size(l->kept);
	json_t **v = xcalloc(n, sizeof *v);

	for (size_t i = 0; i < n; i++)
		v[i] = json_array_get(l->kept, i);
	qsort(v, n, sizeof *v, order);
	for (size_t i = 0; i < n && (l->limit == 0 || i < l->limit); i++)
		rows_add(&l->rows, v[i]);
	free(v);
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
	if (!filter_tags_check(a, e))
		return false;
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

/* The only operand is a number and there are no filters: the job can be read directly. */
static bool only_number(const struct args *a, const struct listing *l)
{
	static const char *const filters[] = {"state", "tag", "owner", "since", "until", "cursor"};

	for (size_t i = 0; i < ELEMENTS(filters); i++)
		if (args_has(a, filters[i]))
			return false;
	return l->patterns_n == 1 && text_parse_int(l->patterns[0], 1, INT64_MAX, &(int64_t){0});
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

/* The cursor is the number of the last job. If jobs are filtered here, more may follow or not. */
static void say_more(const struct listing *l, const struct pages *p)
{
	if (p->next_cursor)
		ctl_say("there are more: add --cursor %s", p->next_cursor);
	else if (l->limit && !p->limit && l->rows.count >= l->limit)
		ctl_say("there may be more: add --cursor %" PRId64, l->last);
}

static bool list_once(struct ctl *c, const struct args *a, size_t *ret_count, struct err *e)
{
	AUTO_DONE(buf) path = {};
	json_auto_t *kept = NULL;
	struct listing l = {.tags = a};
	struct pages pages = {.member = "jobs", .row = on_job_row, .page = on_job_page, .arg = &l};
	order_fn *order;
	bool ok;

	l.patterns_n = args_operands(a, &l.patterns);
	if (!read_sort_option(a, &order, e) || !filter_limit(a, 0, &l.limit, e))
		return false;
	if (order && args_has(a, "cursor"))
		return err_set(e, ERR_INVALID,
			"give either --sort or --cursor, not both: pages are ordered by number");
	if (order)
		l.kept = kept = json_array();
	if (!jobs_path(c, a, &l, &path, e))
		return false;
	pages.path = path.data;
	rows_begin(&l.rows, c, &job_rows);
	/* Without filtering or sorting here the pages end at the limit. */
	if (!order && l.patterns_n <= 1 && args_count(a, "tag") <= 1)
		pages.limit = l.limit;
	l.paged = pages.limit > 0;
	ok = only_number(a, &l) ? list_number(c, &l, e) : api_pages(c, &pages, e);
	if (ok && order)
		show_sorted(&l, order);
	*ret_count = l.rows.count;
	rows_end(&l.rows);
	if (ok && !order && !args_has(a, "watch"))
		say_more(&l, &pages);
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
	if (live_only(a))
		ctl_say("%sfinished and cancelled jobs are not shown (jobctl list --all)",
			count == 0 ? "no active jobs; " : "");
	else if (count == 0)
		ctl_say("no jobs (jobctl add -- COMMAND)");
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
