/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl cancel' and 'jobctl rm'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/each.h"
#include "jobctl/follow.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RUNS_NAMED 3 /* the most runs that a message names */

/* "; run backup#41 is still running (jobctl cancel backup#41)" */
static void put_running_runs(const json_t *job, const json_t *runs, bool ending, bool removed,
	struct buf *line)
{
	size_t n = json_array_size(runs);
	const json_t *run;
	size_t i;

	if (n == 0)
		return;
	buf_str(line, n == 1 ? "; run" : "; runs");
	json_array_foreach(runs, i, run) {
		if (i == RUNS_NAMED)
			break;
		buf_str(line, i ? ", " : " ");
		ref_of_run(run, line);
	}
	if (n > RUNS_NAMED)
		buf_printf(line, " and %zu more", n - RUNS_NAMED);
	if (ending) {
		buf_str(line, n == 1 ? " is being ended" : " are being ended");
		return;
	}
	buf_printf(line, " %s still running (jobctl cancel ", n == 1 ? "is" : "are");
	for (i = 0; i < n && (n == 1 || removed) && i < RUNS_NAMED;
		i++) { /* a removed job cannot be referenced */
		buf_str(line, i ? " " : "");
		ref_of_run(json_array_get(runs, i), line);
	}
	if (n > 1 && !removed)
		buf_printf(line, "--running %" PRId64, member_int(job, "id"));
	buf_char(line, ')');
}

/* The caller may not end a pause by an administrator, so 'resume' would be refused. */
static bool paused_by_another(const json_t *before)
{
	const json_t *by = json_object_get(json_object_get(before, "pause"), "by_uid");

	return json_is_integer(by) && geteuid() != 0 && json_integer_value(by) != member_int(before, "uid");
}

static void say_job(const char *done, const json_t *before, const json_t *answer, bool ending)
{
	const json_t *job = json_object_get(answer, "job");
	bool removed = text_equal(member_text(job, "state"), "removed");
	AUTO_DONE(buf) line = {};
	int64_t queued = member_int(answer, "queued_cancelled");

	buf_printf(&line, "%s job ", done);
	ref_job_words(job, &line);
	if (queued > 0)
		buf_printf(&line, " and %" PRId64 " queued run%s", queued, queued == 1 ? "" : "s");
	put_running_runs(job, json_object_get(answer, "running"), ending, removed, &line);
	if (text_equal(member_text(job, "state"), "cancelled") && paused_by_another(before))
		buf_printf(&line, "; only an administrator can undo that, because %s had paused it",
			member_text(json_object_get(before, "pause"), "by"));
	else if (text_equal(member_text(job, "state"), "cancelled"))
		buf_printf(&line, "; to undo: jobctl resume %" PRId64, member_int(job, "id"));
	ctl_say("%s", line.data);
}

/* The job had ended before, and there was nothing to cancel. */
static bool was_already_ended(const json_t *before, const json_t *answer)
{
	const char *state = member_text(before, "state");

	return (strcmp(state, "finished") == 0 || strcmp(state, "cancelled") == 0) &&
	       member_int(answer, "queued_cancelled") == 0 &&
	       json_array_size(json_object_get(answer, "running")) == 0;
}

static void say_already_ended(const json_t *before)
{
	AUTO_DONE(buf) words = {};
	bool cancelled = strcmp(member_text(before, "state"), "cancelled") == 0;

	ref_job_words(before, &words);
	ctl_say("job %s was already %s; 'jobctl %s %" PRId64 "' %s", words.data,
		member_text(before, "state"), cancelled ? "resume" : "run",
		member_int(before, "id"), cancelled ? "reactivates it" : "runs it again");
}

static void say_run(const json_t *run)
{
	AUTO_DONE(buf) ref = {};

	ref_of_run(run, &ref);
	if (strcmp(member_text(run, "state"), "cancelled") == 0)
		ctl_say("cancelled run %s", ref.data);
	else if (follow_run_is_final(run))
		ctl_say("run %s had already ended: %s", ref.data, member_text(run, "state"));
	else
		ctl_say("run %s is being ended (jobctl wait %s)", ref.data, ref.data);
}

static bool cancel_run_request(struct ctl *c, const struct ref *ref, json_t **ret, struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/runs/%" PRId64 "/cancel", ref->run);
	json_auto_t *before = NULL;

	/* Read first, to check that the job named before the '#' is the job of the run. */
	if (!api_run(c, ref, &before, e))
		return false;
	if (follow_run_is_final(before)) {
		*ret = json_incref(before);
		if (!render_wants_json(c))
			say_run(before);
		return true;
	}
	if (!api_call(c, "POST", path, NULL, ret, e))
		return false;
	if (!render_wants_json(c))
		say_run(*ret);
	return true;
}

static bool cancel_job_request(struct ctl *c, const struct ref *ref, bool running, json_t **ret,
	struct err *e)
{
	json_auto_t *job = NULL, *body = json_pack("{s:b}", "running", running);
	AUTO_TEXT path = NULL;

	if (!api_job(c, ref, &job, e))
		return false;
	path = xprintf("/v1/jobs/%" PRId64 "/cancel", member_int(job, "id"));
	if (!api_call(c, "POST", path, body, ret, e))
		return false;
	if (render_wants_json(c))
		return true;
	if (was_already_ended(job, *ret))
		say_already_ended(job);
	else
		say_job("cancelled", job, *ret, running);
	return true;
}

static bool cancel_each(struct ctl *c, const struct ref *ref, void *running, json_t **ret,
	struct err *e)
{
	if (ref->run)
		return cancel_run_request(c, ref, ret, e);
	return cancel_job_request(c, ref, *(bool *)running, ret, e);
}

int verb_cancel(struct ctl *c, const struct args *a)
{
	bool running = args_has(a, "running");

	return each_operand(c, a, cancel_each, &running);
}

/* ---- rm ---- */

static bool rm_each(struct ctl *c, const struct ref *ref, void *none, json_t **ret, struct err *e)
{
	json_auto_t *job = NULL;
	AUTO_TEXT path = NULL;

	(void)none;
	if (ref->run)
		return err_set(e, ERR_INVALID,
			"'%s' is a run, and only jobs can be removed; 'jobctl cancel %s' ends the run",
			ref->text, ref->text);
	if (!api_job(c, ref, &job, e))
		return false;
	path = xprintf("/v1/jobs/%" PRId64, member_int(job, "id"));
	if (!api_call(c, "DELETE", path, NULL, ret, e))
		return false;
	if (!render_wants_json(c))
		say_job("removed", job, *ret, false);
	return true;
}

/* "remove 'a', 'b'? [y/N]" */
static bool confirm_rm(char *const *words, size_t n)
{
	AUTO_DONE(buf) question = {};

	buf_str(&question, "remove");
	for (size_t i = 0; i < n; i++) {
		buf_printf(&question, "%s '", i ? "," : "");
		text_escape(&question, words[i], strlen(words[i]));
		buf_char(&question, '\'');
	}
	buf_char(&question, '?');
	return ctl_ask(question.data);
}

int verb_rm(struct ctl *c, const struct args *a)
{
	char *const *words;
	size_t n = args_operands(a, &words);

	if (!args_has(a, "yes")) {
		if (!ctl_can_ask()) {
			ctl_say("jobctl: nothing was removed: without a terminal 'jobctl rm' needs --yes");
			return EXIT_USAGE;
		}
		if (!confirm_rm(words, n)) {
			ctl_say("nothing was removed");
			return EXIT_FAILURE;
		}
	}
	return each_operand(c, a, rm_each, NULL);
}
