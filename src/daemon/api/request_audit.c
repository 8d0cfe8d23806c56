/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the caller of a request for the audit trail. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/api/audit.h"
#include "daemon/api/client_user.h"
#include "daemon/api/request_private.h"
#include "daemon/api/route.h"
#include "daemon/api/server_private.h"
#include "store/ops/op.h"
#include <inttypes.h>
#include <stdio.h>

static void describe_request(const struct request *r, struct act *ret)
{
	const char *who = client_user_name(r);

	*ret = (struct act){
		.by.uid = r->who.uid, .by.number = r->who.number, .what = r->route->what};
	snprintf(ret->by.who, sizeof(ret->by.who), "%s", who ? who : "");
	if (r->conn->tcp)
		snprintf(ret->by.origin, sizeof(ret->by.origin), "tcp %s %.40s", r->conn->address,
			r->token_name);
	else
		snprintf(ret->by.origin, sizeof(ret->by.origin), "unix pid %" PRId64,
			r->conn->pid);
	snprintf(ret->object, sizeof(ret->object), "%s", r->params[0] ? r->params[0] : "");
}

void request_act(struct request *r, struct op *op)
{
	describe_request(r, &op->act);
	r->acted = true;
}

/*
 * A refused operation is recorded by audit_refused_op(), because the request may have ended by
 * then.
 */
void request_refused(const struct request *r, const struct err *why)
{
	struct act act;

	if (!r->context->audit || !r->route || r->route->what == EVENT_NONE || r->acted ||
	    request_number(r, "dry_run", 0))
		return;
	describe_request(r, &act);
	audit_refused(r->context->audit, &act, why);
}
