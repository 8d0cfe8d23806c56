/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes old history. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include "store/read/prune_candidates.h"

struct op_prune {
	struct op op;
	const struct prune_candidates *list; /* borrowed */
	usec_t events_before;          /* older audit events are deleted too, a few at a time */
	/* results */
	int64_t runs, jobs, events;
	struct kept_output *outputs;   /* owned: output files that can be deleted */
	size_t n_outputs;
};
OP_DEFINE(retention_prune, prune, OP_PRUNE, OP_PRUNE)

struct op_forget {
	struct op op;
	const struct kept_output *v;   /* borrowed */
	size_t n;
};
OP_DEFINE(retention_forget, forget, OP_FORGET, OP_FORGET)
