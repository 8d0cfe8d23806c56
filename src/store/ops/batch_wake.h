/* SPDX-License-Identifier: Apache-2.0 */
/* Reads with each batch when the daemon must look at the store next. */
#pragma once
#include "base/auto.h"
#include "store/backend/query.h"
#include "store/ops/batch.h"

/* Queries that are sent with COMMIT and read afterwards. */
struct batch_wake_reads {
	struct query slot, lanes, notices;
};
void batch_wake_reads_done(struct batch_wake_reads *r);

/* Starts the queries. On a server they are sent before COMMIT, so that they see the batch. */
bool batch_wake_reads_send(struct batch_wake_reads *r, struct store *s, struct err *e);
bool batch_wake_reads_take(struct batch_wake_reads *r, struct store *s, struct batch_wake *ret);
/*
 * For a batch on a server that only adds jobs: derives the times from those that were read last,
 * without a query. False: the batch has another operation, or they were not read recently.
 */
bool batch_wake_derive(const struct store *s, struct op *const *ops, size_t n, struct batch_wake *ret);
