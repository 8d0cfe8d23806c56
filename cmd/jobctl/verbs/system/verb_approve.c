/* SPDX-License-Identifier: Apache-2.0 */
/* Implements 'jobctl approve'. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "jobctl/api.h"
#include "jobctl/args.h"
#include "jobctl/ctl.h"
#include "jobctl/each.h"
#include "jobctl/member.h"
#include "jobctl/render/render.h"
#include "jobctl/verbs/verbs.h"
#include "jobctl/warrant_supply.h"
#include <inttypes.h>

static bool approve_each(struct ctl *c, const struct ref *ref, void *none, json_t **ret,
	struct err *e)
{
	json_auto_t *job = NULL, *patch = json_object();
	AUTO_TEXT path = NULL;
	AUTO_DONE(buf) line = {};

	(void)none;
	if (ref->run)
		return err_set(e, ERR_INVALID, "'%s' is a run; only jobs can be approved",
			ref->text);
	if (!api_job(c, ref, &job, e) || !warrant_supply_approve(c, ref, job, patch, e))
		return false;
	path = xprintf("/v1/jobs/%" PRId64, member_int(job, "id"));
	json_object_set_new(patch, "revision", json_integer(member_int(job, "revision")));
	if (!api_call(c, "PATCH", path, patch, ret, e))
		return false;
	buf_str(&line, "approved job ");
	ref_job_words(*ret, &line);
	if (!render_wants_json(c))
		ctl_say("%s", line.data);
	return true;
}

int verb_approve(struct ctl *c, const struct args *a)
{
	c->yes = args_has(a, "yes");
	return each_operand(c, a, approve_each, NULL);
}
