/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl export'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/defs/crontab_write.h"
#include "jobctl/defs/definition.h"
#include "jobctl/local_zone.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/verbs/verbs.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNNAMED_SHOWN 5 /* jobs without a name whose numbers are listed */

enum export_format { EXPORT_JSON, EXPORT_JSONL, EXPORT_CRONTAB, EXPORT_MAX };
static const char *const export_names[EXPORT_MAX] = {
	[EXPORT_JSON] = "json", [EXPORT_JSONL] = "jsonl", [EXPORT_CRONTAB] = "crontab"};

struct exporting {
	char *const *patterns;
	size_t n_patterns;
	json_t *jobs;       /* owned: job objects with a name */
	json_t *unnamed;    /* owned: numbers */
	size_t masked;      /* definitions with a masked value */
	size_t tables;      /* jobs that come from crontabs */
};

static bool export_wanted(const struct exporting *x, const json_t *job)
{
	const char *name = member_text(job, "name");
	AUTO_TEXT number = xprintf("%" PRId64, member_int(job, "id"));

	for (size_t i = 0; i < x->n_patterns; i++)
		if (strcmp(x->patterns[i], number) == 0 ||
			(name && fnmatch(x->patterns[i], name, 0) == 0))
			return true;
	return x->n_patterns == 0;
}

static bool keep_job(const json_t *row, void *arg)
{
	struct exporting *x = arg;

	if (!export_wanted(x, row))
		return true;
	if (member_text(row, "origin") || member_text(row, "origin_b64"))
		x->tables++;
	else if (member_text(row, "name"))
		json_array_append(x->jobs, (json_t *)row);
	else
		json_array_append_new(x->unnamed, json_integer(member_int(row, "id")));
	return true;
}

static bool read_jobs(struct ctl *c, const char *owner, struct exporting *x, struct err *e)
{
	AUTO_DONE(buf) path = {};
	struct pages pages = {.member = "jobs", .row = keep_job, .arg = x};
	const struct passwd *pw = getpwuid(geteuid());
	bool ok;

	buf_str(&path, "/v1/jobs");
	api_query_add(&path, "state", "active,paused,suspended");
	if (owner || pw)
		api_query_add(&path, "owner", owner ? owner : pw->pw_name);
	pages.path = path.data;
	ok = api_pages(c, &pages, e);
	free(pages.next_cursor);
	return ok;
}

static int job_order(const void *a, const void *b)
{
	return strcmp(member_text(*(json_t *const *)a, "name"), member_text(*(json_t *const *)b, "name"));
}

/* Sorted by name, so that two exports differ only where the jobs differ. */
static json_t **sort_jobs(const json_t *list)
{
	size_t n = json_array_size(list);
	json_t **sorted = xcalloc(n + 1, sizeof(json_t *));

	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(list, i);
	qsort(sorted, n, sizeof(json_t *), job_order);
	return sorted;
}

static bool has_null(const json_t *map)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)map, name, v)
		if (json_is_null(v))
			return true;
	return false;
}

static bool put_definitions(struct exporting *x, json_t *const *sorted, bool reveal, bool lines,
	struct buf *out, struct err *e)
{
	json_auto_t *jobs = json_array(), *set = NULL;

	for (size_t i = 0; sorted[i]; i++) {
		json_auto_t *o = definition_of_job(sorted[i], reveal, e);

		if (!o)
			return err_wrap(e, "job %" PRId64, member_int(sorted[i], "id"));
		x->masked += has_null(json_object_get(o, "env")) || has_null(json_object_get(o, "params")) ||
			     has_null(json_object_get(o, "env_b64")) ||
			     has_null(json_object_get(o, "params_b64"));
		if (lines) {
			render_json(o, JSON_COMPACT, out);
			buf_char(out, '\n');
		} else {
			json_array_append(jobs, o);
		}
	}
	if (lines)
		return true;
	set = json_pack("{s:O}", "jobs", jobs);
	render_json(set, JSON_INDENT(2), out);
	buf_char(out, '\n');
	return true;
}

static bool put_crontab(json_t *const *sorted, bool reveal, struct buf *out, struct err *e)
{
	AUTO_TEXT zone = local_zone();
	struct crontab_write w = {.zone = zone, .reveal = reveal};

	for (size_t i = 0; sorted[i]; i++) {
		AUTO_DONE(job_spec) spec;

		job_spec_init(&spec);
		if (!job_object_read_spec(sorted[i], &spec, e))
			return false;
		crontab_write_job(&w, &spec, out);
	}
	ctl_say("jobs: %zu; lines: %zu; jobs that a crontab cannot express, written as comments: %zu",
		w.jobs, w.lines, w.refused);
	return true;
}

static void say_left_out(const struct exporting *x)
{
	AUTO_DONE(buf) numbers = {};
	size_t n = json_array_size(x->unnamed);

	if (x->masked)
		ctl_say("values that look like secrets are null in %zu definition%s; 'jobctl apply' keeps "
			"the stored values (--reveal writes them)",
			x->masked, x->masked == 1 ? "" : "s");
	if (x->tables)
		ctl_say("%zu job%s of crontabs left out: the tables define them", x->tables,
			x->tables == 1 ? "" : "s");
	if (n == 0)
		return;
	for (size_t i = 0; i < n && i < UNNAMED_SHOWN; i++)
		buf_printf(&numbers, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "",
			json_integer_value(json_array_get(x->unnamed, i)));
	ctl_say("%zu job%s without a name left out: %s%s (jobctl set %" JSON_INTEGER_FORMAT " name=NAME)", n,
		n == 1 ? "" : "s", numbers.data, n > UNNAMED_SHOWN ? ", …" : "",
		json_integer_value(json_array_get(x->unnamed, 0)));
}

static bool read_export_format(const struct args *a, enum export_format *ret, struct err *e)
{
	const char *word = args_last(a, "format");

	for (int i = 0; i < EXPORT_MAX; i++)
		if (!word || strcmp(word, export_names[i]) == 0) {
			*ret = (enum export_format)i;
			return true;
		}
	return err_set(e, ERR_INVALID, "--format: '%s' is not json, jsonl or crontab", word);
}

int verb_export(struct ctl *c, const struct args *a)
{
	json_auto_t *jobs = json_array(), *unnamed = json_array();
	struct exporting x = {.jobs = jobs, .unnamed = unnamed};
	bool reveal = args_has(a, "reveal"), ok;
	enum export_format format = EXPORT_JSON;
	AUTO_DONE(buf) out = {};
	struct err e = {};
	json_t **sorted;

	x.n_patterns = args_operands(a, &x.patterns);
	if (!read_export_format(a, &format, &e) || !read_jobs(c, args_last(a, "owner"), &x, &e))
		return ctl_fail(&e);
	if (x.n_patterns && json_array_size(jobs) + json_array_size(unnamed) + x.tables == 0) {
		err_set(&e, ERR_NOT_FOUND, "no job matches '%s'; 'jobctl list' shows yours", x.patterns[0]);
		return ctl_fail(&e);
	}
	sorted = sort_jobs(jobs);
	ok = format == EXPORT_CRONTAB ? put_crontab(sorted, reveal, &out, &e)
				      : put_definitions(&x, sorted, reveal, format == EXPORT_JSONL, &out, &e);
	free(sorted);
	if (!ok)
		return ctl_fail(&e);
	say_left_out(&x);
	return render_text(&out);
}
