/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a change of a job to the daemon; shows the result. */
#include "jobctl/verbs/change.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/ctl.h"
#include "jobctl/member.h"
#include "jobctl/render/dry_run.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/next_run.h"
#include <inttypes.h>

bool change_send(struct ctl *c, const json_t *job, json_t *patch, int64_t revision, bool dry_run,
	json_t **ret, struct err *e)
{
	AUTO_TEXT path = xprintf("/v1/jobs/%" PRId64 "%s", member_int(job, "id"),
		dry_run ? "?dry_run=true" : "");

	if (revision)
		json_object_set_new(patch, "revision", json_integer(revision));
	return api_call(c, "PATCH", path, patch, ret, e);
}

/* "changed job 12 'backup': priority 0 → 5 (revision 3); it runs in 15m" */
static void say_changed(struct ctl *c, const json_t *job)
{
	AUTO_DONE(buf) line = {};
	const char *what = member_text(job, "what");

	if (!json_is_true(json_object_get(job, "changed"))) {
		buf_str(&line, "job ");
		ref_job_words(job, &line);
		buf_str(&line, " already has this definition; nothing was changed");
		ctl_say("%s", line.data);
		return;
	}
	buf_str(&line, "changed job ");
	ref_job_words(job, &line);
	buf_printf(&line, ": %s (revision %" PRId64 ")", what ? what : "",
		member_int(job, "revision"));
	if (member_time(job, "next_at") > c->now)
		next_run_words(c, job, &line);
	ctl_say("%s", line.data);
}

int change_show(struct ctl *c, const json_t *answer, bool dry_run)
{
	if (render_wants_json(c))
		return render_object(c, answer);
	if (dry_run)
		return dry_run_show_change(c, answer);
	say_changed(c, answer);
	dry_run_say_findings(json_object_get(answer, "findings"));
	return EXIT_SUCCESS;
}
