/* SPDX-License-Identifier: Apache-2.0 */
/* Counts runs by interval of their slots, in steps of a bounded number of rows. Only indexes are read, except for runs that failed. */
#include "store/read/run_density.h"
#include "base/err.h"
#include "core/job/run.h"
#include "store/store_private.h"
#include "store/tx.h"

#define STEP_RUNS 50000 /* counted in one step, or all runs of one slot */

/* The end of the step: the slot so many runs after the place. */
static bool find_end(struct store *s, const struct run_density *d, usec_t *ret, bool *ret_more, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, d->uid >= 0 ? Q_RUN_DENSITY_BOUND_UID : Q_RUN_DENSITY_BOUND, e);
	usec_t until = d->since + d->width * (int64_t)d->n;

	if (d->uid >= 0)
		query_int(&q, d->uid);
	query_int(&q, d->at);
	query_int(&q, until);
	query_int(&q, STEP_RUNS);
	*ret_more = query_row(&q);
	*ret = *ret_more ? query_get_int(&q) : until;
	if (*ret <= d->at)
		*ret = d->at + 1;
	return !q.failed;
}

static void bind_range(struct query *q, const struct run_density *d, usec_t until)
{
	query_int(q, d->at);
	query_int(q, until);
	query_int(q, d->since);
	query_int(q, d->width);
}

static bool count_all(struct store *s, struct run_density *d, usec_t until, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, d->uid >= 0 ? Q_RUN_DENSITY_UID : Q_RUN_DENSITY, e);

	if (d->uid >= 0)
		query_int(&q, d->uid);
	bind_range(&q, d, until);
	while (query_row(&q)) {
		int64_t i = query_get_int(&q), n = query_get_int(&q);

		if (i >= 0 && (size_t)i < d->n)
			d->counts[i].runs += n;
	}
	return !q.failed;
}

static bool count_failed(struct store *s, struct run_density *d, enum run_state state, usec_t until, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_RUN_DENSITY_STATE, e);

	query_int(&q, state);
	query_int(&q, d->uid);
	bind_range(&q, d, until);
	while (query_row(&q)) {
		int64_t i = query_get_int(&q), n = query_get_int(&q);

		if (i >= 0 && (size_t)i < d->n)
			d->counts[i].failed += n;
	}
	return !q.failed;
}

bool run_density_step(struct store *s, struct run_density *d, bool *ret_more, struct err *e)
{
	AUTO_TX tx = {};
	usec_t until;

	if (!tx_begin(&tx, s, false, e) || !find_end(s, d, &until, ret_more, e) || !count_all(s, d, until, e) ||
		!count_failed(s, d, RUN_FAILED, until, e) || !count_failed(s, d, RUN_TIMED_OUT, until, e) ||
		!count_failed(s, d, RUN_LOST, until, e) || !tx_commit(&tx, e))
		return false;
	d->at = until;
	return true;
}
