/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the past definitions of a job. */
#include "store/ops/job/job_history.h"
#include "store/ops/owner_quota.h"
#include "store/store.h"
#include "store/store_private.h"
#include <string.h>

static void revision_bind(struct query *q, int64_t job, const struct revision *r)
{
	query_int(q, job);
	query_int(q, r->number);
	query_int(q, r->uid);
	query_text(q, r->who);
	query_int(q, r->at);
	query_text(q, r->what);
	query_int(q, r->origin);
	query_text(q, r->spec);
}

static bool revision_put(struct store *s, int64_t job, int64_t owner, const struct revision *r, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_REVISION_PUT, e);

	revision_bind(&q, job, r);
	if (query_row(&q)) /* inserted: the row is new */
		owner_quota_add(s, owner, query_get_int(&q));
	return !q.failed;
}

static bool history_add(struct store *s, int64_t job, int64_t owner, const struct revision *before, const struct revision *now,
	struct err *e)
{
	AUTO_QUERY q = {};

	if (!revision_put(s, job, owner, before, e) || !revision_put(s, job, owner, now, e))
		return false;
	q = query_start(s->db, Q_REVISIONS_TRIM, e);
	query_int(&q, job);
	query_int(&q, now->number - REVISIONS_KEPT + 1);
	while (query_row(&q))
		owner_quota_add(s, owner, -query_get_int(&q));
	return !q.failed;
}

/* ---- without waiting for replies ---- */

static struct query known_query(struct store *s, int64_t job, struct err *e)
{
	struct query q = query_start(s->db, Q_JOB_REVISIONS_KNOWN, e);

	query_int(&q, job);
	query_int(&q, REVISIONS_KEPT - 2); /* the new revision has the current number plus one */
	return q;
}

bool job_history_prefetch(struct store *s, int64_t job, struct err *e)
{
	AUTO_QUERY q = known_query(s, job, e);

	return query_prefetch(&q);
}

/* Fails if there is such a row; the batch is then repeated one by one. */
static bool revision_put_new(struct store *s, int64_t job, int64_t owner, const struct revision *r, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_REVISION_PUT_NEW, e);

	revision_bind(&q, job, r);
	owner_quota_add(s, owner, REVISION_BYTES + (int64_t)strlen(r->spec));
	return query_finish(&q);
}

static bool history_add_known(struct store *s, int64_t job, int64_t owner, const struct revision *before, const struct revision *now,
	struct err *e)
{
	AUTO_QUERY known = known_query(s, job, e);
	AUTO_QUERY q = {};
	bool there = false;
	int64_t old = 0, size = 0;

	if (query_row(&known)) {
		there = query_get_int(&known);
		old = query_get_int(&known);
		size = query_get_int(&known);
	}
	if (known.failed || (!there && !revision_put_new(s, job, owner, before, e)) || !revision_put_new(s, job, owner, now, e))
		return false;
	if (old == 0)
		return true;
	owner_quota_add(s, owner, -size);
	q = query_start(s->db, Q_REVISIONS_TRIM_ALL, e);
	query_int(&q, job);
	query_int(&q, now->number - REVISIONS_KEPT + 1);
	query_int(&q, old);
	return query_finish(&q);
}

bool job_history_add(struct store *s, int64_t job, int64_t owner, const struct revision *before, const struct revision *now,
	struct err *e)
{
	return (s->db->defer ? history_add_known : history_add)(s, job, owner, before, now, e);
}
