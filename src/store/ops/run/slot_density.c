/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the jobs that share a slot, up to a limit. */
#include "store/ops/run/slot_density.h"
#include "base/text.h"
#include "store/ops/job/job_checks.h"
#include "store/ops/job/jobs.h"
#include "store/set.h"
#include "store/store_private.h"

#define DENSE_KEPT USEC_MIN /* how long a slot that reached the maximum is not counted again */

bool slot_density_count(struct store *s, usec_t slot, int64_t max, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_CROWD, e);

	query_int(&q, slot);
	query_int(&q, max);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

/*
 * Counting up to the maximum takes 0.1 ms; jobs that are added to the same slot one by one avoid
 * it.
 */
static bool slot_is_dense(const struct store *s, const struct job_new *j)
{
	for (size_t i = 0; i < ELEMENTS(s->dense_slots); i++)
		if (s->dense_slots[i].slot == j->next_slot && s->dense_slots[i].until > j->now)
			return true;
	return false;
}

static void dense_slot_keep(struct store *s, const struct job_new *j)
{
	s->dense_slots[s->next_dense_slot].slot = j->next_slot;
	s->dense_slots[s->next_dense_slot].until = j->now + DENSE_KEPT;
	s->next_dense_slot = (s->next_dense_slot + 1) % ELEMENTS(s->dense_slots);
}

bool slot_density_of_job(struct store *s, const struct job_new *j, int64_t *ret, struct err *e)
{
	if (slot_is_dense(s, j)) {
		*ret = j->density_max;
		return true;
	}
	if (!slot_density_count(s, j->next_slot, j->density_max, ret, e))
		return false;
	if (*ret >= j->density_max)
		dense_slot_keep(s, j);
	return true;
}

/* ---- counted with the commit ---- */

static bool slot_is_wanted(const struct store *s, usec_t slot)
{
	for (size_t i = 0; i < s->densities.n; i++)
		if (s->densities.v[i]->next_slot == slot)
			return true;
	return false;
}

bool slot_density_send(struct store *s, const struct adding *a, size_t n, struct err *e)
{
	int64_t max = 0;
	AUTO_SET set = {};

	if (s->densities.q.db)
		return true; /* an earlier chunk of this batch has used the query */
	for (size_t i = 0; i < n; i++) {
		struct job_new *j = a[i].j;

		if (!a[i].inserted || !j->density_max || !j->next_slot)
			continue;
		if (slot_is_dense(s, j)) {
			j->density = j->density_max;
			continue;
		}
		if (!slot_is_wanted(s, j->next_slot)) {
			if (set.n == SLOT_DENSITIES_MAX)
				continue;
			set_id(&set, j->next_slot);
		}
		max = j->density_max > max ? j->density_max : max;
		s->densities.v = xgrow(s->densities.v, s->densities.n, sizeof(struct job_new *));
		s->densities.v[s->densities.n++] = j;
	}
	if (set.n == 0)
		return true;
	s->densities.q = query_start(s->db, Q_DUE_CROWDS, e);
	set_bind(&s->densities.q, &set);
	query_int(&s->densities.q, max);
	return query_send(&s->densities.q);
}

void slot_density_take(struct store *s)
{
	while (s->densities.q.db && query_row(&s->densities.q)) {
		usec_t slot = query_get_int(&s->densities.q);
		int64_t jobs = query_get_int(&s->densities.q);
		bool kept = false;

		for (size_t i = 0; i < s->densities.n; i++) {
			struct job_new *j = s->densities.v[i];

			if (j->next_slot != slot)
				continue;
			j->density = jobs < j->density_max ? jobs : j->density_max;
			if (jobs >= j->density_max && !kept)
				dense_slot_keep(s, j);
			kept = true;
		}
	}
}

void slot_density_done(struct store *s)
{
	query_done(&s->densities.q);
	s->densities.n = 0;
}
