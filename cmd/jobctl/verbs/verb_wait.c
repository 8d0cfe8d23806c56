/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl wait'. */
#include "base/auto.h"
#include "base/duration.h"
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

struct waiting {
	struct ctl *c;
	usec_t until;     /* time of clock_boot; -1: no limit */
	bool propagate;
	struct rows rows; /* for formats other than text */
};

static int report_result(struct waiting *w, const json_t *run)
{
	if (render_is_text(w->c))
		follow_say(run, true);
	else
		rows_add(&w->rows, run);
	return follow_exit(run, w->propagate);
}

static int report_timeout(const struct waiting *w, const char *what, const struct err *e)
{
	if (e->kind != ERR_BUSY || w->until < 0 || clock_boot(&clock_system) < w->until)
		return ctl_fail(e);
	ctl_say("jobctl: '%s' has not ended within --timeout", what);
	return EXIT_WAIT_TIMEOUT;
}

/* The run was removed while jobctl waited. Only planned runs that are not yet due are removed. */
static int report_withdrawn(const char *what)
{
	ctl_say("jobctl: the planned run '%s' was withdrawn because its job was changed or paused; 'jobctl why JOB' shows its "
		"next run",
		what);
	return EXIT_RUN_SKIPPED;
}

/*
 * Waits for all unfinished runs of a job, oldest first; else for the run that follow_find()
 * returns.
 */
static int wait_job(struct waiting *w, const struct ref *ref)
{
	json_auto_t *job = NULL, *open = NULL;
	struct err e = {};
	int code = 0;
	int64_t id;

	if (!api_job(w->c, ref, &job, &e))
		return ctl_fail(&e);
	id = member_int(job, "id");
	if (!api_runs(w->c, id, "queued,claimed,running", 1000, &open, &e))
		return ctl_fail(&e);
	if (json_array_size(open) == 0) {
		json_t *run = NULL;

		if (!follow_find(w->c, id, w->until, &run, &e))
			return report_timeout(w, ref->text, &e);
		if (!run) {
			ctl_say("jobctl: job '%s' never ran and has no next run", ref->text);
			return EXIT_RUN_SKIPPED;
		}
		json_array_append_new(open, run);
	}
	for (size_t i = json_array_size(open); i-- > 0;) {
		json_auto_t *final = NULL;
		int one;

		if (follow_wait(w->c, member_int(json_array_get(open, i), "id"), w->until, &final,
			    &e))
			one = report_result(w, final);
		else if (e.kind == ERR_NOT_FOUND)
			one = report_withdrawn(ref->text);
		else
			return report_timeout(w, ref->text, &e);
		code = code ? code : one;
	}
	return code;
}

static int wait_operand(struct waiting *w, const char *text)
{
	json_auto_t *run = NULL, *final = NULL;
	struct err e = {};
	struct ref ref;

	if (!ref_parse(text, &ref, &e))
		return ctl_fail(&e);
	if (!ref.run)
		return wait_job(w, &ref);
	if (!api_run(w->c, &ref, &run, &e))
		return ctl_fail(&e);
	if (follow_wait(w->c, ref.run, w->until, &final, &e))
		return report_result(w, final);
	return e.kind == ERR_NOT_FOUND ? report_withdrawn(text) : report_timeout(w, text, &e);
}

int verb_wait(struct ctl *c, const struct args *a)
{
	struct waiting w = {.c = c, .until = -1, .propagate = args_has(a, "propagate")};
	const char *timeout = args_last(a, "timeout");
	struct err e = {};
	char *const *words;
	size_t n = args_operands(a, &words);
	int code = 0;
	usec_t d;

	if (timeout) {
		if (!duration_parse(timeout, &d, &e)) {
			err_wrap(&e, "--timeout");
			return ctl_fail(&e);
		}
		w.until = clock_boot(&clock_system) + d;
	}
	if (!render_is_text(c))
		rows_begin(&w.rows, c, &run_rows);
	for (size_t i = 0; i < n; i++) {
		int one = wait_operand(&w, words[i]);

		code = code ? code : one;
	}
	if (!render_is_text(c))
		rows_end(&w.rows);
	return code;
}
