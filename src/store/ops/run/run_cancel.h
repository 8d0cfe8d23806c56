/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels runs. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include <stdint.h>

struct run;
struct set;
struct store;

struct op_run_cancel {
	struct op op;
	int64_t uid;         /* whose runs may be used; -1: all */
	int64_t id;
	usec_t now;
	/* results */
	struct run *run;     /* owned; as it is now: final, or cancel_asked */
	bool was_final;      /* it had ended before; nothing changed */
};
OP_DEFINE(run_cancel, run_cancel, OP_RUN_CANCEL, OP_RUN_CANCEL)

/* Cancels those runs of a set that are queued; *ret_n gets their number. */
bool run_cancel_queued(struct store *s, struct set *set, const char *reason, usec_t now, int64_t *ret_n, struct err *e);
