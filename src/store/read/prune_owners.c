/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the owner whose history is deleted to meet a budget. */
#include "base/text.h"
#include "core/job/owner.h"
#include "store/counters.h"
#include "store/read/prune_candidates.h"
#include "store/store_private.h"
#include "store/tx.h"

#define ENOUGH(budget) ((budget) - (budget) / 10)

struct usage {
	struct owner_use {
		int64_t uid, bytes;
	} *v;            /* owned */
	size_t n;
	int64_t counted; /* sum of 'bytes' */
	int64_t stored;  /* size of the database; 0: unknown */
};

static void usage_done(struct usage *u)
{
	free(u->v);
}

static bool read_usage(struct store *s, struct usage *u, struct err *e)
{
	AUTO_QUERY bytes = query_start(s->db, Q_STORE_BYTES, e);
	AUTO_QUERY owners = {};

	if (query_row(&bytes))
		u->stored = query_get_int(&bytes);
	if (bytes.failed)
		return false;
	owners = query_start(s->db, Q_COUNTERS_SUM, e);
	query_int(&owners, COUNT_STORE);
	while (query_row(&owners)) {
		struct owner_use o = {.uid = query_get_int(&owners)};

		o.bytes = query_get_int(&owners);
		if (o.bytes <= 0)
			continue;
		u->v = xgrow(u->v, u->n, sizeof(*u->v));
		u->v[u->n++] = o;
		u->counted += o.bytes;
	}
	return !owners.failed;
}

/*
 * An equal share of the budget, in counted bytes. Indexes and free space make the file larger than
 * the sum of the counts, so if the file exceeds its budget, at least one owner exceeds this share.
 */
static int64_t equal_share(const struct usage *u, int64_t budget)
{
	return (int64_t)((double)ENOUGH(budget) * (double)u->counted / (double)u->stored / (double)u->n);
}

static int64_t allowed(const struct usage *u, const struct owner_budget *b, bool over_budget, int64_t uid)
{
	int64_t most = over_budget ? equal_share(u, b->store) : INT64_MAX;

	return b->per_owner && owner_uid(uid) != 0 && b->per_owner < most ? b->per_owner : most;
}

static bool is_spent(const struct prune_pass *p, int64_t uid)
{
	for (size_t i = 0; i < p->n_spent; i++)
		if (p->spent[i] == uid)
			return true;
	return false;
}

void prune_candidates_owner_done(struct prune_pass *p)
{
	int64_t uid = p->owner;

	p->has_owner = p->removed_done = false;
	p->slot = 0;
	p->job = p->run = 0;
	p->spent[p->n_spent++] = uid;
}

static void choose_owner(const struct usage *u, const struct owner_budget *b, bool over_budget, struct prune_pass *p)
{
	const struct owner_use *most = NULL;

	for (size_t i = 0; i < u->n && p->n_spent < PRUNE_OWNERS; i++)
		if (u->v[i].bytes > allowed(u, b, over_budget, u->v[i].uid) && !is_spent(p, u->v[i].uid) &&
		    (!most || u->v[i].bytes > most->bytes))
			most = &u->v[i];
	p->has_owner = most != NULL;
	p->owner = most ? most->uid : 0;
}

bool prune_candidates_next_owner(struct store *s, const struct owner_budget *b, struct prune_pass *p, struct err *e)
{
	AUTO_DONE(usage) u = {};
	AUTO_TX tx = {};
	bool over_budget;

	if (!tx_begin(&tx, s, false, e) || !read_usage(s, &u, e) || !tx_commit(&tx, e))
		return false;
	/* deletion continues until the size is 90 % of the budget */
	over_budget = b->store > 0 && u.counted > 0 && u.stored > (p->has_owner || p->n_spent ? ENOUGH(b->store) : b->store);
	for (size_t i = 0; p->has_owner && i < u.n; i++)
		if (u.v[i].uid == p->owner && u.v[i].bytes > allowed(&u, b, over_budget, p->owner))
			return true;
	if (p->has_owner)
		prune_candidates_owner_done(p);
	choose_owner(&u, b, over_budget, p);
	return true;
}
