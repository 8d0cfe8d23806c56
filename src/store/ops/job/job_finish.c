/* SPDX-License-Identifier: Apache-2.0 */
/* Updates jobs after their runs or slots have ended. */
#include "store/ops/job/job_finish.h"
#include "base/map.h"
#include "core/job/job.h"
#include "core/time/slots.h"
#include "store/counters.h"
#include "store/ops/run/permits.h"
#include "store/set.h"
#include "store/store_private.h"

/*
 * Selects the jobs without a slot. On PostgreSQL their rows are locked: if two nodes record the
 * last two ends at the same time, the second one sees that no run is open.
 */
static bool jobs_idle(struct store *s, const char *ids, struct set *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOBS_IDLE, e);

	query_text(&q, ids);
	while (query_row(&q))
		set_id(ret, query_get_int(&q));
	return !q.failed;
}

/* Makes the planner look at jobs whose next slot counts from the end of a run. */
static bool due_resume(struct store *s, const char *ids, usec_t now, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_DUE_RESUME, e);

	query_text(&q, ids);
	query_int(&q, USEC_NEVER);
	query_int(&q, slot_search_from(now));
	return query_finish(&q);
}

bool job_finish_idle(struct store *s, const char *ids, usec_t now, struct map *ret, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET idle = {};

	if (!permits_settle(s, ids, e) || !due_resume(s, ids, now, e) || !jobs_idle(s, ids, &idle, e))
		return false;
	if (idle.n == 0)
		return true;
	q = query_start(s->db, Q_JOBS_FINISH, e);
	query_text(&q, set_json(&idle));
	query_int(&q, now);
	while (query_row(&q)) {
		int64_t id = query_get_int(&q);

		counter_change(s, COUNT_OWNER, query_get_int(&q), "", -1);
		counter_move(s, COUNT_JOBS, JOB_ACTIVE, JOB_FINISHED, query_get_text(&q));
		if (ret)
			map_put(ret, id, s);
	}
	return !q.failed;
}
