/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the reads of several operations of a batch together. */
#include "store/prefetch.h"
#include "store/store_private.h"

void prefetch_begin(struct store *s)
{
	prefetch_drop(s);
	s->prefetch.on = true;
}

void prefetch_drop(struct store *s)
{
	if (!s->prefetch.on)
		return;
	s->prefetch.on = false;
	map_done(&s->prefetch.jobs);
	s->prefetch.jobs = (struct map){};
	s->prefetch.runs = 0;
	s->db->ops->prefetch_drop(s->db);
}

void prefetch_end(struct store *s)
{
	prefetch_drop(s);
	if (s->db->ops->prefetch_drop)
		s->db->ops->prefetch_drop(s->db); /* those whose replies had not arrived when they were discarded */
}

void prefetch_free(struct store *s)
{
	map_done(&s->prefetch.jobs);
}

bool prefetch_job(struct store *s, int64_t job)
{
	if (!s->prefetch.on)
		return false;
	if (map_get(&s->prefetch.jobs, job)) {
		prefetch_drop(s);
		return true;
	}
	map_put(&s->prefetch.jobs, job, s);
	return false;
}

bool prefetch_is_late(struct store *s)
{
	if (s->prefetch.jobs.used < 2)
		return false;
	prefetch_drop(s);
	return true;
}
