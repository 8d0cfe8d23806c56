/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the nodes of the cluster. */
#include "store/read/list/list_nodes.h"
#include "base/text.h"
#include "store/store_private.h"
#include "store/tx.h"

#define LOST_SHOWN (7 * USEC_DAY) /* so that a failure is still shown after a long weekend */
#define LEFT_SHOWN USEC_DAY

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

bool list_nodes_rows(struct store *s, struct node_list *l, struct err *e)
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

	if (!tx_begin(&tx, s, false, e) || !list_nodes_rows(s, &l, e) || !leader_read(s, &l, e) || !tx_commit(&tx, e))
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
