/* SPDX-License-Identifier: Apache-2.0 */
/* Locks runs and reads what decides about their moves. */
#include "store/ops/run/locked_runs.h"
#include "base/text.h"
#include "store/backend/query.h"
#include "store/set.h"
#include "store/store_private.h"
#include <stdlib.h>

void locked_runs_done(struct locked_runs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].node);
		free(l->v[i].queue);
		free(l->v[i].reason);
	}
	free(l->v);
	map_done(&l->by_id);
}

static void locked_run_read(struct query *q, struct locked_run *h)
{
	h->id = query_get_int(q);
	h->job = query_get_int(q);
	h->uid = query_get_int(q);
	h->state = (enum run_state)query_get_int(q);
	h->fence = query_get_int(q);
	h->node = query_get_copy(q);
	h->queue = query_get_copy(q);
	h->reason = query_get_copy(q);
	h->cancel_asked = query_get_int(q);
	h->job_state = (enum job_state)query_get_int(q);
	h->slot = query_get_int(q);
	h->notifies = query_get_int(q);
	h->chained = query_get_int(q);
	h->slot_first = query_get_int(q);
}

bool locked_runs_take(struct query *q, size_t most, struct locked_runs *l)
{
	l->v = xcalloc(most, sizeof(*l->v));
	while (l->n < most && query_row(q)) {
		struct locked_run *h = &l->v[l->n++];

		locked_run_read(q, h);
		map_put(&l->by_id, h->id, h);
	}
	return !q->failed;
}

bool locked_runs_lock(struct store *s, struct set *ids, struct locked_runs *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_LOCK, e);

	set_bind(&q, ids);
	return locked_runs_take(&q, ids->n, l);
}

bool locked_run_is_ours(const struct locked_run *h, int64_t fence, const char *node)
{
	return (h->state == RUN_CLAIMED || h->state == RUN_RUNNING) && h->fence == fence &&
	       text_equal(h->node, node);
}

bool locked_run_may_requeue(const struct locked_run *h)
{
	return !h->cancel_asked && h->job_state != JOB_CANCELLED && h->job_state != JOB_REMOVED;
}
