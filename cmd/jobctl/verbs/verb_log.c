/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl log'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/job.h"
#include "jobctl/api.h"
#include "jobctl/archived.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/follow.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/render/run_output.h"
#include "jobctl/render/words.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define STARTED_STATES "queued,running,succeeded,failed,timed_out,cancelled,lost"

struct log_options {
	bool follow, raw;
	int64_t lines;    /* -1: all */
	int64_t attempt;  /* 0: the newest */
};

static bool read_log_options(const struct ctl *c, const struct args *a, struct log_options *w,
	struct err *e)
{
	const char *lines = args_last(a, "lines"), *attempt = args_last(a, "attempt");

	*w = (struct log_options){.follow = args_has(a, "follow"), .lines = -1};
	w->raw = args_has(a, "raw") || !c->terminal;
	if (lines && !text_parse_int(lines, 0, INT64_MAX, &w->lines))
		return err_set(e, ERR_INVALID, "--lines: '%s' is not a number of lines", lines);
	if (attempt && !text_parse_int(attempt, 1, INT64_MAX, &w->attempt))
		return err_set(e, ERR_INVALID, "--attempt: '%s' is not the number of an attempt",
			attempt);
	return true;
}

/* Skips runs without an attempt, for example cancelled while queued: they have no output. */
static bool on_started(const json_t *run, void *arg)
{
	json_t **found = arg;

	if (member_int(run, "attempt") == 0)
		return true;
	*found = json_incref((json_t *)run);
	return false;
}

/* Finds the newest run that has started; *ret NULL: none. */
static bool newest_started(struct ctl *c, int64_t job, json_t **ret, struct err *e)
{
	AUTO_DONE(buf) path = {};
	json_t *found = NULL;
	struct pages pages = {.member = "runs", .row = on_started, .arg = &found};
	bool ok;

	buf_printf(&path, "/v1/runs?job=%" PRId64 "&state=" STARTED_STATES, job);
	pages.path = path.data;
	ok = api_pages(c, &pages, e);
	free(pages.next_cursor);
	*ret = found;
	return ok;
}

static bool find_run(struct ctl *c, const struct ref *ref, const struct log_options *w,
	json_t **ret, struct err *e)
{
	json_auto_t *job = NULL;
	enum job_state state;
	usec_t next;

	if (ref->run)
		return api_run(c, ref, ret, e);
	if (!api_job(c, ref, &job, e))
		return false;
	if (!w->follow && !newest_started(c, member_int(job, "id"), ret, e))
		return false;
	if (w->follow && !follow_find(c, member_int(job, "id"), -1, ret, e))
		return false;
	if (w->follow && !*ret && !follow_first(c, member_int(job, "id"), ret, e))
		return false;
	if (*ret)
		return true;
	if (!job_state_parse(member_text(job, "state"), &state) || state >= JOB_FINISHED ||
		w->follow)
		return err_set(e, ERR_NOT_FOUND, "job '%s' has ended and never ran (jobctl why %s)",
			ref->text, ref->text);
	next = member_time(job, "next_at");
	if (next) {
		char when[WORDS_MAX];

		if (next < c->now)
			return err_set(e, ERR_NOT_FOUND,
				"job '%s' has not run yet; it has been due for %s (jobctl why %s)",
				ref->text, words_duration(c->now - next, when), ref->text);
		return err_set(e, ERR_NOT_FOUND,
			"job '%s' has not run yet; its next run is %s (jobctl log -f %s)",
			ref->text, words_relative(next, c->now, when), ref->text);
	}
	return err_set(e, ERR_NOT_FOUND,
		"job '%s' has not started a run yet; 'jobctl log -f %s' waits for it", ref->text,
		ref->text);
}

/* The offset at which the last 'lines' lines begin. */
static size_t last_lines(const struct buf *text, int64_t lines)
{
	size_t at = text->len;

	if (at > 0 && text->data[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (text->data[at - 1] == '\n' && --lines <= 0)
			break;
	return at;
}

/* The error of an attempt (0: the newest); NULL: none. */
static const char *attempt_error(const json_t *run, int64_t number)
{
	const char *error = NULL;
	const json_t *attempt;
	size_t i;

	json_array_foreach(json_object_get(run, "attempts"), i, attempt)
		if (number == 0 || member_int(attempt, "attempt") == number)
			error = member_text(attempt, "error");
	return error;
}

/* Reports output that was not stored: it exceeded the limit, or the disk was full. */
static void say_dropped(struct ctl *c, const struct run_output_range *place, int64_t dropped)
{
	json_auto_t *run = NULL;
	const char *error = NULL;
	char size[WORDS_MAX];

	if (dropped <= 0)
		return;
	if (api_run_id(c, place->run, &run, NULL))
		error = attempt_error(run, place->attempt);
	if (error && strstr(error, "output could not be written"))
		ctl_say("(%s of this output were not stored: %s)", words_size(dropped, size),
			error);
	else
		ctl_say("(%s of this output were not stored; --output-limit sets the limit)",
			words_size(dropped, size));
}

/* Reports why a run wrote nothing, for example because its command could not be started. */
static void say_why(struct ctl *c, int64_t id)
{
	json_auto_t *run = NULL;
	AUTO_DONE(buf) ref = {};
	AUTO_DONE(buf) why = {};

	if (!api_run_id(c, id, &run, NULL))
		return;
	ref_of_run(run, &ref);
	words_result(run, &why);
	if (why.len)
		ctl_say("(run %s wrote nothing: %s)", ref.data, why.data);
}

/* Shows the last lines. place->from becomes the offset at which following continues. */
static bool show_tail(struct ctl *c, const struct log_options *w, struct run_output_range *place,
	struct err *e)
{
	AUTO_DONE(run_output) o = {.raw = w->raw};
	AUTO_DONE(buf) text = {};
	int64_t total, dropped;
	size_t at;

	if (!run_output_fetch(c, place, &text, &total, &dropped, e))
		return false;
	at = w->lines == 0 ? text.len : last_lines(&text, w->lines);
	if (text.len > at)
		run_output_put(&o, text.data + at, text.len - at);
	run_output_end(&o);
	render_flush(&o.out);
	place->from = total;
	run_output_say_note(c);
	return true;
}

static bool show_output(struct ctl *c, const struct log_options *w, const json_t *run,
	struct err *e)
{
	AUTO_DONE(run_output) o = {.raw = w->raw};
	struct run_output_range place = {.run = member_int(run, "id"), .attempt = w->attempt};
	int64_t total = 0, dropped = 0;

	if (w->lines >= 0)
		return show_tail(c, w, &place, e);
	if (!run_output_copy(c, &o, &place, &total, &dropped, e))
		return false;
	if (!run_output_say_note(c))
		say_dropped(c, &place, dropped);
	if (total == 0 && follow_run_is_final(run))
		say_why(c, place.run);
	return true;
}

static bool show_followed(struct ctl *c, const struct log_options *w, const json_t *run,
	struct err *e)
{
	json_auto_t *final = NULL;
	struct follow_from from = {.run = member_int(run, "id"),
		.attempt = w->attempt,
		.raw = w->raw};
	int64_t tries = member_int(run, "attempt");

	if (w->lines >= 0 && tries > 0) {
		struct run_output_range place = {.run = from.run,
			.attempt = w->attempt ? w->attempt : tries};

		if (!show_tail(c, w, &place, e))
			return false;
		from.attempt = place.attempt;
		from.offset = place.from;
	}
	if (!follow_output(c, &from, &final, e))
		return false;
	if (isatty(STDERR_FILENO))
		follow_say(final, false);
	return true;
}

static bool show_archived(struct ctl *c, const struct log_options *w, const struct ref *ref, struct err *e)
{
	AUTO_DONE(run_output) o = {.raw = w->raw};
	json_auto_t *run = NULL;

	if (w->follow || w->lines >= 0)
		return err_set(e, ERR_INVALID, "--follow and --lines cannot be used with --archived");
	return archived_run(c, ref, &run, e) && run_output_copy_archived(c, &o, member_text(run, "archived_as"), w->attempt, e);
}

int verb_log(struct ctl *c, const struct args *a)
{
	json_auto_t *run = NULL;
	struct err e = {};
	struct log_options log_options;
	struct ref ref;
	char *const *words;

	args_operands(a, &words);
	if (!read_log_options(c, a, &log_options, &e) || !ref_parse(words[0], &ref, &e))
		return ctl_fail(&e);
	if (args_has(a, "archived"))
		return show_archived(c, &log_options, &ref, &e) ? EXIT_SUCCESS : ctl_fail(&e);
	if (!find_run(c, &ref, &log_options, &run, &e))
		return ctl_fail(&e);
	if (!(log_options.follow ? show_followed : show_output)(c, &log_options, run, &e))
		return ctl_fail(&e);
	return EXIT_SUCCESS;
}
