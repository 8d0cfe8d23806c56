/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the parts of a submission that follow from the request and its client. */
#include "daemon/api/routes/submission_context.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "daemon/api/client_user.h"
#include "daemon/api/request.h"
#include "daemon/api/server.h"
#include "daemon/api/submit/submission.h"
#include "daemon/loop/spawner_link.h"
#include "daemon/schedule/concurrency.h"

void submission_context_fill(struct request *r, struct submission *ret)
{
	bool user_mode = r->context->user_mode;

	*ret = (struct submission){
		.max_jobs = request_limits(r)->bulk_jobs,
		.now = request_now(r),
		.admin = request_sees_all(r),
		.foreign = !user_mode && request_owner(r) != r->who.number,
		.of_root = !user_mode && owner_uid(request_owner(r)) == 0,
		.uid = request_owner(r),
		.owner = xstrdup(client_user_owner_name(r)),
		.jobs_limit = client_user_jobs_limit(r),
		.bytes_limit = client_user_store_limit(r),
		.warrants = spawner_link_warrants(r->context->spawner),
		.machine = *concurrency_machine(r->context->concurrency),
		.sandboxes = spawner_link_sandboxes(r->context->spawner),
		.limits_refused = spawner_link_limits_refused(r->context->spawner),
		.calls = {.allow = r->context->http_allow, .proxy = r->context->http_proxy, .functions = r->context->lambda_functions,
			.callbacks = r->context->callbacks != NULL, .buckets = r->context->s3_artifacts,
			.of_root = !user_mode && owner_uid(request_owner(r)) == 0},
	};
}
