/* SPDX-License-Identifier: Apache-2.0 */
/* Frees the overlap permits of ended runs, which releases waiting runs. */
#include "store/ops/run/permits.h"
#include "base/map.h"
#include "base/text.h"
#include "store/set.h"
#include "store/store_private.h"

/* A job with free permits. */
struct free_permit {
	int64_t job, n;
};
struct free_permits {
	struct free_permit *v; /* owned */
	size_t n;
};

static void free_permits_done(struct free_permits *r)
{
	free(r->v);
}

bool permits_free(struct store *s, const char *jobs, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PERMITS_FREE, e);

	query_text(&q, jobs);
	return query_finish(&q);
}

/*
 * Reads all free permits, also those that were free before: a released run may have ended without
 * using one.
 */
static bool free_permits_read(struct store *s, const char *jobs, struct free_permits *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PERMITS_ROOM, e);

	query_text(&q, jobs);
	while (query_row(&q)) {
		struct free_permit r = {};

		r.job = query_get_int(&q);
		r.n = query_get_int(&q);
		if (r.n <= 0)
			continue;
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = r;
	}
	return !q.failed;
}

static bool permit_release_runs(struct store *s, struct set *jobs, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PERMITS_RELEASE, e);

	*ret_n = 0;
	set_bind(&q, jobs);
	while (query_row(&q)) {
		query_get_int(&q);
		wakeup_claim_by(s, query_get_int(&q));
		++*ret_n;
	}
	return !q.failed;
}

/* Each round releases one waiting run of each job that has a free permit. */
bool permits_settle(struct store *s, const char *jobs, struct err *e)
{
	AUTO_DONE(free_permits) free_permits = {};
	size_t released = 1;

	if (!permits_free(s, jobs, e) || !free_permits_read(s, jobs, &free_permits, e))
		return false;
	for (int64_t round = 0; released > 0; round++) {
		AUTO_SET set = {};

		for (size_t i = 0; i < free_permits.n; i++)
			if (free_permits.v[i].n > round)
				set_id(&set, free_permits.v[i].job);
		if (set.n == 0)
			return true;
		if (!permit_release_runs(s, &set, &released, e))
			return false;
	}
	return true;
}
