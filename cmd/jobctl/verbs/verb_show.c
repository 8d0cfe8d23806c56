/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl show'. */
#include "jobctl/verbs/verb_show.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "base/tzfile.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/run.h"
#include "core/start/start_plan.h"
#include "core/time/zone.h"
#include "core/time/zone_cache.h"
#include "jobctl/api.h"
#include "jobctl/archived.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/columns.h"
#include "jobctl/render/graph.h"
#include "jobctl/render/pauses.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/render/sandbox.h"
#include "jobctl/render/words.h"
#include "jobctl/spec/job_env.h"
#include "jobctl/spec/job_object.h"
#include "jobctl/spec/preview.h"
#include "jobctl/spec/spec_command.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

#define LABEL 14 /* width of the labels */

static void put_labelled(struct buf *out, const char *label, const char *text)
{
	if (!text || !*text)
		return;
	buf_printf(out, "%-*s", LABEL, label);
	text_escape(out, text, strlen(text));
	buf_char(out, '\n');
}

static void put_time_line(struct buf *out, const struct ctl *c, const json_t *o, const char *label,
	const char *key)
{
	usec_t t = member_time(o, key);
	char words[WORDS_MAX], instant[WORDS_MAX];

	if (!t)
		return;
	if (c->terminal)
		buf_printf(out, "%-*s%s (%s)\n", LABEL, label, words_instant(t, instant),
			words_relative(t, c->now, words));
	else
		buf_printf(out, "%-*s%s\n", LABEL, label, words_instant(t, instant));
}

static void put_state(struct buf *out, const struct ctl *c, const json_t *o, const char *reason)
{
	const char *state = member_text(o, "state");
	const char *colour = c->colour ? table_state_colour(state) : "";

	buf_printf(out, "%-*s%s%s%s", LABEL, "state", colour, state, *colour ? COLOUR_END : "");
	if (reason && *reason) {
		buf_str(out, " (");
		text_escape(out, reason, strlen(reason));
		buf_char(out, ')');
	}
	buf_char(out, '\n');
}

/* The obstacle as a sentence; 'jobctl why' shows more. */
static void put_waits(struct buf *out, const json_t *o)
{
	put_labelled(out, "waits", member_text(json_object_get(o, "waiting_for"), "message"));
}

/* ---- a job ---- */

static usec_t seconds(const json_t *o, const char *key)
{
	return (usec_t)(json_number_value(json_object_get(o, key)) * USEC_SEC);
}

static void put_last_run(struct buf *out, const struct ctl *c, const json_t *job)
{
	const json_t *last = json_object_get(job, "last_run");
	AUTO_DONE(buf) line = {};
	AUTO_DONE(buf) result = {};
	char words[WORDS_MAX];
	usec_t t = member_time(last, "ended_at");

	if (!json_is_object(last))
		return;
	ref_of_job(job, &line);
	buf_printf(&line, "#%" PRId64 " %s", member_int(last, "id"), member_text(last, "state"));
	words_progress(last, &result);
	if (!result.len)
		words_result(last, &result);
	if (result.len)
		buf_printf(&line, ", %s", result.data);
	if (t)
		buf_printf(&line, ", %s", c->terminal ? words_relative(t, c->now, words)
						      : words_instant(t, words));
	put_labelled(out, "last run", line.data);
}

/* "p50 1.2s, p95 3s of 40 successful runs; last 9s, unusually long". */
static void put_durations(struct buf *out, const json_t *job)
{
	const json_t *d = json_object_get(job, "durations");
	const char *unusual = member_text(d, "unusual");
	AUTO_DONE(buf) line = {};
	int64_t n = member_int(d, "count");
	char words[WORDS_MAX];

	if (n)
		buf_printf(&line, "p50 %s", words_duration(seconds(d, "p50"), words));
	if (n)
		buf_printf(&line, ", p95 %s of %" PRId64 " successful run%s; ",
			words_duration(seconds(d, "p95"), words), n, n == 1 ? "" : "s");
	if (json_is_number(json_object_get(d, "last")))
		buf_printf(&line, "last %s", words_duration(seconds(d, "last"), words));
	if (unusual)
		buf_printf(&line, ", unusually %s", unusual);
	put_labelled(out, "durations", line.data);
}

/* A numeric field that does not have its default, with its unit. */
static void put_number_line(struct buf *out, const struct job_field *f, int64_t n)
{
	char size[WORDS_MAX];
	AUTO_TEXT text = NULL;

	if (n == f->preset)
		return;
	text = f->type == FIELD_SIZE ? xstrdup(words_size(n, size)) : job_field_print(f, n);
	put_labelled(out, f->flag ? f->flag : f->name, text);
}

static void put_pair_lines(struct buf *out, const struct job_field *f, const struct strv *pairs,
	bool reveal)
{
	for (size_t i = 0; i < pairs->n; i++) {
		bool open = reveal || f->offset != offsetof(struct job_spec, env);
		AUTO_TEXT shown = job_env_masked(pairs->v[i], open);

		put_labelled(out, i ? "" : f->name, shown);
	}
}

/* The fields of the definition that have no line of their own above. */
static void put_spec(struct buf *out, const struct job_spec *s, bool reveal)
{
	static const char *const shown[] = {"name", "command", "script", "schedule", "http", "url", "kafka", "lambda"};

	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		const void *at = (const char *)s + f->offset;
		bool skip = false;
		char size[WORDS_MAX];

		for (size_t k = 0; k < ELEMENTS(shown); k++)
			skip = skip || strcmp(f->name, shown[k]) == 0;
		if (skip)
			continue;
		switch (f->type) {
		case FIELD_TEXT:
			put_labelled(out, f->name, *(char *const *)at);
			break;
		case FIELD_LIST:
		case FIELD_MAP:
			put_pair_lines(out, f, at, reveal);
			break;
		case FIELD_BLOB:
			if (((const struct blob *)at)->data)
				put_labelled(out, f->name,
					words_size((int64_t)((const struct blob *)at)->len, size));
			break;
		default:
			put_number_line(out, f, *(const int64_t *)at);
		}
	}
}

/*
 * The next slot in the user's time zone, and in the zone of the job if it shows another time there.
 */
static void put_next_line(struct buf *out, const struct ctl *c, usec_t next,
	const struct zone *z /* NULL: unknown */)
{
	char instant[WORDS_MAX], relative[WORDS_MAX];
	AUTO_DONE(buf) there = {};

	buf_printf(out, "%-*s%s", LABEL, "next", words_instant(next, instant));
	if (z)
		preview_local(next / USEC_SEC * USEC_SEC, z, &there);
	if (z && strncmp(there.data, instant, strlen("2026-11-16T09:00:00")) != 0)
		buf_printf(out, ", %s %s", there.data, z->name);
	if (c->terminal)
		buf_printf(out, " (%s)", words_relative(next, c->now, relative));
	buf_char(out, '\n');
}

/* The meaning of the schedule, and its next slot. */
static void put_meaning(struct buf *out, const struct ctl *c, const json_t *job)
{
	AUTO(zone_cache) *zones = zone_cache_new(tzfile_read);
	AUTO_DONE(preview) p = {};
	AUTO(schedule_set) *set = NULL;
	AUTO_DONE(buf) words = {};
	usec_t next = member_time(job, "next_at");
	const struct zone *z = NULL;
	bool known = preview_of_job(job, &p, NULL) && preview_open(zones, &p, &z, &set, NULL);

	/* a single time needs no explanation */
	if (known && p.after) {
		put_labelled(out, "meaning", p.after);
	} else if (known && schedule_set_kind(set) != SCHEDULE_NOW &&
		schedule_set_kind(set) != SCHEDULE_ONCE) {
		schedule_set_explain(set, &words);
		put_labelled(out, "meaning", words.data);
	}
	if (next && words_is_held(job))
		put_labelled(out, "next", "none while it is paused or frozen");
	else if (next)
		put_next_line(out, c, next, known ? z : NULL);
}

static void put_job_lines(struct buf *out, const struct ctl *c, const json_t *job,
	const struct job_spec *s, bool reveal)
{
	AUTO_DONE(buf) words = {};
	AUTO_DONE(buf) schedule = {};

	ref_job_words(job, &words);
	put_labelled(out, "job", words.data);
	buf_clear(&words);
	put_labelled(out, "owner", member_text(job, "owner"));
	put_state(out, c, job,
		json_is_object(json_object_get(job, "pause")) ? NULL : member_text(job, "reason"));
	if (json_is_object(json_object_get(job, "pause"))) {
		pause_describe(c, json_object_get(job, "pause"), &words);
		put_labelled(out, "pause", words.data);
	} else if (json_is_object(json_object_get(job, "next_pause"))) {
		pause_describe(c, json_object_get(job, "next_pause"), &words);
		put_labelled(out, "pauses", words.data);
	}
	put_waits(out, job);
	buf_clear(&words);
	words_command(job, &words);
	put_labelled(out, s->http ? "http" : s->kafka ? "kafka" : s->lambda ? "lambda" : s->script ? "script" : "command", words.data);
	buf_clear(&words);
	words_schedule(job, &words);
	words_localize(words.data ? words.data : "", &schedule);
	put_labelled(out, "schedule", schedule.data);
	put_meaning(out, c, job);
	put_last_run(out, c, job);
	put_durations(out, job);
	put_spec(out, s, reveal);
	put_time_line(out, c, job, "created", "created_at");
	if (member_int(job, "revision") > 1) {
		put_time_line(out, c, job, "updated", "updated_at");
		buf_printf(out, "%-*s%" PRId64 "\n", LABEL, "revision",
			member_int(job, "revision"));
	}
}

/* ---- a run ---- */

/* I/O on block devices, counted by the control group; 0 if there is none. */
static void put_io(struct buf *line, const json_t *a)
{
	int64_t in = member_int(a, "io_read"), out = member_int(a, "io_written");
	char words[WORDS_MAX];

	if (in)
		buf_printf(line, ", read %s", words_size(in, words));
	if (out)
		buf_printf(line, ", wrote %s", words_size(out, words));
}

static void put_attempt(struct buf *out, const json_t *a)
{
	usec_t from = member_time(a, "started_at"), to = member_time(a, "ended_at");
	const char *error = member_text(a, "error"), *node = member_text(a, "node_name");
	AUTO_DONE(buf) line = {};
	AUTO_DONE(buf) result = {};
	AUTO_TEXT label = xprintf("attempt %" PRId64, member_int(a, "attempt"));
	usec_t cpu = seconds(a, "cpu_user") + seconds(a, "cpu_system");
	char words[WORDS_MAX];

	buf_str(&line, member_text(a, "outcome"));
	if (node)
		buf_printf(&line, " on %s", node);
	words_result(a, &result);
	if (result.len)
		buf_printf(&line, ", %s", result.data);
	if (from && to)
		buf_printf(&line, ", took %s", words_duration(to - from, words));
	if (to)
		buf_printf(&line, ", CPU %s", words_duration(cpu, words));
	if (member_int(a, "max_rss"))
		buf_printf(&line, ", memory %s", words_size(member_int(a, "max_rss"), words));
	put_io(&line, a);
	buf_printf(&line, ", output %s", words_size(member_int(a, "output_bytes"), words));
	if (member_int(a, "output_dropped"))
		buf_printf(&line, " (%s not stored)",
			words_size(member_int(a, "output_dropped"), words));
	if (error)
		buf_printf(&line, ": %s", error);
	put_labelled(out, label, line.data);
}

/* The command of the revision that the run belongs to. The job may have a newer one. */
static void put_definition(struct buf *out, const json_t *definition)
{
	AUTO_DONE(buf) words = {};
	bool script =
		json_object_get(definition, "script") || json_object_get(definition, "script_b64");

	words_command(definition, &words);
	put_labelled(out, script ? "script" : "command", words.data);
}

static void put_results(struct buf *out, const json_t *results)
{
	const char *key, *label = "results";
	json_t *value;

	json_object_foreach((json_t *)results, key, value) {
		AUTO_TEXT line = xprintf("%s=%s", key, json_string_value(value) ? json_string_value(value) : "");

		put_labelled(out, label, line);
		label = "";
	}
}

static void put_run_lines(struct buf *out, const struct ctl *c, const json_t *run,
	const json_t *definition /* NULL: unknown */)
{
	AUTO_DONE(buf) words = {};
	const json_t *attempt;
	size_t i;

	ref_of_run(run, &words);
	put_labelled(out, "run", words.data);
	put_labelled(out, "owner", member_text(run, "owner"));
	put_state(out, c, run, NULL); /* the reason is in the result */
	put_waits(out, run);
	buf_clear(&words);
	words_result(run, &words);
	put_labelled(out, "result", words.data);
	put_labelled(out, "kind", member_text(run, "kind"));
	put_time_line(out, c, run, "slot", "slot");
	if (member_int(run, "slot_count") > 1) {
		put_time_line(out, c, run, "last slot", "slot_last");
		buf_printf(out, "%-*s%" PRId64 "\n", LABEL, "slots", member_int(run, "slot_count"));
	}
	put_time_line(out, c, run, words_waits_for_retry(run) ? "next try" : "due", "due_at");
	put_time_line(out, c, run, "started", "started_at");
	buf_clear(&words);
	words_progress(run, &words);
	put_labelled(out, "progress", words.data);
	put_time_line(out, c, run, "expected end", "estimated_end");
	put_time_line(out, c, run, "ended", "ended_at");
	put_time_line(out, c, run, "dead letter", "dead_at");
	put_results(out, json_object_get(run, "results"));
	buf_printf(out, "%-*s%" PRId64 "\n", LABEL, "revision", member_int(run, "revision"));
	put_definition(out, definition);
	put_labelled(out, "node", member_text(run, "node_name"));
	if (json_is_true(json_object_get(run, "cancel_asked")))
		put_labelled(out, "cancel", "requested");
	json_array_foreach(json_object_get(run, "attempts"), i, attempt)
		put_attempt(out, attempt);
}

/* The newest notice that could not be sent. */
static void put_failed_notice(struct buf *out, struct ctl *c, const json_t *job)
{
	AUTO_TEXT path =
		xprintf("/v1/notices?state=failed&limit=1&job=%" PRId64, member_int(job, "id"));
	json_auto_t *answer = NULL;
	const json_t *n;
	AUTO_TEXT line = NULL;

	if (!api_call(c, "GET", path, NULL, &answer, NULL))
		return;
	n = json_array_get(json_object_get(answer, "notices"), 0);
	if (!n)
		return;
	line = xprintf("'%s' could not be sent to %s: %s", member_text(n, "kind"),
		member_text(n, "channel"),
		member_text(n, "error") ? member_text(n, "error") : "no reason given");
	put_labelled(out, "notice", line);
}

/* ---- verb ---- */

bool verb_show_job_text(const struct ctl *c, const json_t *job, struct buf *out, struct err *e)
{
	AUTO_DONE(job_spec) spec;

	job_spec_init(&spec);
	if (!job_object_read_spec(job, &spec, e))
		return false;
	put_job_lines(out, c, job, &spec, false);
	return true;
}

void verb_show_run_text(const struct ctl *c, const json_t *run, struct buf *out)
{
	put_run_lines(out, c, run, NULL);
}

static int show_job(struct ctl *c, const struct args *a, const json_t *job, const json_t *run)
{
	AUTO_DONE(job_spec) spec;
	AUTO_DONE(buf) out = {};
	struct err e = {};
	bool reveal = args_has(a, "reveal");

	job_spec_init(&spec);
	if (!job_object_read_spec(job, &spec, &e)) {
		err_wrap(&e, "cannot read the job that the daemon sent");
		e.kind = ERR_INTERNAL;
		return ctl_fail(&e);
	}
	if (args_has(a, "sandbox")) {
		if (!sandbox_describe(c, spec.sandbox, &out, &e))
			return ctl_fail(&e);
	} else if (args_has(a, "as-command")) {
		spec_command_write(&spec, reveal ? NULL : job_env_secret, &out);
		buf_char(&out, '\n');
	} else if (args_has(a, "env")) {
		job_env_put(job, run, &spec, reveal, c->terminal, &out);
	} else {
		put_job_lines(&out, c, job, &spec, reveal);
		if (spec.notify.n > 0)
			put_failed_notice(&out, c, job);
	}
	return render_text(&out);
}

/* The whole object as JSON, or a row as in a list. */
static int show_data(const struct ctl *c, const json_t *o, const struct row_kind *kind)
{
	struct rows rows;

	if (c->format == FORMAT_JSON)
		return render_object(c, o);
	rows_begin(&rows, c, kind);
	rows_add(&rows, o);
	rows_end(&rows);
	return EXIT_SUCCESS;
}

/* The definition of the run's revision; NULL: it is no longer stored. */
static const json_t *revision_of(struct ctl *c, const json_t *run, json_t **answer)
{
	AUTO_TEXT path = xprintf("/v1/jobs/%" PRId64 "/revisions?revision=%" PRId64,
		member_int(run, "job"), member_int(run, "revision"));

	if (!api_call(c, "GET", path, NULL, answer, NULL))
		return NULL;
	return json_object_get(json_array_get(json_object_get(*answer, "revisions"), 0),
		"definition");
}

static int show_graph(struct ctl *c, const char *word)
{
	json_auto_t *job = NULL, *graph = NULL;
	AUTO_DONE(buf) out = {};
	AUTO_TEXT path = NULL;
	struct err e = {};
	struct ref ref;

	if (!ref_parse(word, &ref, &e) || !api_job(c, &ref, &job, &e))
		return ctl_fail(&e);
	path = xprintf("/v1/jobs/%" PRId64 "/graph", member_int(job, "id"));
	if (!api_call(c, "GET", path, NULL, &graph, &e))
		return ctl_fail(&e);
	if (c->format == FORMAT_JSON)
		return render_object(c, graph);
	graph_write(graph, &out);
	return render_text(&out);
}

int verb_show(struct ctl *c, const struct args *a)
{
	json_auto_t *job = NULL, *run = NULL, *answer = NULL;
	AUTO_DONE(buf) out = {};
	struct err e = {};
	struct ref ref;
	char *const *words;
	bool graph = args_has(a, "graph"), archived = args_has(a, "archived");
	int views = args_has(a, "as-command") + args_has(a, "env") + args_has(a, "sandbox") + graph;
	bool about_job = views > 0;

	args_operands(a, &words);
	if (views > 1)
		err_set(&e, ERR_INVALID, "give only one of --env, --sandbox, --as-command and --graph");
	else if (graph && !render_is_text(c) && c->format != FORMAT_JSON)
		err_set(&e, ERR_INVALID, "--graph is text or json, not %s", render_format_name(c->format));
	else if (graph && archived)
		err_set(&e, ERR_INVALID, "--graph cannot be used with --archived");
	else if (graph)
		return show_graph(c, words[0]);
	else if (about_job && !render_is_text(c))
		err_set(&e, ERR_INVALID, "--env, --sandbox and --as-command are text, not %s",
			render_format_name(c->format));
	else if (about_job && archived)
		err_set(&e, ERR_INVALID, "--env, --sandbox and --as-command cannot be used with --archived");
	if (e.kind != ERR_NONE || !ref_parse(words[0], &ref, &e) ||
		(archived && !archived_run(c, &ref, &run, &e)) ||
		(ref.run && !archived && !api_run(c, &ref, &run, &e)) ||
		((!ref.run || about_job) && !archived && !api_job(c, &ref, &job, &e)))
		return ctl_fail(&e);
	if (!render_is_text(c))
		return show_data(c, run ? run : job, run ? &run_rows : &job_rows);
	if (job)
		return show_job(c, a, job, run);
	put_run_lines(&out, c, run, archived ? NULL : revision_of(c, run, &answer));
	return render_text(&out);
}
