/* SPDX-License-Identifier: Apache-2.0 */
/* The places of jobs: freed by runs that are over, and given to those that waited for them. */
#include "base/map.h"
#include "base/text.h"
#include "store/private.h"

/* As many rounds as the job has most of: each releases one run of each job that is in it. */
struct freed {
	int64_t *jobs; /* one for each place, by job */
	size_t n;
};

static void freed_done(struct freed *f)
{
	free(f->jobs);
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static bool free_places(struct store *s, const char *jobs, struct freed *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PLACES_FREE, e);

	query_text(&q, jobs);
	while (query_row(&q)) {
		if ((ret->n & (ret->n - 1)) == 0)
			ret->jobs = xrealloc(ret->jobs, (ret->n ? ret->n * 2 : 1) * sizeof(*ret->jobs));
		ret->jobs[ret->n++] = query_get_int(&q);
	}
	if (ret->n > 1)
		qsort(ret->jobs, ret->n, sizeof(*ret->jobs), by_number);
	return !q.failed;
}

static bool release(struct store *s, struct set *jobs, size_t *ret_n, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PLACES_RELEASE, e);

	*ret_n = 0;
	query_text(&q, set_json(jobs));
	while (query_row(&q)) {
		query_get_int(&q);
		look_by(s, query_get_int(&q));
		++*ret_n;
	}
	return !q.failed;
}

bool places_settle(struct store *s, const char *jobs, struct err *e)
{
	AUTO_DONE(freed) f = {};
	size_t released = 1;

	if (!free_places(s, jobs, &f, e))
		return false;
	for (size_t round = 0; released > 0; round++) {
		AUTO_SET set = {};

		/* the job at i has more than 'round' places free if the one 'round' before it is the same */
		for (size_t i = round; i < f.n; i++)
			if (f.jobs[i] == f.jobs[i - round] && (i + 1 == f.n || f.jobs[i + 1] != f.jobs[i]))
				set_id(&set, f.jobs[i]);
		if (set.n == 0)
			return true;
		if (!release(s, &set, &released, e))
			return false;
	}
	return true;
}
