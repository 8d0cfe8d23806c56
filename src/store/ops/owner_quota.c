/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the bytes of the rows of each owner. */
#include "store/ops/owner_quota.h"
#include "base/err.h"
#include "base/text.h"
#include "core/job/owner.h"
#include "store/counters.h"
#include "store/owner_counts.h"
#include "store/read/prune_candidates.h"
#include "store/store_private.h"
#include "store/tx.h"

#define MIB (INT64_C(1) << 20)

void owner_quota_add(struct store *s, int64_t uid, int64_t bytes)
{
	if (uid >= 0)
		counter_change(s, COUNT_STORE, uid, "", bytes);
}

bool owner_quota_subtract_rows(struct store *s, struct query *q)
{
	while (query_row(q)) {
		int64_t uid = query_get_int(q);

		owner_quota_add(s, uid, -query_get_int(q));
	}
	return !q->failed;
}

bool owner_quota_used(struct store *s, int64_t uid, int64_t *ret, struct err *e)
{
	AUTO_QUERY q = query_start(s->db, Q_COUNTER_GET, e);

	query_int(&q, COUNT_STORE);
	query_int(&q, uid);
	*ret = query_row(&q) ? query_get_int(&q) : 0;
	*ret += counter_pending(s, COUNT_STORE, uid);
	return !q.failed;
}

void owner_quota_refuse(struct err *why, const char *owner, int64_t used, int64_t limit)
{
	err_set(why, ERR_LIMIT, "the jobs, templates and runs of '%.64s' take %lld MiB of the store, and one user may have %lld MiB "
		"('owner-store-limit' in jobschedd.conf(5)); remove jobs with 'jobctl rm': their space is free within an hour, or at "
		"once when an administrator types 'jobctl db prune'", owner ? owner : "", (long long)((used + MIB - 1) / MIB),
		(long long)(limit / MIB));
}

bool owner_quota_check(struct store *s, int64_t uid, int64_t job, const char *owner, int64_t more, int64_t limit, struct err *why,
	struct err *e)
{
	int64_t used;

	if (!limit)
		return true;
	if (!owner_count_read(s, COUNT_STORE, uid, job, limit, &used, e))
		return false;
	if (more > limit - used)
		owner_quota_refuse(why, owner, used, limit);
	return true;
}

