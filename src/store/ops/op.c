/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of an operation. */
#include "base/text.h"
#include "core/job/event.h"
#include "store/ops/op_private.h"
#include <stdarg.h>
#include <stdio.h>

/* Labels of metrics. */
static const char *const names[OP_KIND_MAX] = {
	[OP_JOB_ADD] = "job_add",
	[OP_JOB_BULK] = "job_bulk",
	[OP_JOB_APPLY] = "job_apply",
	[OP_JOB_CANCEL] = "job_cancel",
	[OP_JOB_REMOVE] = "job_remove",
	[OP_JOB_CHANGE] = "job_change",
	[OP_TEMPLATE_PUT] = "template_put",
	[OP_TEMPLATE_REMOVE] = "template_remove",
	[OP_RUN_CANCEL] = "run_cancel",
	[OP_PAUSE] = "pause",
	[OP_RESUME] = "resume",
	[OP_PAUSES_END] = "pauses_end",
	[OP_EXPIRE] = "expire",
	[OP_TRIGGER] = "trigger",
	[OP_PLAN] = "plan",
	[OP_LATE] = "late",
	[OP_BOOT] = "boot",
	[OP_CLAIM] = "claim",
	[OP_STARTED] = "started",
	[OP_ENDED] = "ended",
	[OP_GIVE_BACK] = "give_back",
	[OP_DEAD_RETRY] = "dead_retry",
	[OP_DEAD_PURGE] = "dead_purge",
	[OP_NODE_OPEN] = "node_open",
	[OP_NODE_CLOSE] = "node_close",
	[OP_NODE_COMMAND] = "node_command",
	[OP_LEASE] = "lease",
	[OP_LEAD] = "lead",
	[OP_NODE_POLL] = "node_poll",
	[OP_PRUNE] = "prune",
	[OP_FORGET] = "forget",
	[OP_EVENT] = "event",
	[OP_LIMIT_SET] = "limit_set",
	[OP_LIMIT_RM] = "limit_rm",
	[OP_TOKEN_ADD] = "token_add",
	[OP_TOKEN_REMOVE] = "token_remove",
	[OP_OWNER] = "owner",
	[OP_NOTICE_ADD] = "notice_add",
	[OP_NOTICE_TAKE] = "notice_take",
	[OP_NOTICE_DONE] = "notice_done",
	[OP_NOTICE_RESUME] = "notice_resume",
	[OP_RELAY_ADD] = "relay_add",
	[OP_RELAY] = "relay",
	[OP_PROGRESS] = "progress",
	[OP_STATE_PUT] = "state put",
	[OP_STATE_DROP] = "state drop",
};

const char *op_kind_name(enum op_kind kind)
{
	return (size_t)kind < OP_KIND_MAX ? names[kind] : NULL;
}

struct op *op_new(enum op_kind kind, void (*on_done)(struct op *, void *), void *arg)
{
	const struct op by_kind = {.kind = kind};
	struct op *op = xcalloc(1, op_info(&by_kind)->size);

	op->kind = kind;
	op->on_done = on_done;
	op->arg = arg;
	op->act.by = ACTOR_SYSTEM;
	return op;
}

void op_reset(struct op *op)
{
	op->ok = true;
	op->err = (struct err){};
	if (op_info(op)->reset)
		op_info(op)->reset(op);
}

void op_free(struct op *op)
{
	if (!op)
		return;
	op_reset(op);
	if (op_info(op)->free)
		op_info(op)->free(op);
	free(op);
}

bool op_refuse(struct op *op, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	op->ok = false;
	op->err = (struct err){.kind = kind};
	va_start(ap, fmt);
	vsnprintf(op->err.msg, sizeof(op->err.msg), fmt, ap);
	va_end(ap);
	return true;
}
