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

/* Fails if one of the jobs is not idle after all; the batch is then repeated one by one. */
static bool jobs_finish_all(struct store *s, struct set *idle, usec_t now, struct err *e)
{
	AUTO_QUERY q = {};

	if (idle->n == 0)
		return true;
	q = query_start(s->db, Q_JOBS_FINISH_ALL, e);
	set_bind(&q, idle);
	query_int(&q, now);
	query_int(&q, (int64_t)idle->n);
	return query_finish(&q);
}

bool job_finish_known(struct store *s, const char *ids, usec_t now, struct query *facts, const struct map *open, struct map *ret,
	struct err *e)
{
	bool waits = false, resumes = false;
	AUTO_SET idle = {};

	while (query_row(facts)) {
		int64_t id = query_get_int(facts);
		enum job_state state = (enum job_state)query_get_int(facts);
		int64_t uid = query_get_int(facts);
		const char *queue = query_get_text(facts);
		usec_t due = query_get_int(facts);
		bool others = query_get_int(facts);

		waits = query_get_int(facts) || waits;
		resumes = resumes || due == USEC_NEVER;
		if (state != JOB_ACTIVE || due || others || map_get(open, id))
			continue;
		counter_change(s, COUNT_OWNER, uid, "", -1);
		counter_move(s, COUNT_JOBS, JOB_ACTIVE, JOB_FINISHED, queue);
		map_put(ret, id, s);
		set_id(&idle, id);
	}
	return !facts->failed && (waits ? permits_settle : permits_free)(s, ids, e) && (!resumes || due_resume(s, ids, now, e)) &&
	       jobs_finish_all(s, &idle, now, e);
}

bool job_finish_one(struct store *s, const struct job_end *j, usec_t now, bool *ret, struct err *e)
{
	AUTO_SET job = {};

	set_id(&job, j->job);
	*ret = !j->due && !j->open;
	if (*ret) {
		counter_change(s, COUNT_OWNER, j->uid, "", -1);
		counter_move(s, COUNT_JOBS, JOB_ACTIVE, JOB_FINISHED, j->queue);
	}
	return (j->waits ? permits_settle : permits_free)(s, set_json(&job), e) &&
	       (j->due != USEC_NEVER || due_resume(s, set_json(&job), now, e)) && (!*ret || jobs_finish_all(s, &job, now, e));
}

bool job_finish_idle(struct store *s, const char *ids, usec_t now, struct map *ret, struct err *e)
{
	AUTO_QUERY q = {};
	AUTO_SET idle = {};

	if (!permits_settle(s, ids, e) || !due_resume(s, ids, now, e))
		return false;
	/* SQLite locks no rows, and jobs_finish has the conditions of jobs_idle */
	if (s->db->ops->row_locks) {
		if (!jobs_idle(s, ids, &idle, e))
			return false;
		if (idle.n == 0)
			return true;
	}
	q = query_start(s->db, Q_JOBS_FINISH, e);
	if (s->db->ops->row_locks)
		set_bind(&q, &idle);
	else
		query_text(&q, ids);
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
