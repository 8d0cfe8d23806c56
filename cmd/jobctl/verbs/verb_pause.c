/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the verbs for pauses: pause, resume, freeze, thaw. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/each.h"
#include "jobctl/member.h"
#include "jobctl/render/pauses.h"
#include "jobctl/render/render.h"
#include "jobctl/render/words.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

/* Copies --reason into the body of the request. */
static bool set_reason(const struct args *a, json_t *body, struct err *e)
{
	const char *reason = args_last(a, "reason");

	if (reason && json_object_set_new(body, "reason", json_string(reason)) < 0)
		return err_set(e, ERR_INVALID, "--reason: the text must be UTF-8");
	return true;
}

/* Copies --until and --reason into the body of the request. */
static bool set_until_and_reason(const struct ctl *c, const struct args *a, json_t *body,
	struct err *e)
{
	const char *until = args_last(a, "until");
	char text[RFC3339_MAX];
	usec_t t;

	if (until) {
		if (!pause_until_read(c, until, &t, e))
			return false;
		json_object_set_new(body, "until", json_string(rfc3339_format(t, text)));
	}
	return set_reason(a, body, e);
}

/* ---- jobs ---- */

static void put_released(const json_t *answer, struct buf *line)
{
	int64_t n = member_int(answer, "released");

	if (n > 0)
		buf_printf(line, "; %" PRId64 " run%s that %s held back can start now", n,
			n == 1 ? "" : "s", n == 1 ? "was" : "were");
}

static void say_paused(const struct ctl *c, const json_t *answer)
{
	const json_t *job = json_object_get(answer, "job"), *run;
	AUTO_DONE(buf) line = {};
	size_t i;

	buf_str(&line, "job ");
	ref_job_words(job, &line);
	buf_str(&line, " is ");
	pause_describe(c, json_object_get(job, "pause"), &line);
	json_array_foreach(json_object_get(answer, "running"), i, run) {
		AUTO_DONE(buf) ref = {};

		ref_of_run(run, &ref);
		buf_printf(&line, "; run %s is still running (jobctl cancel %s)", ref.data,
			ref.data);
	}
	ctl_say("%s", line.data);
}

static void say_resumed(const struct ctl *c, const json_t *answer)
{
	const json_t *job = json_object_get(answer, "job");
	AUTO_DONE(buf) line = {};

	buf_str(&line, json_is_true(json_object_get(answer, "was_paused")) ? "resumed job "
									   : "nothing to do: job ");
	ref_job_words(job, &line);
	if (!json_is_true(json_object_get(answer, "was_paused")))
		buf_str(&line, " was not paused");
	else if (text_equal(member_text(job, "state"), "finished"))
		buf_printf(&line,
			"; its schedule has no more slots ('jobctl run %" PRId64 "' runs it again)",
			member_int(job, "id"));
	put_released(answer, &line);
	if (json_is_object(json_object_get(job, "next_pause"))) {
		buf_str(&line, "; it will be ");
		pause_describe(c, json_object_get(job, "next_pause"), &line);
	}
	ctl_say("%s", line.data);
}

struct pause_request {
	const char *what; /* pause or resume */
	const json_t *body;
};

static bool pause_or_resume_job(struct ctl *c, const struct ref *ref, void *arg, json_t **ret,
	struct err *e)
{
	const struct pause_request *o = arg;
	json_auto_t *job = NULL;
	AUTO_TEXT path = NULL;

	if (ref->run)
		return err_set(e, ERR_INVALID,
			"'%s' is a run, and only jobs can be paused; 'jobctl cancel %s' ends the run",
			ref->text, ref->text);
	if (!api_job(c, ref, &job, e))
		return false;
	path = xprintf("/v1/jobs/%" PRId64 "/%s", member_int(job, "id"), o->what);
	if (!api_call(c, "POST", path, o->body, ret, e))
		return false;
	if (render_wants_json(c))
		return true;
	if (strcmp(o->what, "pause") == 0)
		say_paused(c, *ret);
	else
		say_resumed(c, *ret);
	return true;
}

/* ---- scopes ---- */

/* The scope given by options; *ret_scope NULL: none. */
static bool read_scope(const struct args *a, const char **ret_scope, const char **ret_key,
	struct err *e)
{
	static const char *const scopes[] = {"all", "queue", "tag"};
	const char *found = NULL;

	for (size_t i = 0; i < ELEMENTS(scopes); i++) {
		if (!args_has(a, scopes[i]))
			continue;
		if (found)
			return err_set(e, ERR_INVALID, "give either --%s or --%s, not both", found,
				scopes[i]);
		if (args_count(a, scopes[i]) > 1)
			return err_set(e, ERR_INVALID, "--%s can be given only once", scopes[i]);
		found = scopes[i];
	}
	*ret_key = found ? args_last(a, found) : NULL;
	*ret_scope = found ? found : args_has(a, "owner") ? "owner" : NULL;
	return true;
}

static int show_scope_result(struct ctl *c, const json_t *answer, const char *over,
	const char *was_not)
{
	AUTO_DONE(buf) line = {};

	if (render_wants_json(c))
		return render_object(c, answer);
	if (json_object_get(answer, "scope")) {
		pause_describe_scope(answer, &line);
		buf_str(&line, " is ");
		pause_describe(c, answer, &line);
	} else if (json_is_true(json_object_get(answer, "was_paused"))) {
		buf_str(&line, over);
		put_released(answer, &line);
	} else {
		buf_str(&line, was_not);
	}
	ctl_say("%s", line.data);
	return EXIT_SUCCESS;
}

static int pause_or_resume_scope(struct ctl *c, const struct args *a, const char *what,
	const char *scope, const char *key, json_t *body)
{
	AUTO_TEXT path = xprintf("/v1/%s", what);
	usec_t until = member_time(body, "until");
	char instant[WORDS_MAX];
	AUTO_DONE(buf) over = {};
	json_auto_t *answer = NULL;
	struct err e = {};

	if (until)
		buf_printf(&over, "the pause is lifted until %s", words_instant(until, instant));
	else
		buf_str(&over, "the pause has ended");
	json_object_set_new(body, "scope", json_string(scope));
	if (key)
		json_object_set_new(body, "key", json_string(key));
	if (args_last(a, "owner"))
		json_object_set_new(body, "owner", json_string(args_last(a, "owner")));
	if (!api_call(c, "POST", path, body, &answer, &e))
		return ctl_fail(&e);
	return show_scope_result(c, answer, over.data,
		"nothing to do: there is no such pause (jobctl status)");
}

static int pause_or_resume(struct ctl *c, const struct args *a, const char *what)
{
	json_auto_t *body = json_object();
	const char *scope = NULL, *key = NULL;
	struct err e = {};
	char *const *words;
	size_t n = args_operands(a, &words);

	if (!read_scope(a, &scope, &key, &e))
		return ctl_fail(&e);
	if ((n > 0) == (scope != NULL)) {
		err_set(&e, ERR_INVALID,
			n ? "give either jobs or one of --all, --tag, --queue and --owner, not both"
			  : "give a job, or one of --all, --tag, --queue and --owner");
		return ctl_fail(&e);
	}
	if (!set_until_and_reason(c, a, body, &e))
		return ctl_fail(&e);
	return scope ? pause_or_resume_scope(c, a, what, scope, key, body)
		     : each_operand(c, a, pause_or_resume_job, &(struct pause_request){what, body});
}

int verb_pause(struct ctl *c, const struct args *a)
{
	return pause_or_resume(c, a, "pause");
}

int verb_resume(struct ctl *c, const struct args *a)
{
	return pause_or_resume(c, a, "resume");
}

/* ---- freeze ---- */

int verb_freeze(struct ctl *c, const struct args *a)
{
	json_auto_t *body = json_object(), *answer = NULL;
	struct err e = {};

	if (args_count(a, "except") > 1)
		err_set(&e, ERR_INVALID,
			"--except can be given only once; give the jobs that may run a common tag");
	if (e.kind || !set_until_and_reason(c, a, body, &e))
		return ctl_fail(&e);
	if (args_last(a, "except"))
		json_object_set_new(body, "spare", json_string(args_last(a, "except")));
	if (!api_call(c, "POST", "/v1/freeze", body, &answer, &e))
		return ctl_fail(&e);
	return show_scope_result(c, answer, "", "");
}

int verb_thaw(struct ctl *c, const struct args *a)
{
	json_auto_t *body = json_object(), *answer = NULL;
	struct err e = {};

	if (!set_reason(a, body, &e) || !api_call(c, "POST", "/v1/thaw", body, &answer, &e))
		return ctl_fail(&e);
	return show_scope_result(c, answer, "the freeze has ended",
		"nothing to do: there is no freeze");
}
