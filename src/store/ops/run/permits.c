/* SPDX-License-Identifier: Apache-2.0 */
/* The places of jobs: freed by runs that are over, and given to those that waited for them. */
#include "base/map.h"
#include "base/text.h"
#include "store/store_private.h"

/* A job with places for runs that wait. */
struct room {
	int64_t job, n;
};
struct rooms {
	struct room *v; /* owned */
	size_t n;
};

static void rooms_done(struct rooms *r)
{
	free(r->v);
}

static bool free_places(struct store *s, const char *jobs, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PLACES_FREE, e);

	query_text(&q, jobs);
	return query_finish(&q);
}

/* Not only those that were freed just now: a run that was released may have ended without taking its place. */
static bool read_rooms(struct store *s, const char *jobs, struct rooms *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_PLACES_ROOM, e);

	query_text(&q, jobs);
	while (query_row(&q)) {
		struct room r = {};

		r.job = query_get_int(&q);
		r.n = query_get_int(&q);
		if (r.n <= 0)
			continue;
		ret->v = xgrow(ret->v, ret->n, sizeof(*ret->v));
		ret->v[ret->n++] = r;
	}
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

/* Each round releases one run of each job that is in it. */
bool places_settle(struct store *s, const char *jobs, struct err *e)
{
	AUTO_DONE(rooms) rooms = {};
	size_t released = 1;

	if (!free_places(s, jobs, e) || !read_rooms(s, jobs, &rooms, e))
		return false;
	for (int64_t round = 0; released > 0; round++) {
		AUTO_SET set = {};

		for (size_t i = 0; i < rooms.n; i++)
			if (rooms.v[i].n > round)
				set_id(&set, rooms.v[i].job);
		if (set.n == 0)
			return true;
		if (!release(s, &set, &released, e))
			return false;
	}
	return true;
}
