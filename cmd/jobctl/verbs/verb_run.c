/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl run'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/follow.h"
#include "jobctl/member.h"
#include "jobctl/render/columns.h"
#include "jobctl/render/render.h"
#include "jobctl/render/rows.h"
#include "jobctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

/* Copies --param NAME=VALUE into the body of the request. A name can be given once. */
static bool set_run_params(const struct args *a, json_t *body, struct err *e)
{
	size_t n = args_count(a, "param");
	json_t *params = json_object();

	if (n)
		json_object_set_new(body, "params", params);
	else
		json_decref(params);
	for (size_t i = 0; i < n; i++) {
		const char *pair = args_nth(a, "param", i), *eq = strchr(pair, '=');
		AUTO_TEXT name = eq ? xstrndup(pair, (size_t)(eq - pair)) : NULL;

		if (!eq || eq == pair)
			return err_set(e, ERR_INVALID, "--param: '%s' is not NAME=VALUE", pair);
		if (json_object_get(params, name))
			return err_set(e, ERR_INVALID, "--param: '%s' is given twice", name);
		if (json_object_set_new(params, name, json_string(eq + 1)) < 0)
			return err_set(e, ERR_INVALID, "--param: the value of '%s' must be UTF-8",
				name);
	}
	return true;
}

static bool request_run(struct ctl *c, const struct args *a, json_t **ret, struct err *e)
{
	json_auto_t *body = json_object(), *job = NULL;
	AUTO_TEXT path = NULL;
	char *const *words;
	struct ref ref;

	args_operands(a, &words);
	c->job_typed = words[0];
	c->yes = args_has(a, "yes");
	if (args_has(a, "as-scheduled") && (args_has(a, "force") || args_has(a, "param")))
		return err_set(e, ERR_INVALID,
			"--as-scheduled runs the job as its schedule does; it excludes --force and "
			"--param");
	if (!ref_parse(words[0], &ref, e) || !set_run_params(a, body, e))
		return false;
	if (ref.run)
		return err_set(e, ERR_INVALID, "'%s' is a run; give the job to be run", words[0]);
	if (!api_job(c, &ref, &job, e))
		return false;
	if (args_has(a, "as-scheduled"))
		json_object_set_new(body, "as_scheduled", json_true());
	if (args_has(a, "force"))
		json_object_set_new(body, "force", json_true());
	api_add_trace(body);
	path = xprintf("/v1/jobs/%" PRId64 "/run", member_int(job, "id"));
	return api_call(c, "POST", path, body, ret, e);
}

static int show_run(const struct ctl *c, const json_t *run, bool quiet)
{
	AUTO_DONE(buf) ref = {};
	struct rows rows;

	ref_of_run(run, &ref);
	if (render_wants_json(c))
		return render_object(c, run);
	if (c->format == FORMAT_CSV) {
		rows_begin(&rows, c, &run_rows);
		rows_add(&rows, run);
		rows_end(&rows);
		return EXIT_SUCCESS;
	}
	if (c->format != FORMAT_NAME && follow_run_is_final(run))
		ctl_say("run %s is %s: %s", ref.data, member_text(run, "state"),
			member_text(run, "reason") ? member_text(run, "reason") : "");
	else if (c->format != FORMAT_NAME)
		ctl_say("run %s is queued (jobctl log -f %s)", ref.data, ref.data);
	/*
	 * On a terminal the message is enough. A script reads the name, unless it follows the
	 * output.
	 */
	if (c->format != FORMAT_NAME && (c->terminal || quiet))
		return EXIT_SUCCESS;
	buf_char(&ref, '\n');
	return render_text(&ref);
}

int verb_run(struct ctl *c, const struct args *a)
{
	bool follow = args_has(a, "follow");
	struct follow_from from = {.attempt = 1, .raw = !c->terminal};
	json_auto_t *run = NULL, *final = NULL;
	struct err e = {};
	int code;

	if (!request_run(c, a, &run, &e)) {
		if (e.kind == ERR_UNCERTAIN)
			err_set(&e, e.kind,
				"%s; the run may or may not have been queued: check with 'jobctl runs'",
				e.msg);
		return ctl_fail(&e);
	}
	code = show_run(c, run, follow);
	if (code || (!follow && !args_has(a, "wait")))
		return code;
	from.run = member_int(run, "id");
	if (!(follow ? follow_output(c, &from, &final, &e)
		     : follow_wait(c, from.run, -1, &final, &e)))
		return ctl_fail(&e);
	follow_say(final, !follow);
	return follow_exit(final, args_has(a, "propagate"));
}
