/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl top'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/connect.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/words.h"
#include "jobctl/top/top_guard.h"
#include "jobctl/top/top_loop.h"
#include "jobctl/top/top_model.h"
#include "jobctl/verbs/verb_show.h"
#include "jobctl/verbs/verb_why.h"
#include "jobctl/verbs/verbs.h"
#include "wire/http_client.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct top_options {
	struct ctl *c;
	enum top_view view;
	int64_t updates; /* of batch mode; 0: no end */
	int64_t delay;   /* seconds between them */
};

static bool read_view(const struct args *a, enum top_view *ret, struct err *e)
{
	const char *word = args_last(a, "view");

	*ret = TOP_JOBS;
	if (!word)
		return true;
	for (size_t i = 0; i < TOP_VIEW_MAX; i++)
		if (strcmp(top_views[i].name, word) == 0) {
			*ret = (enum top_view)i;
			return true;
		}
	return err_set(e, ERR_INVALID, "--view: '%s' is not jobs, runs, queues or nodes", word);
}

static bool read_number(const struct args *a, const char *flag, int64_t preset, int64_t *ret,
	struct err *e)
{
	const char *text = args_last(a, flag);

	*ret = preset;
	return !text || text_parse_int(text, 1, 1000000, ret) ||
	       err_set(e, ERR_INVALID, "--%s: '%s' is not a whole number from 1 to 1000000", flag,
		       text);
}

/* ---- batch mode ---- */

static void put_head(const struct top_options *o, const json_t *status, struct buf *out)
{
	const json_t *jobs = json_object_get(status, "jobs"),
		     *runs = json_object_get(status, "runs");
	char now[WORDS_MAX];

	buf_printf(out,
		"%s  %s: %" PRId64 " jobs active, %" PRId64 " paused; %" PRId64
		" runs running, %" PRId64 " queued%s\n",
		words_instant(o->c->now, now), top_views[o->view].name, member_int(jobs, "active"),
		member_int(jobs, "paused"), member_int(runs, "running"), member_int(runs, "queued"),
		json_is_object(json_object_get(status, "frozen")) ? "; frozen" : "");
}

static bool print_update(struct top_options *o, struct err *e)
{
	AUTO_DONE(top_model) m = {};
	json_auto_t *status = NULL, *answer = NULL;
	AUTO_DONE(buf) head = {};
	AUTO_TEXT path = NULL;
	const json_t *row;
	struct rows rows;
	size_t i;

	top_model_init(&m, o->view);
	path = top_model_path(&m);
	o->c->now = clock_now(&clock_system);
	if (!api_call(o->c, "GET", "/v1/status", NULL, &status, e) ||
		!api_call(o->c, "GET", path, NULL, &answer, e))
		return false;
	if (render_is_text(o->c)) {
		put_head(o, status, &head);
		render_flush(&head);
	}
	rows_begin(&rows, o->c, top_views[o->view].rows);
	json_array_foreach(json_object_get(answer, top_views[o->view].member), i, row)
		rows_add(&rows, row);
	rows_end(&rows);
	if (member_text(answer, "next_cursor"))
		ctl_say("the first %zu %s are shown; 'jobctl %s' shows all", i,
			top_views[o->view].name, o->view == TOP_JOBS ? "list" : "runs -n 0");
	return true;
}

static int run_batch(struct top_options *o)
{
	struct err e = {};

	for (int64_t i = 0;;) {
		if (!print_update(o, &e))
			return ctl_fail(&e);
		if (++i == o->updates)
			return EXIT_SUCCESS;
		sleep((unsigned)o->delay);
	}
}

/* ---- screen ---- */

static int run_screen(void *arg)
{
	static const struct top_loop_texts texts = {
		verb_show_job_text, verb_show_run_text, verb_why_text};
	struct top_options *o = arg;

	return top_loop_run(o->c, o->view, &texts);
}

/* An unreachable daemon is reported before the screen is cleared. */
static bool check_daemon(struct ctl *c, struct err *e)
{
	if (!connect_daemon(c, e))
		return false;
	http_client_free(STEAL(c->client));
	free(STEAL(c->socket));
	return true;
}

int verb_top(struct ctl *c, const struct args *a)
{
	struct top_options o = {.c = c};
	struct err e = {};
	int code;

	if (!read_view(a, &o.view, &e) || !read_number(a, "updates", 0, &o.updates, &e) ||
		!read_number(a, "delay", 2, &o.delay, &e))
		return ctl_fail(&e);
	if (args_has(a, "batch"))
		return run_batch(&o);
	if (args_has(a, "updates") || args_has(a, "delay") || !render_is_text(c))
		err_set(&e, ERR_INVALID, "--updates, --delay and --output need -b");
	else if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		err_set(&e, ERR_INVALID,
			"standard input and output must be a terminal; 'jobctl top -b -n 1' "
			"prints once");
	if (e.kind != ERR_NONE || !check_daemon(c, &e))
		return ctl_fail(&e);
	code = top_guard_run(run_screen, &o, &e);
	return code < 0 ? ctl_fail(&e) : code;
}
