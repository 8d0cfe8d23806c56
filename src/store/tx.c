/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions of a store. */
#include "store/tx.h"
#include "base/err.h"
#include "store/counters.h"
#include "store/outcomes.h"
#include "store/store_private.h"
#include <inttypes.h>

/* Reconnects if the connection was lost between transactions and the server accepts at once. */
static bool begin(struct store *s, bool write, struct err *e)
{
	struct err why = {};

	if (s->db->ops->begin(s->db, write, &why))
		return true;
	if (why.kind == ERR_UNREACHABLE) {
		if (store_reconnect(s, 0, &why) && s->db->ops->begin(s->db, write, &why))
			return true;
		if (!write || why.kind != ERR_UNREACHABLE)
			why.kind = ERR_BUSY;
	}
	if (e)
		*e = why;
	return false;
}

/*
 * Terms never decrease. A lower term means that the server lost commits (a stale replica was
 * promoted, or a backup was restored), so it does not know the current state of our runs.
 */
static bool check_term(struct store *s, struct err *e)
{
	AUTO_QUERY q = {};
	int64_t expected = s->term, term = 0;

	if (s->term_checked >= expected)
		return true;
	q = query_start(s->db, Q_LEADER_GET, e);
	if (query_row(&q)) {
		query_get_text(&q);
		query_get_text(&q);
		term = query_get_int(&q);
	}
	if (q.failed)
		return false;
	s->gone_back = term < expected;
	if (s->gone_back)
		return err_set(e, ERR_REFUSED, "the store has gone back to term %" PRId64 ", after %" PRId64 ": the server lost "
			"commits, so runs may be missing; bring it up to date", term, expected);
	s->term_checked = term;
	return true;
}

bool tx_begin(struct tx *t, struct store *s, bool write, struct err *e)
{
	db_assert_owner(s->db);
	if (!begin(s, write, e))
		return false;
	s->db->writing = write;
	counters_rewind(s, 0);
	outcome_rewind(s, 0);
	t->s = s;
	return !write || check_term(s, e);
}

bool tx_commit(struct tx *t, struct err *e)
{
	struct store *s = STEAL(t->s);
	struct err why = {};

	if (s->db->ops->commit(s->db, &why))
		return true;
	if (e)
		*e = why;
	return false;
}

void tx_done(struct tx *t)
{
	if (t->s)
		t->s->db->ops->rollback(t->s->db);
	t->s = NULL;
}
