/* SPDX-License-Identifier: Apache-2.0 */
/* Renews the leases of a node; detects fencing. */
#include "store/ops/node/leases.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "store/ops/op_private.h"
#include "store/store_private.h"
#include <stdio.h>

static void node_name_copy(char to[NODE_NAME_SHOWN], const char *name)
{
	snprintf(to, NODE_NAME_SHOWN, "%s", name ? name : "");
}

/*
 * The statements of a renewal. Each decides by itself what it does, so that all of them are sent in
 * one round trip. The leader lease is renewed, taken if it is free, or given up if this node is to
 * resign.
 */
struct renewal {
	struct query node, keep, take, began, yield, facts;
};

static void renewal_done(struct renewal *r)
{
	query_done(&r->node);
	query_done(&r->keep);
	query_done(&r->take);
	query_done(&r->began);
	query_done(&r->yield);
	query_done(&r->facts);
}

static void bind_node(struct query *q, const struct op_lease *l)
{
	query_text(q, l->node);
	query_int(q, l->ttl);
	query_int(q, l->run_ttl > l->ttl ? l->run_ttl : l->ttl);
	query_int(q, l->guarded);
	query_int(q, l->skew);
}

static void bind_leader(struct renewal *r, const struct op_lease *l)
{
	query_text(&r->keep, l->node);
	query_int(&r->keep, l->ttl);
	query_text(&r->take, l->node);
	query_text(&r->take, l->name);
	query_int(&r->take, l->ttl);
	query_text(&r->began, l->node);
	query_int(&r->began, l->at);
	query_text(&r->yield, l->node);
	query_text(&r->yield, l->name);
	query_int(&r->yield, l->resigns);
}

static void renewal_bind(struct renewal *r, struct store *s, const struct op_lease *l, struct err *e)
{
	*r = (struct renewal){.node = query_start(s->db, Q_NODE_RENEW, e), .keep = query_start(s->db, Q_LEADER_RENEW, e),
		.take = query_start(s->db, Q_LEADER_TAKE, e), .began = query_start(s->db, Q_LEADER_BEGAN, e),
		.yield = query_start(s->db, Q_LEADER_YIELD, e), .facts = query_start(s->db, Q_LEASE_FACTS, e)};
	bind_node(&r->node, l);
	bind_leader(r, l);
	query_text(&r->facts, l->node);
	query_text(&r->facts, l->name);
}

static bool renewal_send(struct store *s, bool takes, struct err *e)
{
	static const int follow[] = {Q_NODE_RENEW, Q_LEADER_RENEW, Q_LEADER_YIELD, Q_LEASE_FACTS};
	static const int stand[] = {Q_NODE_RENEW, Q_LEADER_RENEW, Q_LEADER_TAKE, Q_LEADER_BEGAN, Q_LEADER_YIELD, Q_LEASE_FACTS};

	return takes ? s->db->ops->transact(s->db, stand, ELEMENTS(stand), e) : s->db->ops->transact(s->db, follow, ELEMENTS(follow), e);
}

static bool lease_facts_read(struct store *s, struct op_lease *l, struct query *q)
{
	if (query_row(q)) {
		l->draining = query_get_int(q);
		node_name_copy(l->leader, query_get_text(q));
		l->term = query_get_int(q);
		l->leader_remains = query_get_int(q);
		l->worked = query_get_int(q);
		s->others = l->others = query_get_int(q);
		l->segments = (uint64_t)query_get_int(q);
		l->first_slot = query_get_int(q); /* of all segments; a slot long ago means that its segment is not planned */
		node_name_copy(l->planner, query_get_text(q));
	}
	if (l->leader_remains <= 0) {
		l->leader_remains = 0;
		l->leader[0] = '\0';
	}
	s->leader_lease_ends = clock_boot(s->clock) + l->leader_remains;
	return !q->failed;
}

/*
 * Reads whether this node leads. The engine adds the audit event in another batch: events are
 * serialised, and a renewal must not wait.
 */
static bool leader_result_read(struct renewal *r, struct store *s, struct op_lease *l, bool takes)
{
	l->leads = query_row(&r->keep);
	if (!r->keep.failed && takes) {
		l->took = query_row(&r->take);
		l->leads = l->leads || l->took;
	}
	if (r->keep.failed || r->take.failed || (takes && !query_finish(&r->began)))
		return false;
	l->yielded = query_row(&r->yield);
	l->leads = l->leads && !l->yielded;
	s->leads = l->leads;
	return !r->yield.failed;
}

/* Explains why the lease was not renewed: the node was reaped, or a newer engine has its name. */
static bool explain_fenced(struct store *s, struct op *op, struct err *e)
{
	struct op_lease *l = lease_op(op);
	AUTO_QUERY q = query_start(s->db, Q_NODES_NAMED, e);

	query_text(&q, l->name);
	l->displaced = query_row(&q);
	if (q.failed)
		return false;
	return l->displaced ? op_refuse(op, ERR_FENCED, "a newer engine uses the name of node '%s'; if two nodes are intended, give one "
			"of them another node-name", l->name)
			    : op_refuse(op, ERR_FENCED, "node '%s' was given up: its run lease was over", l->name);
}

/*
 * Renews once. 'takes': also try to take the leader lease. *ret_free: the leader lease is free and
 * this node may take it.
 */
static bool lease_renew_once(struct store *s, struct op *op, bool at_once, bool takes, bool *ret_free, struct err *e)
{
	struct op_lease *l = lease_op(op);
	__attribute__((cleanup(renewal_done))) struct renewal r = {};

	*ret_free = false;
	renewal_bind(&r, s, l, e);
	if ((s->leads && !failpoint_ok(FP_LEAD_RENEW, e)) || (takes && !failpoint_ok(FP_LEAD_TAKE, e)) ||
	    (at_once && !renewal_send(s, takes, e)))
		return false;
	if (!query_row(&r.node)) {
		s->leads = false;
		return !r.node.failed && explain_fenced(s, op, e);
	}
	l->now = s->db->ops->reconnects ? query_get_int(&r.node) : 0;
	if (!leader_result_read(&r, s, l, takes) || !lease_facts_read(s, l, &r.facts))
		return false;
	*ret_free = l->leader_remains == 0 && l->stands && !l->resigns && !l->draining && !l->yielded;
	return true;
}

/*
 * The attempt to take the leader lease is not part of every renewal: a node that finds it free
 * renews again.
 */
static bool lease_renew(struct store *s, struct op *op, bool at_once, struct err *e)
{
	const struct op_lease *l = lease_op(op);
	bool takes = l->stands && !l->resigns && s->leader_lease_ends && clock_boot(s->clock) >= s->leader_lease_ends, free;

	if (!lease_renew_once(s, op, at_once, takes, &free, e) || (free && !takes && !lease_renew_once(s, op, at_once, true, &free, e)))
		return false;
	if (op->ok && s->db->ops->set_checkpoints) /* only the leader checkpoints: two checkpointers at a time would lose pages */
		s->db->ops->set_checkpoints(s->db, l->leads);
	return true;
}

bool lease_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!lease_renew(s, ops[i], false, e))
			return false;
	return true;
}

bool lease_renew_outside_tx(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (ops[i]->ok && !lease_renew(s, ops[i], true, e))
			return false;
	return true;
}

void lease_reset(struct op *op)
{
	struct op_lease *l = lease_op(op);

	l->displaced = l->leads = l->took = l->yielded = l->draining = false;
	l->now = l->term = l->others = l->leader_remains = 0;
	l->segments = 0;
	l->first_slot = l->worked = 0;
	l->planner[0] = l->leader[0] = '\0';
}
