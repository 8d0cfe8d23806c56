/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the output relays of a node. */
#include "base/text.h"
#include "store/read/list/list_relays.h"
#include "store/relay_part.h"
#include "store/store.h"
#include "store/store_private.h"
#include "store/tx.h"

void relay_part_done(struct relay_part *p)
{
	free(p->note);
	free(p->data);
	*p = (struct relay_part){};
}

void relay_list_done(struct relay_list *l)
{
	free(l->v);
	*l = (struct relay_list){};
}

static struct relay_view *relay_list_add(struct relay_list *l)
{
	l->v = xgrow(l->v, l->n, sizeof(*l->v));
	l->v[l->n] = (struct relay_view){};
	return &l->v[l->n++];
}

static bool read_served(struct store *s, const char *node, struct relay_list *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAYS_TO_SERVE, e);

	query_text(&q, node);
	query_int(&q, RELAYS_MAX);
	while (query_row(&q)) {
		struct relay_view *v = relay_list_add(l);

		v->serves = true;
		v->id = query_get_int(&q);
		v->run = query_get_int(&q);
		v->attempt = query_get_int(&q);
		v->from = query_get_int(&q);
		v->tail = query_get_int(&q);
		v->follow = query_get_int(&q);
		v->taken = query_get_int(&q);
	}
	return !q.failed;
}

static bool read_wanted(struct store *s, const char *node, struct relay_list *l, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RELAYS_TO_READ, e);

	query_text(&q, node);
	while (query_row(&q)) {
		struct relay_view *v = relay_list_add(l);

		v->id = query_get_int(&q);
		v->ready = query_get_int(&q);
		v->alive = query_get_int(&q);
	}
	return !q.failed;
}

bool list_relays_of_node(struct store *s, const char *node, struct relay_list *ret, struct err *e)
{
	AUTO_DONE(relay_list) l = {};
	AUTO_TX tx = {};

	if (!tx_begin(&tx, s, false, e) || !read_served(s, node, &l, e) || !read_wanted(s, node, &l, e) || !tx_commit(&tx, e))
		return false;
	*ret = l;
	l = (struct relay_list){};
	return true;
}
