/* SPDX-License-Identifier: Apache-2.0 */
/* Takes numbers for new jobs and runs; on a server from a reserve, without a round trip. */
#pragma once
#include "store/backend/query.h"
#include <stddef.h>

struct err;
struct store;

/* Numbers of one kind that the sequence has given out and that no row has yet. */
struct row_ids {
	int64_t *v;   /* owned */
	size_t at, n; /* v[at] is the next one */
	size_t taken; /* by this batch */
};

bool row_ids_prefetch_run(struct store *s, struct err *e); /* one more run will be added; see store/ops/prefetch.h */
bool row_ids_take(struct store *s, int query, size_t n, int64_t *ids, struct err *e); /* Q_JOB_IDS or Q_RUN_IDS */

/*
 * Refills the reserve with the batch, so that the next batch of this size finds its numbers. The
 * queries are sent before COMMIT; their rows are taken afterwards.
 */
struct row_ids_refill {
	struct query q[2];
};
bool row_ids_refill_send(struct row_ids_refill *r, struct store *s, struct err *e);
void row_ids_refill_take(struct row_ids_refill *r, struct store *s);
void row_ids_refill_done(struct row_ids_refill *r);

void row_ids_forget(struct store *s); /* the connection was lost: a promoted standby may give these numbers again */
void row_ids_free(struct store *s);
