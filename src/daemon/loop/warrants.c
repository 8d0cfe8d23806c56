/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for missing warrants by the policy of the spawner. */
#include "daemon/loop/warrants.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/start/exec_spec_build.h"
#include "core/job/call.h"
#include "core/job/job.h"
#include "core/start/exec_spec.h"
#include "core/job/owner.h"
#include "core/start/start_plan.h"
#include <string.h>

static bool missing(int64_t owner, const char *what, struct err *e)
{
	const char *who = owner_uid(owner) == 0 ? "root" : "its owner";

	err_field(e, "warrant",
		"%s needs a warrant, which only %s can request from the spawner: let %s do it with 'jobctl' on "
		"this machine",
		what, who, who);
	if (e)
		e->kind = ERR_DENIED;
	return false;
}

bool warrants_check(enum warrant_policy p, int64_t owner, const char *warrant, struct err *e)
{
	return !warrant_needed(p, owner_uid(owner)) || warrant || missing(owner, "it", e);
}

static bool order_bytes(const struct job *job, const struct job_spec *s, struct buf *out)
{
	AUTO_DONE(exec_spec) o = {};

	exec_spec_build(&o, &(struct exec_spec_source){
				    .spec = s, .uid = owner_uid(job->uid), .owner = job->owner});
	return exec_spec_encode(&o, out, NULL);
}

bool warrants_check_change(enum warrant_policy p, const struct job *job,
	const struct job_spec *before, struct job_spec *after, struct err *e)
{
	AUTO_DONE(buf) was = {};
	AUTO_DONE(buf) is = {};

	if (call_kind_of(after) != CALL_NONE) /* it starts no command */
		return true;
	if (!before->warrant && !warrant_needed(p, owner_uid(job->uid)))
		return true;
	if (!order_bytes(job, before, &was) || !order_bytes(job, after, &is))
		return err_set(e, ERR_INVALID, "the job cannot be encoded for the spawner");
	if (was.len == is.len && memcmp(was.data, is.data, is.len) == 0) {
		if (!after->warrant)
			after->warrant = xstrdup(before->warrant);
		return true;
	}
	return !warrant_needed(p, owner_uid(job->uid)) ||
	       (after->warrant && !text_equal(before->warrant, after->warrant)) ||
	       missing(job->uid, "the change", e);
}

void warrants_put(struct start_plan *p, const char *warrant)
{
	p->has_warrant = warrant && warrant_parse(warrant, p->warrant);
}
