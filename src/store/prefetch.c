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
	s->prefetch.full = false;
	prefetch_free(s);
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
	map_done(&s->prefetch.sent);
	s->prefetch.jobs = s->prefetch.sent = (struct map){};
}

bool prefetch_repeats(struct store *s, int64_t job)
{
	s->prefetch.full = map_get(&s->prefetch.sent, job) != NULL;
	if (!s->prefetch.full)
		map_put(&s->prefetch.sent, job, s);
	return s->prefetch.full;
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
