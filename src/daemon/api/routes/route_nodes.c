/* SPDX-License-Identifier: Apache-2.0 */
/* Routes for nodes: list, drain, undrain, resign. */
#include "base/auto.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/api/request.h"
#include "daemon/api/routes/routes.h"
#include "daemon/api/server.h"
#include "daemon/api/store_read.h"
#include "store/ops/node/node_commands.h"
#include "store/ops/op.h"
#include "store/read/list/list_nodes.h"
#include "store/store.h"
#include "wire/json_value.h"
#include <string.h>

/* ---- list ---- */

struct nodes_query {
	struct store_read q;
	usec_t now;
	struct node_list nodes, gone;
};

static bool run_nodes(struct store *s, struct store_read *q, struct err *e)
{
	struct nodes_query *n = (struct nodes_query *)q;

	return list_nodes_open(s, &n->nodes, e) && list_nodes_gone(s, n->now, &n->gone, e);
}

static void free_nodes(struct store_read *q)
{
	node_list_done(&((struct nodes_query *)q)->nodes);
	node_list_done(&((struct nodes_query *)q)->gone);
	free((struct nodes_query *)q);
}

static const char *node_state_name(const struct node_view *v)
{
	if (v->left_at)
		return v->lost ? "lost" : "stopped";
	return v->lease_remains <= 0 ? "silent" : v->draining ? "draining" : "alive";
}

static json_t *labels_to_json(const char *lines)
{
	json_t *v = json_array();

	for (size_t len; *(lines += strspn(lines, "\n")); lines += len) {
		AUTO_TEXT label = xstrndup(lines, len = strcspn(lines, "\n"));

		json_array_append_new(v, json_value_text(label));
	}
	return v;
}

/* Users do not see how many runs other users have. */
static json_t *node_to_json(const struct node_view *v, bool sees_all)
{
	return json_pack("{s:o, s:o, s:o, s:s, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, "
			 "s:b}",
		"name", json_value_text(v->name), "id", json_value_text(v->id), "host",
		json_value_text(v->host), "state", node_state_name(v), "leads", v->leads,
		"segments", (json_int_t)v->segments, "in_flight",
		sees_all ? json_integer(v->active) : json_null(), "lease_remains",
		json_value_seconds(v->lease_remains > 0 ? v->lease_remains : 0),
		"run_lease_remains", json_value_seconds(v->runs_remain > 0 ? v->runs_remain : 0),
		"clock_offset", json_value_seconds(v->skew), "since", json_value_time(v->opened_at),
		"left_at", json_value_time(v->left_at), "labels", labels_to_json(v->labels),
		"may_lead", !v->barred, "drained", v->draining);
}

static json_t *nodes_to_json(const struct node_list *l, bool sees_all)
{
	json_t *v = json_array();

	for (size_t i = 0; i < l->n; i++)
		json_array_append_new(v, node_to_json(&l->v[i], sees_all));
	return v;
}

static void answer_nodes(struct request *r, struct store_read *q)
{
	const struct nodes_query *n = (const struct nodes_query *)q;
	bool sees_all = request_sees_all(r);

	request_answer_json(r, 200,
		json_pack("{s:o, s:I, s:o, s:o, s:o}", "leader", json_value_text(n->nodes.leader),
			"term", (json_int_t)n->nodes.term, "leader_worked_at",
			json_value_time(n->nodes.worked), "nodes",
			nodes_to_json(&n->nodes, sees_all), "gone",
			nodes_to_json(&n->gone, sees_all)));
}

void route_node_list(struct request *r)
{
	struct nodes_query *n = xcalloc(1, sizeof(*n));

	n->now = request_now(r);
	n->q.run = run_nodes;
	n->q.then = answer_nodes;
	n->q.free = free_nodes;
	store_read_start(r, &n->q);
}

/* ---- commands ---- */

struct node_command_ctx {
	struct ticket *ticket;
	char *name; /* owned */
};

static void on_node_command_done(struct op *op, void *arg)
{
	struct node_command_ctx *o = arg;
	struct request *r = request_ticket_redeem(o->ticket);

	if (r && !op->ok)
		request_answer_err(r, &op->err);
	else if (r)
		request_answer_json(r, 200,
			json_pack("{s:o, s:b, s:I}", "name", json_value_text(o->name), "changed",
				node_command_op(op)->changed, "others",
				(json_int_t)node_command_op(op)->others));
	op_free(op);
	free(o->name);
	free(o);
}

static void submit_node_command(struct request *r, enum node_command order)
{
	struct node_command_ctx *o = xcalloc(1, sizeof(*o));
	struct op *op = op_new(OP_NODE_COMMAND, on_node_command_done, o);

	*o = (struct node_command_ctx){
		.ticket = request_ticket(r, true), .name = xstrdup(r->params[0])};
	node_command_op(op)->name = o->name;
	node_command_op(op)->order = order;
	node_command_op(op)->now = request_now(r);
	request_act(r, op);
	store_thread_submit(r->context->store, op);
}

void route_node_drain(struct request *r)
{
	submit_node_command(r, NODE_DRAIN);
}

void route_node_undrain(struct request *r)
{
	submit_node_command(r, NODE_UNDRAIN);
}

void route_node_resign(struct request *r)
{
	submit_node_command(r, NODE_RESIGN);
}
