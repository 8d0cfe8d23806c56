/* SPDX-License-Identifier: Apache-2.0 */
/* Owner numbers: one per pair of uid and user name, see core/owner.h. */
#pragma once
#include "base/clock.h"
#include "store/ops/op.h"
#include <stdint.h>

struct store;

struct op_owner {
	struct op op;
	uint32_t uid;
	const char *name;     /* borrowed */
	usec_t now;
	int64_t number;       /* result */
};
OP_DEFINE(owner, owner, OP_OWNER, OP_OWNER)

/* Counts the owner's live jobs, including those of this transaction. */
bool owner_live_jobs(struct store *s, int64_t uid, int64_t *ret, struct err *e);
