/* SPDX-License-Identifier: Apache-2.0 */
/* The operation that only adds an audit event. */
#include "store/ops/event_op.h"
#include "store/events.h"
#include "store/ops/op_private.h"
#include "store/store_private.h"

bool event_op_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < n; i++) {
		const struct op_event *o = event_op(ops[i]);
		const struct act *act = &ops[i]->act;

		event_add(s, &(struct event_new){.at = o->now, .by = &act->by, .what = act->what, .job = o->job, .run = o->run,
			.owner = o->owner, .object = act->object[0] ? act->object : NULL, .result = o->result,
			.detail = o->detail[0] ? o->detail : NULL});
	}
	return true;
}
