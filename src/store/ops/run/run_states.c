/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and deletes the state that runs take to other nodes. */
#include "store/ops/run/run_states.h"
#include "base/text.h"
#include "store/ops/op_private.h"
#include "store/ops/owner_quota.h"
#include "store/set.h"
#include "store/store_private.h"
#include <inttypes.h>

#define SWEEP_STEP 100

/* Deletes the parts of the attempts 'first' to 'fence'. */
static bool parts_drop(struct store *s, int64_t run, int64_t first, int64_t fence, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_STATE_DROP, e);

	query_int(&q, run);
	query_int(&q, first);
	query_int(&q, fence);
	return owner_quota_subtract_rows(s, &q);
}

static bool owner_find(struct store *s, const struct op_state_put *p, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_STATE_OWNER, e);

	query_int(&q, p->run);
	query_int(&q, p->fence);
	query_text(&q, p->node);
	*ret = -1;
	if (query_row(&q))
		*ret = query_get_int(&q);
	return query_finish(&q);
}

static bool part_insert(struct store *s, const struct op_state_put *p, int64_t uid, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_STATE_PUT, e);

	query_int(&q, p->run);
	query_int(&q, p->fence);
	query_int(&q, p->part);
	query_int(&q, p->last);
	query_int(&q, uid);
	query_text(&q, p->data);
	while (query_row(&q)) {
		int64_t owner = query_get_int(&q);

		owner_quota_add(s, owner, query_get_int(&q));
	}
	return !q.failed;
}

static bool part_put(struct store *s, struct op_state_put *p, struct err *e)
{
	struct err why = {};
	int64_t uid;

	if (!owner_find(s, p, &uid, e))
		return false;
	if (uid < 0)
		return op_refuse(&p->op, ERR_FENCED, "run %" PRId64 " does not belong to this node any more", p->run);
	if (p->part == 0 && !owner_quota_check(s, uid, 0, p->owner, p->total, p->bytes_limit, &why, e))
		return false;
	if (why.kind)
		return op_refuse(&p->op, why.kind, "%s", why.msg);
	/* of a daemon that ended before it had written all parts */
	if (p->part == 0 && !parts_drop(s, p->run, p->fence, p->fence, e))
		return false;
	return part_insert(s, p, uid, e) && (!p->last || parts_drop(s, p->run, 0, p->fence - 1, e));
}

bool run_states_put_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!part_put(s, run_states_put_op(ops[i]), e))
			return false;
	return true;
}

void run_states_put_free(struct op *op)
{
	free(run_states_put_op(op)->data);
	free(run_states_put_op(op)->owner);
}

static bool ended_drop(struct store *s, struct set *runs, struct err *e)
{
	AUTO_QUERY q = {};

	if (runs->n == 0)
		return true;
	q = query_start(s->db, Q_RUN_STATES_PRUNE, e);
	set_bind(&q, runs);
	return owner_quota_subtract_rows(s, &q);
}

bool run_states_drop_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	AUTO_SET runs = {};

	for (size_t i = 0; i < n; i++)
		set_id(&runs, run_states_drop_op(ops[i])->run);
	return ended_drop(s, &runs, e);
}

bool run_states_sweep(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_STATES_OVER, e);
	AUTO_SET runs = {};

	query_int(&q, SWEEP_STEP);
	while (query_row(&q))
		set_id(&runs, query_get_int(&q));
	return !q.failed && ended_drop(s, &runs, e);
}

void run_states_put_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)jobs;
	set_id(runs, run_states_put_op(op)->run);
}

void run_states_drop_jobs(const struct op *op, struct set *jobs, struct set *runs)
{
	(void)jobs;
	set_id(runs, run_states_drop_op(op)->run);
}
