/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether readers of events wait for a transaction of the server. */
#include "store/read/events_held.h"
#include "store/store_private.h"
#include "store/tx.h"

/* Reads the only column of the first row: a number if 'ret_text' is NULL, otherwise a text. No row changes nothing. */
static bool first_row_read(struct store *s, int query, int64_t *ret_number, char **ret_text, struct err *e)
{
	AUTO_TX tx = {};
	AUTO_QUERY q = {};

	if (s->db->no_xids)
		return true;
	if (!tx_begin(&tx, s, false, e))
		return false;
	q = query_start(s->db, query, e);
	if (query_row(&q)) {
		if (ret_text)
			*ret_text = query_get_copy(&q);
		else
			*ret_number = query_get_int(&q);
	}
	return !q.failed && tx_commit(&tx, e);
}

bool events_held_since(struct store *s, usec_t *ret, struct err *e)
{
	*ret = 0;
	return first_row_read(s, Q_EVENTS_HELD, ret, NULL, e);
}

bool events_held_by(struct store *s, char **ret, struct err *e)
{
	*ret = NULL;
	return first_row_read(s, Q_EVENTS_HOLDER, NULL, ret, e);
}
