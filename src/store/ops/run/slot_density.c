/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the jobs that share a slot, up to a limit. */
#include "store/ops/run/slot_density.h"
#include "store/ops/job/jobs.h"
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

bool slot_density_of_job(struct store *s, const struct job_new *j, int64_t *ret, struct err *e)
{
	if (slot_is_dense(s, j)) {
		*ret = j->density_max;
		return true;
	}
	if (!slot_density_count(s, j->next_slot, j->density_max, ret, e))
		return false;
	if (*ret >= j->density_max) {
		s->dense_slots[s->next_dense_slot].slot = j->next_slot;
		s->dense_slots[s->next_dense_slot].until = j->now + DENSE_KEPT;
		s->next_dense_slot = (s->next_dense_slot + 1) % ELEMENTS(s->dense_slots);
	}
	return true;
}
