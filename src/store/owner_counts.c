/* SPDX-License-Identifier: Apache-2.0 */
/* The kept counts of an owner, for the checks of limits. */
#include "store/owner_counts.h"
#include "store/store_private.h"

#define KEPT_FOR USEC_SEC

static struct owner_count *count_find(const struct store *s, enum count_what what, int64_t uid)
{
	for (size_t i = 0; i < ELEMENTS(s->owner_counts); i++)
		if (s->owner_counts[i].at && s->owner_counts[i].what == what && s->owner_counts[i].uid == uid)
			return (struct owner_count *)&s->owner_counts[i];
	return NULL;
}

bool owner_count_is_low(const struct store *s, enum count_what what, int64_t uid, int64_t limit, int64_t *ret)
{
	const struct owner_count *c = s->db->defer ? count_find(s, what, uid) : NULL;

	if (!c || clock_boot(s->clock) - c->at >= KEPT_FOR)
		return false;
	*ret = c->n + counter_pending(s, what, uid);
	return *ret < limit - limit / 8;
}

static struct query count_query(struct store *s, enum count_what what, int64_t uid, int64_t job, struct err *e)
{
	bool by_job = job && s->db->defer;
	struct query q = query_start(s->db, by_job ? Q_COUNTER_OF_JOB : Q_COUNTER_GET, e);

	query_int(&q, what);
	query_int(&q, by_job ? job : uid);
	return q;
}

bool owner_count_prefetch(struct store *s, enum count_what what, int64_t job, struct err *e)
{
	AUTO_QUERY q = count_query(s, what, 0, job, e);

	return query_prefetch(&q);
}

bool owner_count_now(struct store *s, enum count_what what, int64_t uid, int64_t job, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = count_query(s, what, uid, job, e);

	*ret = query_row(&q) ? query_get_int(&q) : 0;
	return !q.failed;
}

bool owner_count_read(struct store *s, enum count_what what, int64_t uid, int64_t job, int64_t limit, int64_t *ret, struct err *e)
{
	struct owner_count *c;

	if (owner_count_is_low(s, what, uid, limit, ret))
		return true;
	if (!owner_count_now(s, what, uid, job, ret, e))
		return false;
	c = count_find(s, what, uid);
	if (!c) {
		c = &s->owner_counts[s->next_owner_count];
		s->next_owner_count = (s->next_owner_count + 1) % ELEMENTS(s->owner_counts);
	}
	*c = (struct owner_count){what, uid, *ret, clock_boot(s->clock)};
	*ret += counter_pending(s, what, uid);
	return true;
}

void owner_count_add(struct store *s, enum count_what what, int64_t uid, int64_t n)
{
	struct owner_count *c = what == COUNT_OWNER || what == COUNT_STORE ? count_find(s, what, uid) : NULL;

	if (c)
		c->n += n;
}

void owner_counts_forget(struct store *s)
{
	for (size_t i = 0; i < ELEMENTS(s->owner_counts); i++)
		s->owner_counts[i].at = 0;
}
