/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on queues or the limits of owners. */
#pragma once
#include "core/job/policy.h"
#include "store/limit.h"
#include "store/ops/op.h"
#include "store/store.h"

/* OP_LIMIT_SET and OP_LIMIT_RM */
struct op_limit {
	struct op op;
	enum limit_scope scope;
	const char *key;      /* borrowed: name of the queue, or uid in digits */
	enum limit_be { LIMIT_BE_EITHER, LIMIT_BE_NEW, LIMIT_BE_THERE } be; /* refused unless it does, or does not, exist */
	/* values that are not given stay as they are; a new queue or owner gets the defaults */
	bool running_given, weight_given, rate_given;
	int64_t running, weight;
	struct rate rate;
	usec_t now;
	bool created;         /* result */
};
OP_DEFINE(limit, limit, OP_LIMIT_SET, OP_LIMIT_RM)

/*
 * Checks that a queue exists. NULL is the default queue, which always exists. If it does not,
 * *refusal is ERR_INVALID for the field "queue", with the nearest name. In a transaction that
 * writes, the queue cannot be removed before the commit.
 */
bool limit_queue_check(struct store *s, const char *queue, struct err *refusal, struct err *e);
bool limit_queue_prefetch(struct store *s, const char *queue, struct err *e);
