/* SPDX-License-Identifier: Apache-2.0 */
/* Executes an administrator's commands to a node: drain, undrain, resign. */
#include "store/ops/node/node_commands.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/event.h"
#include "store/events.h"
#include "store/ops/op_private.h"
#include "store/read/list/list_nodes.h"
#include "store/store_private.h"

/* A node that is not open can be drained too: the command applies when it comes back. */
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

/* Counts the other nodes that start runs, and those of them that may lead. */
static bool able_nodes_count(struct store *s, const char *but, int64_t *ret_starting, int64_t *ret_leading, struct err *e)
{
	AUTO_DONE(node_list) l = {};

	if (!list_nodes_rows(s, &l, e))
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
	struct op_node_command *o = node_command_op(op);
	AUTO_TEXT leader = NULL;
	const char *name;
	int64_t term = 0, resign = 0, successors = 0;
	bool draining = false, known;

	if (!leader_name(s, &leader, &term, e))
		return false;
	name = o->name ? o->name : leader;
	if (!name)
		return op_refuse(op, ERR_CONFLICT, "there is no leader at the moment; see 'jobctl nodes'");
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

void node_command_reset(struct op *op)
{
	struct op_node_command *o = node_command_op(op);

	o->changed = false;
	o->others = 0;
}
