/* SPDX-License-Identifier: Apache-2.0 */
/* Owner numbers, one per uid with its user name; see core/job/owner.h. */
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
bool owner_live_jobs(struct store *s, int64_t uid, int64_t job /* see owner_count_read() */, int64_t *ret, struct err *e);

/* The number of an owner; -1: unknown. */
bool owner_read_number(struct store *s, uint32_t uid, const char *name, int64_t *ret, struct err *e);
bool owner_read_counts(struct store *s, int64_t number, int64_t *ret_jobs, int64_t *ret_active, struct err *e); /* live jobs */
bool owner_read_named(struct store *s, const char *name, int64_t *ret, struct err *e); /* the latest with this name */
