/* SPDX-License-Identifier: Apache-2.0 */
/* Reads without a transaction whether a claim can find a due run. */
#include "store/events.h"
#include "store/ops/batch_wake.h"
#include "store/ops/op_private.h"
#include "store/ops/run/claims.h"
#include "store/store_private.h"
#include "store/wakeup.h"

/*
 * Whether the read is worth its round trip: the last claim found nothing, or no run is known to be
 * due. No other write may wait for the batch, and the store must be known to be current.
 */
static bool peek_pays(const struct store *s, struct op *const *ops, size_t n)
{
	const struct op_claim *c;

	if (n != 1 || ops[0]->kind != OP_CLAIM || !s->db->ops->send || s->n_moved > 0 || s->notify_pending || s->term_checked < s->term)
		return false;
	c = claim_op(ops[0]);
	if (s->claim_wakeup.known && s->claim_wakeup.full) /* due runs wait for a limit, so a read would find them */
		return false;
	return s->claim_idle || !s->claim_wakeup.known || s->claim_wakeup.at > c->now;
}

static bool peek(struct store *s, struct query *node, struct batch_wake_reads *reads, struct batch_wake *ret, const struct op_claim *c,
	struct err *e)
{
	bool open;

	*node = query_start(s->db, Q_NODE_ALIVE, e);
	query_text(node, c->node);
	wakeup_claim_unknown(s);
	if (!query_send(node) || !batch_wake_reads_send(reads, s, e))
		return false;
	open = query_row(node);
	return !node->failed && batch_wake_reads_take(reads, s, ret) && open && s->claim_wakeup.at > c->now;
}

bool claim_peek(struct store *s, struct op *const *ops, size_t n, struct batch_wake *ret)
{
	AUTO_QUERY node = {};
	struct batch_wake_reads reads = {};
	struct err ignored; /* the transaction that follows finds the same */
	bool idle;

	if (!peek_pays(s, ops, n))
		return false;
	s->db->defer = true;
	s->db->writing = false;
	idle = peek(s, &node, &reads, ret, claim_op(ops[0]), &ignored);
	batch_wake_reads_done(&reads);
	s->db->defer = false;
	if (!idle)
		return false;
	event_rewind(s, 0);
	op_reset(ops[0]);
	return true;
}
