/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of 'run_moves', and the runs that they name. */
#include "store/read/list/list_moves.h"
#include "base/text.h"
#include "store/rows.h"
#include "store/set.h"
#include "store/store_private.h"
#include "store/tx.h"
#include <stdlib.h>

#define ROWS_MAX 512 /* read at once */

/* 'text' is a JSON array of numbers. */
static void add_runs(struct set *set, const char *text, bool *missed)
{
	char *end;

	for (const char *p = text; *p; p = end) {
		int64_t run = strtoll(p + 1, &end, 10);

		if (end == p + 1)
			return;
		if (run > 0)
			set_id(set, run);
		else
			*missed = true;
	}
}

/* False: this row was read before. */
static bool place_enter(struct move_place *p, int64_t id)
{
	int64_t *seen = &p->seen[id % LIST_MOVES_OVERLAP];

	if (*seen >= id)
		return false;
	*seen = id;
	if (id > p->after)
		p->after = id;
	return true;
}

static bool read_newest_move(struct store *s, struct move_place *place, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_MOVES_NEWEST, e);

	if (query_row(&q))
		place->after = query_get_int(&q);
	for (int64_t id = place->after; id > 0 && id > place->after - LIST_MOVES_OVERLAP; id--)
		place->seen[id % LIST_MOVES_OVERLAP] = id;
	place->known = !q.failed;
	return !q.failed;
}

static bool read_moves(struct store *s, const char *node, struct move_place *place, struct set *set, bool *missed,
	struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_MOVES_AFTER, e);
	int64_t before = place->after;
	int n = 0;

	query_int(&q, place->after > LIST_MOVES_OVERLAP ? place->after - LIST_MOVES_OVERLAP : 0);
	query_int(&q, ROWS_MAX);
	for (; query_row(&q); n++) {
		int64_t id = query_get_int(&q);
		const char *by = query_get_text(&q), *runs = query_get_text(&q);

		*missed |= n == 0 && before > 0 && id > before + 1; /* older rows were deleted */
		if (place_enter(place, id) && !text_equal(by, node))
			add_runs(set, runs ? runs : "", missed);
	}
	place->more = n == ROWS_MAX;
	return !q.failed;
}

bool list_moves_read(struct store *s, const char *node, struct move_place *place, const int64_t *own, size_t n_own,
	struct run_list *ret, bool *ret_missed, struct err *e)
{
	AUTO_DONE(run_list) found = {};
	AUTO_SET set = {};
	AUTO_TX tx = {};

	for (size_t i = 0; i < n_own; i++)
		set_id(&set, own[i]);
	*ret_missed = false;
	if (!tx_begin(&tx, s, false, e) ||
		!(place->known ? read_moves(s, node, place, &set, ret_missed, e) : read_newest_move(s, place, e)) ||
		(set.n > 0 && !row_runs_read(s, set_json(&set), &found, e)) || !tx_commit(&tx, e))
		return false;
	*ret = found;
	found = (struct run_list){};
	return true;
}
