/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the due notices that a node sends next, with its slots divided between owners. */
#include "store/ops/notices_due.h"
#include "base/text.h"
#include "core/decide/fair_share.h"
#include "core/job/owner.h"
#include "store/notice_row.h"
#include "store/ops/notices.h"
#include "store/ops/op_private.h"
#include "store/read/list/list_notices.h"
#include "store/set.h"
#include "store/store_private.h"
#include <string.h>

/* The owners with due notices, and the ids of these notices, oldest first. */
struct waiting {
	struct fair_claim *claims; /* owned */
	struct due {
		int64_t *ids;      /* owned */
		size_t n, taken;
	} *due;                    /* owned, one per claim */
	size_t n;
};

static void waiting_done(struct waiting *w)
{
	for (size_t i = 0; w->due && i < w->n; i++)
		free(w->due[i].ids);
	free(w->due);
	free(w->claims);
}

static int64_t notice_slots_used_by(const struct op_notice_take *t, int64_t uid)
{
	for (size_t i = 0; i < t->n_in_use; i++)
		if (t->in_use[i].uid == uid)
			return t->in_use[i].n;
	return 0;
}

static int by_need(const void *a, const void *b)
{
	const struct fair_claim *x = a, *y = b;

	if (x->held != y->held)
		return x->held < y->held ? -1 : 1;
	return x->since < y->since ? -1 : x->since > y->since;
}

static bool read_owners(struct store *s, const struct op_notice_take *t, struct waiting *w, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_NOTICES_OWNERS, e);

	while (query_row(&q)) {
		struct fair_claim c = {.owner = query_get_int(&q)};

		c.since = query_get_int(&q);
		if (c.since > t->now)
			continue;
		c.held = notice_slots_used_by(t, c.owner);
		c.exempt = !t->shared || owner_uid(c.owner) == 0;
		w->claims = xgrow(w->claims, w->n, sizeof(*w->claims));
		w->claims[w->n++] = c;
	}
	if (w->n > 0)
		qsort(w->claims, w->n, sizeof(*w->claims), by_need);
	w->due = xcalloc(w->n ? w->n : 1, sizeof(*w->due));
	return !q.failed;
}

static struct due *due_of(struct waiting *w, int64_t uid, struct fair_claim **ret)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->claims[i].owner == uid) {
			*ret = &w->claims[i];
			return &w->due[i];
		}
	return NULL;
}

/* Reads the notices of at most 'room' owners, because each needs a slot. */
static bool read_due(struct store *s, const struct op_notice_take *t, size_t room, struct waiting *w, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET owners = {};

	if (w->n == 0 || room == 0)
		return true;
	for (size_t i = 0; i < w->n && i < room; i++)
		set_id(&owners, w->claims[i].owner);
	q = query_start(s->db, Q_NOTICES_DUE, e);
	set_bind(&q, &owners);
	query_int(&q, t->now);
	query_int(&q, (int64_t)room);
	while (query_row(&q)) {
		struct fair_claim *c = NULL;
		struct due *d = due_of(w, query_get_int(&q), &c);

		if (!d)
			continue;
		d->ids = xgrow(d->ids, d->n, sizeof(*d->ids));
		d->ids[d->n++] = query_get_int(&q);
		c->waiting++;
	}
	return !q.failed;
}

static void due_notices_choose(const struct op_notice_take *t, size_t used, struct waiting *w, struct set *ret_ids)
{
	struct fair_share share = {.total = (int64_t)t->limit, .used = (int64_t)used};
	size_t i;

	while ((i = fair_share_next(&share, w->claims, w->n)) < w->n) {
		set_id(ret_ids, w->due[i].ids[w->due[i].taken++]);
		w->claims[i].waiting--;
		w->claims[i].held++;
		share.used++;
	}
}

/* Remembers the owners whose due notices wait for a free slot instead of a time. */
static void note_held(struct store *s, struct op_notice_take *t, const struct waiting *w, size_t room)
{
	s->n_notices_held = 0;
	for (size_t i = 0; i < w->n; i++) {
		if (w->due[i].n > 0 && w->due[i].n < room && w->due[i].taken == w->due[i].n)
			continue;
		s->notices_held = xgrow(s->notices_held, s->n_notices_held, sizeof(*s->notices_held));
		s->notices_held[s->n_notices_held++] = w->claims[i].owner;
	}
	t->held = s->n_notices_held > 0;
}

static bool taken_notices_write(struct store *s, const struct op_notice_take *t, struct set *ids, struct set *ret_taken, struct err *e)
{
	AUTO_QUERY q = {};

	if (ids->n == 0)
		return true;
	q = query_start(s->db, Q_NOTICES_TAKE, e);
	query_text(&q, t->node);
	query_int(&q, t->now);
	query_int(&q, t->again_at);
	set_bind(&q, ids);
	while (query_row(&q))
		set_id(ret_taken, query_get_int(&q));
	return !q.failed;
}

static bool due_notices_take(struct store *s, struct op_notice_take *t, struct err *e)
{
	AUTO_DONE(waiting) w = {};
	AUTO_SET ids = {};
	AUTO_SET taken = {};
	size_t used = 0, room;

	for (size_t i = 0; i < t->n_in_use; i++)
		used += (size_t)t->in_use[i].n;
	room = used < t->limit ? t->limit - used : 0;
	if (!read_owners(s, t, &w, e) || !read_due(s, t, room, &w, e))
		return false;
	due_notices_choose(t, used, &w, &ids);
	note_held(s, t, &w, room);
	return taken_notices_write(s, t, &ids, &taken, e) && list_notices_get(s, &taken, &t->taken, e) && notices_drop_old(s, t->now, e);
}

bool notices_due_apply(struct store *s, struct op *const *ops, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!due_notices_take(s, notices_due_op(ops[i]), e))
			return false;
	return true;
}

static bool owner_is_held(const struct store *s, int64_t uid)
{
	for (size_t i = 0; i < s->n_notices_held; i++)
		if (s->notices_held[i] == uid)
			return true;
	return false;
}

bool notices_due_first(const struct store *s, struct query *owners, usec_t *ret)
{
	*ret = USEC_NEVER;
	while (query_row(owners)) {
		int64_t uid = query_get_int(owners);
		usec_t due_at = query_get_int(owners);

		if (due_at < *ret && !owner_is_held(s, uid))
			*ret = due_at;
	}
	return !owners->failed;
}

void notices_due_reset(struct op *op)
{
	notice_list_done(&notices_due_op(op)->taken);
	notices_due_op(op)->held = false;
}

void notices_due_free(struct op *op)
{
	free(notices_due_op(op)->in_use);
}
