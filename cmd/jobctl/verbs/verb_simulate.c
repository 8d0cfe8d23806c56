/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl simulate'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "jobctl/moment.h"
#include "jobctl/render/render.h"
#include "jobctl/render/simulation_text.h"
#include "jobctl/spec/simulation.h"
#include "jobctl/verbs/verbs.h"
#include <string.h>

#define DAYS_DEFAULT "30"
#define JOBS_DEFAULT "20000"
#define JOBS_MAX 1000000

enum simulate_view { VIEW_TABLE, VIEW_CALENDAR, VIEW_JSON, VIEW_MAX };

static bool read_view(const struct ctl *c, const struct args *a, enum simulate_view *ret,
	struct err *e)
{
	static const char *const names[VIEW_MAX] = {"table", "calendar", "json"};
	const char *word = args_last(a, "as");

	*ret = render_wants_json(c) ? VIEW_JSON : VIEW_TABLE;
	if (!word)
		return true;
	for (size_t i = 0; i < VIEW_MAX; i++)
		if (strcmp(names[i], word) == 0) {
			*ret = (enum simulate_view)i;
			return true;
		}
	return err_set(e, ERR_INVALID, "--as: '%s' is not table, calendar or json", word);
}

static bool read_number(const struct args *a, const char *flag, const char *preset, int64_t max,
	int64_t *ret, struct err *e)
{
	const char *text = args_last(a, flag) ? args_last(a, flag) : preset;

	return text_parse_int(text, 1, max, ret) ||
	       err_set(e, ERR_INVALID, "--%s: '%s' is not a whole number from 1 to %lld", flag,
		       text, (long long)max);
}

static bool read_period(const struct ctl *c, const struct args *a, struct simulation *m,
	struct err *e)
{
	AUTO_TEXT zone = args_last(a, "tz") ? xstrdup(args_last(a, "tz")) : local_zone();
	const char *from = args_last(a, "from"), *assume = args_last(a, "assume");
	usec_t begin = c->now;
	int64_t days;

	m->assumed = USEC_SEC;
	if (assume && !duration_parse(assume, &m->assumed, e))
		return err_wrap(e, "--assume");
	if (from &&
		!moment_parse(from, &(struct moment_how){.now = c->now, .tz = zone}, &begin, e))
		return err_wrap(e, "--from");
	return read_number(a, "days", DAYS_DEFAULT, SIMULATION_DAYS_MAX, &days, e) &&
	       simulation_init(m, begin, days, zone, e);
}

/* ---- limits and jobs of the daemon ---- */

static bool read_limit_list(struct ctl *c, struct simulation *m, const char *path,
	const char *member, const char *kind, struct err *e)
{
	json_auto_t *answer = NULL;
	const json_t *row;
	size_t i;

	if (!api_call(c, "GET", path, NULL, &answer, e))
		return false;
	json_array_foreach(json_object_get(answer, member), i, row)
		if (member_int(row, "max_running"))
			simulation_add_limit(m, kind, member_text(row, "name"),
				member_int(row, "max_running"));
	return true;
}

/* With several nodes each one is assumed to have the limit of the node that answers. */
static bool read_limits(struct ctl *c, struct simulation *m, struct err *e)
{
	json_auto_t *status = NULL;
	int64_t nodes;

	if (!api_call(c, "GET", "/v1/status", NULL, &status, e))
		return false;
	nodes = member_int(json_object_get(status, "cluster"), "nodes");
	simulation_add_limit(m, "nodes", NULL,
		member_int(status, "max_running") * (nodes > 1 ? nodes : 1));
	return read_limit_list(c, m, "/v1/queues", "queues", "queue", e) &&
	       read_limit_list(c, m, "/v1/owners", "owners", "owner", e);
}

static bool on_simulated_job(const json_t *row, void *arg)
{
	simulation_add_job(arg, row);
	return true;
}

static bool read_jobs(struct ctl *c, const struct args *a, struct simulation *m, struct err *e)
{
	AUTO_DONE(buf) path = {};
	struct pages pages = {.member = "jobs", .row = on_simulated_job, .arg = m};
	char *const *words;
	int64_t limit;

	if (!read_number(a, "limit", JOBS_DEFAULT, JOBS_MAX, &limit, e))
		return false;
	buf_str(&path, "/v1/jobs?state=active,paused&durations=true");
	if (args_operands(a, &words))
		api_query_add(&path, "name", words[0]);
	if (args_last(a, "owner"))
		api_query_add(&path, "owner", args_last(a, "owner"));
	pages.path = path.data;
	pages.limit = (size_t)limit;
	if (!api_pages(c, &pages, e))
		return false;
	m->next_cursor = pages.next_cursor;
	return true;
}

int verb_simulate(struct ctl *c, const struct args *a)
{
	AUTO_DONE(simulation) m = {};
	AUTO_DONE(buf) out = {};
	enum simulate_view view;
	struct err e = {};

	if (!read_view(c, a, &view, &e) || !read_period(c, a, &m, &e) || !read_limits(c, &m, &e) ||
		!read_jobs(c, a, &m, &e))
		return ctl_fail(&e);
	simulate_run(&m.s);
	if (view == VIEW_JSON) {
		json_auto_t *o = simulation_text_json(&m);

		if (c->format != FORMAT_JSONL)
			c->format = FORMAT_JSON;
		return render_object(c, o);
	}
	if (view == VIEW_CALENDAR)
		simulation_text_calendar(c, &m, &out);
	else
		simulation_text_table(c, &m, &out);
	return render_text(&out);
}
