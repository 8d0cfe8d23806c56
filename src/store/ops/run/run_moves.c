/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the runs that started and ended, and writes them at most every 100 ms. */
#include "store/ops/run/run_moves.h"
#include "base/text.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/ops/run/expired_runs.h"
#include "store/ops/run/run_cancel.h"
#include "store/set.h"
#include "store/store_private.h"

#define PAUSE (100 * USEC_MSEC)  /* between two rows of one node */
#define KEPT 4096                /* rows */
#define PRUNE_EVERY 256          /* rows that a node writes between two deletions */

static void add_move(struct store *s, int64_t run)
{
	if (s->n_moved > RUN_MOVES_MAX)
		return;
	s->moved = xgrow(s->moved, s->n_moved, sizeof(*s->moved));
	s->moved[s->n_moved] = s->n_moved < RUN_MOVES_MAX ? run : 0;
	s->n_moved++;
}

static void add_changes(struct store *s, const struct run_changes *l)
{
	for (size_t i = 0; i < l->n; i++)
		add_move(s, l->v[i].run);
}

/* The runs whose start or end clients of this node are told of after the commit. */
static void add_moves_of(struct store *s, const struct op *op)
{
	if (op->kind == OP_STARTED)
		add_move(s, run_started_op(op)->run);
	else if (op->kind == OP_ENDED && !run_ended_op(op)->stale && run_state_final(run_ended_op(op)->became))
		add_move(s, run_ended_op(op)->attempt.run);
	else if (op->kind == OP_CLAIM)
		add_changes(s, &claim_op(op)->settled);
	else if (op->kind == OP_EXPIRE)
		add_changes(s, &expired_runs_op(op)->expired);
	else if (op->kind == OP_RUN_CANCEL && run_cancel_op(op)->run && run_state_final(run_cancel_op(op)->run->state))
		add_move(s, run_cancel_op(op)->id);
}

static bool write_row(struct store *s, struct err *e)
{
	AUTO_SET set = {};
	AUTO_QUERY q = query_start(s->db, Q_MOVES_ADD, e);

	for (size_t i = 0; i < s->n_moved; i++)
		set_id(&set, s->moved[i]);
	query_text(&q, s->node_name ? s->node_name : "");
	set_bind(&q, &set);
	return query_finish(&q);
}

static bool prune_rows(struct store *s, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_MOVES_PRUNE, e);

	query_int(&q, KEPT);
	return query_finish(&q);
}

/* If the commit fails afterwards, other nodes do not stream these moves. */
bool run_moves_write(struct store *s, struct op *const *ops, size_t n, size_t kept, struct err *e)
{
	if (s->n_moved > kept)
		s->n_moved = kept; /* the batch is repeated */
	if (s->others == 0) {
		s->n_moved = 0;
		return true;
	}
	for (size_t i = 0; i < n; i++)
		if (ops[i]->ok)
			add_moves_of(s, ops[i]);
	if (s->n_moved == 0 || clock_boot(s->clock) - s->moves_at < PAUSE)
		return true;
	if (!write_row(s, e))
		return false;
	s->n_moved = 0;
	s->moves_at = clock_boot(s->clock);
	wakeup_peers(s);
	return ++s->moves_written % PRUNE_EVERY || prune_rows(s, e);
}
