/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether readers of events wait for a transaction of the server. */
#include "store/read/events_held.h"
#include "store/store_private.h"
#include "store/tx.h"

bool events_held_since(struct store *s, usec_t *ret, struct err *e)
{
	AUTO_TX tx = {};
	AUTO_QUERY q = {};

	*ret = 0;
	if (s->db->no_xids)
		return true;
	if (!tx_begin(&tx, s, false, e))
		return false;
	q = query_start(s->db, Q_EVENTS_HELD, e);
	if (query_row(&q))
		*ret = query_get_int(&q);
	return !q.failed && tx_commit(&tx, e);
}

bool events_held_by(struct store *s, char **ret, struct err *e)
{
	AUTO_TX tx = {};
	AUTO_QUERY q = {};

	*ret = NULL;
	if (s->db->no_xids)
		return true;
	if (!tx_begin(&tx, s, false, e))
		return false;
	q = query_start(s->db, Q_EVENTS_HOLDER, e);
	if (query_row(&q))
		*ret = query_get_copy(&q);
	return !q.failed && tx_commit(&tx, e);
}
