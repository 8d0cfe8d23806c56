/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs are paused: by their owners, by an exit code. */
#include "store/private.h"

bool job_pause(struct store *s, const struct job_pause *p, bool *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_JOB_PAUSE, e);
	AUTO_QUERY by = {};

	query_int(&q, p->job);
	query_text(&q, p->reason);
	query_int(&q, p->now);
	*ret = query_row(&q);
	if (!*ret)
		return !q.failed;
	count_move(s, COUNT_JOBS, JOB_ACTIVE, JOB_PAUSED, query_get_text(&q));
	by = query_start(s->db, Q_JOB_PAUSE_PUT, e);
	query_int(&by, p->job);
	query_int(&by, p->by_uid);
	query_text(&by, p->by_name);
	query_int(&by, p->now);
	query_int(&by, p->until);
	return query_finish(&by);
}
