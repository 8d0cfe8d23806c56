/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a node among others: its lease, the office of leader, orders to it, and what concerns it. */
#include "base/failpoint.h"
#include "base/text.h"
#include "store/store_private.h"
#include <stdio.h>

#define LOST_SHOWN (7 * USEC_DAY) /* over a long weekend */
#define LEFT_SHOWN USEC_DAY

bool node_hold(struct store *s, const char *node, char **ret_spawner, bool *ret_draining, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_OPEN, e);

	query_text(&q, node);
	if (query_row(&q)) {
		*ret_spawner = query_get_copy(&q);
		*ret_draining = query_get_int(&q);
	}
	return !q.failed;
}

bool nodes_others(struct store *s, const char *node, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODES_OTHERS, e);

	query_text(&q, node);
	if (query_row(&q))
		s->others = *ret = query_get_int(&q);
	return !q.failed;
}

static bool read_segments(struct store *s, const char *node, uint64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_SEGMENTS_OF, e);
	uint64_t mask = 0;

	query_text(&q, node);
	while (query_row(&q))
		mask |= UINT64_C(1) << (query_get_int(&q) & (SEGMENTS - 1));
	*ret = mask;
	return !q.failed;
}

static void node_name_copy(char to[NODE_NAME_SHOWN], const char *name)
{
	snprintf(to, NODE_NAME_SHOWN, "%s", name ? name : "");
}

/* ---- lease ---- */

/*
 * What renews a lease, each statement deciding by itself what it does: a server may be far away, and they are sent to it
 * together. The office is kept, taken where it is free, given up by who is to lead no longer.
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
		l->first_slot = query_get_int(q); /* whoever plans it: one that is long past says that nobody does */
		node_name_copy(l->planner, query_get_text(q));
	}
	if (l->leader_remains <= 0) {
		l->leader_remains = 0;
		l->leader[0] = '\0';
	}
	s->leader_lease_ends = clock_boot(s->clock) + l->leader_remains;
	return !q->failed;
}

/* The event of it, which is written in turn, is left to the engine. */
static bool leader_result_read(struct renewal *r, struct store *s, struct op_lease *l, bool takes, bool *ret_yields)
{
	l->leads = query_row(&r->keep);
	if (!r->keep.failed && takes) {
		l->took = query_row(&r->take);
		l->leads = l->leads || l->took;
	}
	if (r->keep.failed || r->take.failed || (takes && !query_finish(&r->began)))
		return false;
	*ret_yields = query_row(&r->yield);
	l->leads = l->leads && !*ret_yields;
	s->leads = l->leads;
	return !r->yield.failed;
}

/* Given up by the leader, or displaced by a newer engine of this name. */
static bool explain_fenced(struct store *s, struct op *op, struct err *e)
{
	struct op_lease *l = &op->lease;
	AUTO_QUERY q = query_start(s->db, Q_NODES_NAMED, e);

	query_text(&q, l->name);
	l->displaced = query_row(&q);
	if (q.failed)
		return false;
	return l->displaced ? op_refuse(op, ERR_FENCED, "a newer engine has taken the place of node '%s'; if two are meant, give one "
			"of them another node-name", l->name)
			    : op_refuse(op, ERR_FENCED, "node '%s' was given up: its run lease was over", l->name);
}

/* Once with what is known of the office. *ret_free: it is free, and this one would have it. */
static bool lease_renew_once(struct store *s, struct op *op, bool at_once, bool takes, bool *ret_free, struct err *e)
{
	struct op_lease *l = &op->lease;
	__attribute__((cleanup(renewal_done))) struct renewal r = {};
	bool yields = false;

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
	if (!leader_result_read(&r, s, l, takes, &yields) || !lease_facts_read(s, l, &r.facts))
		return false;
	*ret_free = l->leader_remains == 0 && l->stands && !l->resigns && !l->draining && !yields;
	return true;
}

/* Nobody looks for a free office each time: who finds it so comes back for it. */
static bool lease_renew(struct store *s, struct op *op, bool at_once, struct err *e)
{
	const struct op_lease *l = &op->lease;
	bool takes = l->stands && !l->resigns && s->leader_lease_ends && clock_boot(s->clock) >= s->leader_lease_ends, free;

	if (!lease_renew_once(s, op, at_once, takes, &free, e) || (free && !takes && !lease_renew_once(s, op, at_once, true, &free, e)))
		return false;
	if (op->ok && s->db->ops->set_checkpoints) /* F-11: two who did it at a time would lose pages */
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

/* ---- looking ---- */

static bool read_to_end(struct store *s, const char *node, struct run_changes *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUNS_TO_END, e);

	query_text(&q, node);
	while (query_row(&q)) {
		struct run_change r = {};

		r.run = query_get_int(&q);
		r.job = query_get_int(&q);
		r.fence = query_get_int(&q);
		r.state = (enum run_state)query_get_int(&q);
		if ((ret->n & (ret->n - 1)) == 0)
			ret->v = xrealloc(ret->v, (ret->n ? ret->n * 2 : 1) * sizeof(*ret->v));
		ret->v[ret->n++] = r;
	}
	return !q.failed;
}

/* The rest is what the batch does after every operation: it looks when the next slot and the next run are due. */
bool node_poll_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct op_node_poll *l = &ops[i]->look;

		if (!read_segments(s, l->node, &l->segments, e) || !nodes_others(s, l->node, &l->others, e) ||
		    !read_to_end(s, l->node, &l->to_end, e))
			return false;
		s->segments = (int64_t)l->segments;
	}
	return true;
}

/* ---- orders ---- */

/* One that is away may be drained, too: it is when it comes back. */
static bool node_known(struct store *s, const char *name, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_EVER, e);

	query_text(&q, name);
	*ret = query_row(&q) && query_get_int(&q);
	return !q.failed;
}

static bool node_command_read(struct store *s, const char *name, bool *ret_draining, int64_t *ret_resign, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_ORDER, e);

	query_text(&q, name);
	if (query_row(&q)) {
		*ret_draining = query_get_int(&q);
		*ret_resign = query_get_int(&q);
	}
	return !q.failed;
}

static bool node_command_write(struct store *s, const char *name, bool draining, int64_t resign, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODE_ORDER_PUT, e);

	query_text(&q, name);
	query_int(&q, draining);
	query_int(&q, resign);
	return query_finish(&q);
}

static bool leader_name(struct store *s, char **ret, int64_t *ret_term, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LEADER_GET, e);

	if (query_row(&q)) {
		query_get_text(&q);
		*ret = query_get_copy(&q);
		*ret_term = query_get_int(&q);
	}
	return !q.failed;
}

void node_list_done(struct node_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].id);
		free(l->v[i].name);
		free(l->v[i].host);
		free(l->v[i].labels);
	}
	free(l->v);
	free(l->leader);
	*l = (struct node_list){};
}

static struct node_view *node_list_add(struct node_list *l)
{
	if ((l->n & (l->n - 1)) == 0)
		l->v = xrealloc(l->v, (l->n ? l->n * 2 : 1) * sizeof(*l->v));
	l->v[l->n] = (struct node_view){};
	return &l->v[l->n++];
}

static bool node_rows_read(struct store *s, struct node_list *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NODES_ALL, e);

	while (query_row(&q)) {
		struct node_view *v = node_list_add(l);

		v->id = query_get_copy(&q);
		v->name = query_get_copy(&q);
		v->host = query_get_copy(&q);
		v->opened_at = query_get_int(&q);
		v->lease_remains = query_get_int(&q);
		v->runs_remain = query_get_int(&q);
		v->guarded = query_get_int(&q);
		v->skew = query_get_int(&q);
		v->draining = query_get_int(&q);
		v->leads = query_get_int(&q);
		v->segments = query_get_int(&q);
		v->active = query_get_int(&q);
		v->labels = query_get_copy(&q);
		v->barred = query_get_int(&q);
	}
	return !q.failed;
}

/* How many other nodes start runs, and how many of them could lead. */
static bool able_nodes_count(struct store *s, const char *but, int64_t *ret_starting, int64_t *ret_leading, struct err *e)
{
	AUTO_DONE(node_list) l = {};

	if (!node_rows_read(s, &l, e))
		return false;
	for (size_t i = 0; i < l.n; i++) {
		bool able = !text_equal(l.v[i].name, but) && !l.v[i].draining && l.v[i].lease_remains > 0;

		*ret_starting += able;
		*ret_leading += able && !l.v[i].barred;
	}
	return true;
}

static bool node_command_run(struct store *s, struct op *op, struct err *e)
{
	struct op_node_command *o = &op->node_command;
	AUTO_TEXT leader = NULL;
	const char *name;
	int64_t term = 0, resign = 0, successors = 0;
	bool draining = false, known;

	if (!leader_name(s, &leader, &term, e))
		return false;
	name = o->name ? o->name : leader;
	if (!name)
		return op_refuse(op, ERR_CONFLICT, "nobody leads at the moment; see 'jobctl nodes'");
	if (!node_known(s, name, &known, e) || !node_command_read(s, name, &draining, &resign, e) ||
	    !able_nodes_count(s, name, &o->others, &successors, e))
		return false;
	if (!known && !draining)
		return op_refuse(op, ERR_NOT_FOUND, "no node '%s'; see 'jobctl nodes'", name);
	if (o->order == NODE_RESIGN && !text_equal(name, leader))
		return op_refuse(op, ERR_CONFLICT, "node '%s' does not lead; see 'jobctl nodes'", name);
	if (o->order == NODE_RESIGN && successors == 0)
		return op_refuse(op, ERR_CONFLICT, "no other node could lead: none is alive, not drained and allowed to; see 'jobctl nodes'");
	o->changed = o->order == NODE_RESIGN || draining != (o->order == NODE_DRAIN);
	if (!o->changed)
		return true;
	event_add(s, &(struct event_new){.at = o->now, .by = &op->act.by, .what = EVENT_NODE_SET, .object = name,
		.detail = o->order == NODE_RESIGN ? "resign" : o->order == NODE_DRAIN ? "drain" : "undrain"});
	return node_command_write(s, name, o->order == NODE_RESIGN ? draining : o->order == NODE_DRAIN,
		o->order == NODE_RESIGN ? term : resign, e);
}

bool node_command_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!node_command_run(s, ops[i], e))
			return false;
	return true;
}

/* ---- for people ---- */

static bool leader_read(struct store *s, struct node_list *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_LEADER_GET, e);

	if (query_row(&q)) {
		query_get_text(&q);
		l->leader = query_get_copy(&q);
		l->term = query_get_int(&q);
		l->lease_remains = query_get_int(&q);
		l->worked = query_get_int(&q);
	}
	if (l->lease_remains <= 0)
		free(STEAL(l->leader));
	return !q.failed;
}

bool list_nodes_open(struct store *s, struct node_list *ret, struct err *e)
{
	AUTO_DONE(node_list) l = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !node_rows_read(s, &l, e) || !leader_read(s, &l, e) || !tx_commit(&tx, e))
		return false;
	*ret = l;
	l = (struct node_list){};
	return true;
}

bool list_nodes_gone(struct store *s, usec_t now, struct node_list *ret, struct err *e)
{
	AUTO_DONE(node_list) l = {};
	AUTO_QUERY q = query_start(s->db, Q_NODES_GONE, e);

	query_int(&q, now - LOST_SHOWN);
	query_int(&q, now - LEFT_SHOWN);
	while (query_row(&q)) {
		struct node_view *v = node_list_add(&l);

		v->id = query_get_copy(&q);
		v->name = query_get_copy(&q);
		v->host = query_get_copy(&q);
		v->opened_at = query_get_int(&q);
		v->left_at = query_get_int(&q);
		v->lost = query_get_int(&q);
		v->active = query_get_int(&q);
		v->labels = query_get_copy(&q);
		v->draining = query_get_int(&q);
	}
	if (q.failed)
		return false;
	*ret = l;
	l = (struct node_list){};
	return true;
}
