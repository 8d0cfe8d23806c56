/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of an operation. */
#include "base/text.h"
#include "core/job/event.h"
#include "store/ops/op_private.h"
#include <stdarg.h>
#include <stdio.h>

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
