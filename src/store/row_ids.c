/* SPDX-License-Identifier: Apache-2.0 */
/* Takes numbers for new jobs and runs; on a server from a reserve, without a round trip. */
#include "store/row_ids.h"
#include "base/err.h"
#include "base/text.h"
#include "store/store_private.h"

#define RESERVE_MAX 512 /* of each kind; unused numbers are lost when the daemon ends */

static const int kinds[] = {Q_JOB_IDS, Q_RUN_IDS};

static bool ids_read(struct store *s, int query, size_t n, int64_t *ids, struct err *e)
{
	AUTO_QUERY q = {};
	size_t got = 0;

	if (n == 0)
		return true;
	q = query_start(s->db, query, e);
	query_int(&q, (int64_t)n);
	while (query_row(&q) && got < n)
		ids[got++] = query_get_int(&q);
	/* SQLite has one writer, so it returns the first number only */
	for (; got > 0 && got < n && !s->db->ops->row_locks; got++)
		ids[got] = ids[got - 1] + 1;
	return !q.failed && (got == n || err_set(e, ERR_INTERNAL, "the store returned too few ids"));
}

bool row_ids_take(struct store *s, int query, size_t n, int64_t *ids, struct err *e)
{
	struct row_ids *r = &s->ids[query == Q_RUN_IDS];
	size_t kept = r->n - r->at < n ? r->n - r->at : n;

	for (size_t i = 0; i < kept; i++)
		ids[i] = r->v[r->at++];
	r->taken += n;
	return ids_read(s, query, n - kept, ids + kept, e);
}

bool row_ids_prefetch_run(struct store *s, struct err *e)
{
	const struct row_ids *r = &s->ids[1];
	AUTO_QUERY q = {};

	if (++s->prefetch.runs <= r->n - r->at)
		return true;
	q = query_start(s->db, Q_RUN_IDS, e);
	query_int(&q, 1);
	return query_prefetch(&q);
}

/* Twice what this batch took, once less than that is left. */
static size_t refill_size(const struct row_ids *r)
{
	size_t left = r->n - r->at, want = r->taken < RESERVE_MAX / 2 ? 2 * r->taken : RESERVE_MAX;

	return left < r->taken && left < want ? want - left : 0;
}

bool row_ids_refill_send(struct row_ids_refill *r, struct store *s, struct err *e)
{
	row_ids_refill_done(r);
	for (size_t i = 0; i < ELEMENTS(kinds); i++) {
		size_t n = refill_size(&s->ids[i]);

		s->ids[i].taken = 0;
		if (!s->db->defer || n == 0)
			continue;
		r->q[i] = query_start(s->db, kinds[i], e);
		query_int(&r->q[i], (int64_t)n);
		if (!query_send(&r->q[i]))
			return false;
	}
	return true;
}

static void reserve_add(struct row_ids *r, int64_t id)
{
	if (!r->v)
		r->v = xcalloc(RESERVE_MAX, sizeof(*r->v));
	if (r->at > 0) {
		for (size_t i = r->at; i < r->n; i++)
			r->v[i - r->at] = r->v[i];
		r->n -= r->at;
		r->at = 0;
	}
	if (r->n < RESERVE_MAX)
		r->v[r->n++] = id;
}

void row_ids_refill_take(struct row_ids_refill *r, struct store *s)
{
	for (size_t i = 0; i < ELEMENTS(kinds); i++)
		while (r->q[i].db && query_row(&r->q[i]))
			reserve_add(&s->ids[i], query_get_int(&r->q[i]));
}

void row_ids_refill_done(struct row_ids_refill *r)
{
	query_done(&r->q[0]);
	query_done(&r->q[1]);
}

void row_ids_forget(struct store *s)
{
	for (size_t i = 0; i < ELEMENTS(kinds); i++)
		s->ids[i].at = s->ids[i].n = 0;
}

void row_ids_free(struct store *s)
{
	for (size_t i = 0; i < ELEMENTS(kinds); i++)
		free(s->ids[i].v);
}
