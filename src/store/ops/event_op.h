/* SPDX-License-Identifier: Apache-2.0 */
/* The operation that only adds an audit event. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include <stdint.h>

/* The event is op.act: a request that was refused, or that no other operation records. */
struct op_event {
	struct op op;
	const char *result;  /* static: the code of the error; NULL: ok */
	char detail[200];    /* empty: none */
	int64_t job, run, owner;
	usec_t now;
};
OP_DEFINE(event, event, OP_EVENT, OP_EVENT)
