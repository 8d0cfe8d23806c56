/* SPDX-License-Identifier: Apache-2.0 */
/* How many jobs are due at the same slot, counted as far as anybody wants to know. */
#include "store/store_private.h"

#define BELIEVED USEC_MIN /* how long a slot stays crowded without being counted again */

bool crowd_count(struct store *s, usec_t slot, int64_t max, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_CROWD, e);

	query_int(&q, slot);
	query_int(&q, max);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

/* Counting to the end takes a tenth of a millisecond; those who join a crowd one by one need not pay it each. */
static bool known_crowd(const struct store *s, const struct job_new *j)
{
	for (size_t i = 0; i < ELEMENTS(s->crowded); i++)
		if (s->crowded[i].slot == j->next_slot && s->crowded[i].until > j->now)
			return true;
	return false;
}

bool crowd_join(struct store *s, const struct job_new *j, int64_t *ret, struct err *e)
{
	if (known_crowd(s, j)) {
		*ret = j->crowd_max;
		return true;
	}
	if (!crowd_count(s, j->next_slot, j->crowd_max, ret, e))
		return false;
	if (*ret >= j->crowd_max) {
		s->crowded[s->next_crowded].slot = j->next_slot;
		s->crowded[s->next_crowded].until = j->now + BELIEVED;
		s->next_crowded = (s->next_crowded + 1) % ELEMENTS(s->crowded);
	}
	return true;
}
